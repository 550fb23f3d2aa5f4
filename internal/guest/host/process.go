package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"tranca"
	"tranca/internal/guest/message"
	"tranca/internal/guest/wire"
	"tranca/internal/machine"
)

func isEOF(err error) bool { return errors.Is(err, io.EOF) }

// process is one of the sandbox's programs.
type process struct {
	sb    *sandbox
	cmd   tranca.Command
	call  *wire.Call
	pid   int
	spell *spell // set when it is taken in among the others

	killed bool // by the owner; sb.mu guards it

	hurried   chan struct{} // closed when the program was killed
	hurryOnce sync.Once
	mute      mutes
	pumps     sync.WaitGroup

	done chan struct{}
	seen *seen       // set with exit, nil if it never started
	exit tranca.Exit // set before done is closed
	err  error
}

// newProcess keeps nothing of the command that only its start needs: programs
// that have ended are remembered.
func newProcess(sb *sandbox, cmd tranca.Command) *process {
	cmd.Args, cmd.Env = nil, nil
	return &process{sb: sb, cmd: cmd, hurried: make(chan struct{}), done: make(chan struct{})}
}

func (p *process) PID() int { return p.pid }

func (p *process) Wait(ctx context.Context) (tranca.Exit, error) {
	select {
	case <-p.done:
		return p.exit, p.err
	default:
	}
	select {
	case <-p.done:
		return p.exit, p.err
	case <-ctx.Done():
		return tranca.Exit{Code: -1}, context.Cause(ctx)
	}
}

func (p *process) Signal(ctx context.Context, sig tranca.Signal) error {
	return p.signal(ctx, sig, false)
}

func (p *process) SignalGroup(ctx context.Context, sig tranca.Signal) error {
	return p.signal(ctx, sig, true)
}

func (p *process) signal(ctx context.Context, sig tranca.Signal, group bool) error {
	if sig < 1 || sig > 64 {
		return fmt.Errorf("%w: signal %d: it is 1 to 64", tranca.ErrInvalid, sig)
	}
	return p.ask(ctx, message.MethodSendSignal, &message.SendSignalRequest{
		Process: message.ProcessSelector{PID: uint32(p.pid)}, Number: uint32(sig), Group: group,
	})
}

// ask has the agent do something with the program, unless it has ended.
func (p *process) ask(ctx context.Context, method string, req appender) error {
	select {
	case <-p.done:
		return fmt.Errorf("%w: the program has ended", tranca.ErrGone)
	default:
	}
	err := p.sb.unary(ctx, answerTimeout, method, req, &message.Empty{})
	if errors.Is(err, tranca.ErrNotFound) {
		return fmt.Errorf("%w: the program has ended", tranca.ErrGone)
	}
	return err
}

// hurry gives output and end a deadline from now on.
func (p *process) hurry() { p.hurryOnce.Do(func() { close(p.hurried) }) }

// run follows a program that has started.
func (p *process) run() {
	first, second := message.Stdout, message.Stderr
	if p.cmd.Terminal != nil {
		first, second = message.Terminal, 0 // nothing comes by the second
	}
	p.pumps.Go(func() { p.pump(p.call.Sides[0], p.cmd.Stdout, first) })
	p.pumps.Go(func() { p.pump(p.call.Sides[1], p.cmd.Stderr, second) })
	if p.cmd.Stdin != nil {
		p.call.Narrow(inputWindow)
		go p.feed()
	}
	go p.supervise()
}

// supervise finds how the program ended.
func (p *process) supervise() {
	if p.sb.condemned(p) {
		// The kill may have come before there was anything to kill.
		p.sb.killAgain()
	}
	ended := make(chan ending, 1)
	go func() {
		e := p.events()
		p.pumps.Wait()
		ended <- e
	}()
	limit, e := p.await(ended)
	p.mute.set()
	p.call.Close()
	for _, side := range p.call.Sides {
		side.Close()
	}
	p.exit, p.err = p.verdict(limit, e)
	if r := p.exit.Reason; r == tranca.EndCPU || r == tranca.EndMemory {
		p.sb.passed(p.spell, r)
	}
	p.sb.release(p)
	close(p.done)
}

// ending is what is known of the end.
type ending struct {
	event *message.EndEvent // what the guest said of it
	err   error             // why it said nothing
	// seen is what the machine had counted when the program's end was told,
	// and early when its process was said to have ended, where that came before
	// because its output was not taken yet. What other programs do afterwards
	// has no part in this one's end.
	seen, early *seen
}

// seen is what the machine had counted, or why it can't be known.
type seen struct {
	machine.Observation
	at  time.Time
	err error
}

// look reads the machine's counters for p.
func (p *process) look() *seen {
	ctx, cancel := context.WithTimeout(context.Background(), observeTimeout)
	defer cancel()
	at := time.Now()
	obs, err := p.sb.m.Observe(ctx)
	if obs.Limit == "" {
		obs.Limit = p.sb.reasonOf(p.spell)
	}
	return &seen{obs, at, err}
}

// errDrained is the ending of a program that was killed and whose end did not
// come in time.
var errDrained = errors.New("its end did not come in time")

// await waits for the end and all output. Once the program was killed, by its
// owner or by a limit, that has a deadline.
func (p *process) await(ended <-chan ending) (limit tranca.Reason, e ending) {
	var deadline <-chan time.Time
	hurried, limited := (<-chan struct{})(p.hurried), (<-chan struct{})(p.spell.limited)
	for {
		select {
		case e = <-ended:
			return limit, e
		case r := <-p.sb.m.Limit():
			// Whoever hears it tells the others.
			p.sb.passed(p.spell, r)
		case <-limited:
			limited, limit = nil, p.spell.reason
			p.hurry()
		case <-hurried:
			hurried = nil
			timer := time.NewTimer(drainTimeout)
			defer timer.Stop()
			deadline = timer.C
		case <-deadline:
			return limit, ending{err: errDrained}
		}
	}
}

// events takes the program's events after the first one. The order is
// enforced: one end, after all output.
func (p *process) events() (e ending) {
	ctx := context.Background()
	for {
		var m message.StartResponse
		if err := p.sb.answer(ctx, p.call.Stream, &m); err != nil {
			if isEOF(err) {
				err = p.sb.breach("a program without an end")
			}
			return ending{err: err}
		}
		if p.mute.isSet() {
			// The program was given up and its streams are being closed, which
			// the guest may answer with an end: no order holds any more.
			return ending{err: errDrained}
		}
		switch {
		case m.Event.KeepAlive:
			continue
		case m.Event.Ended && e.early == nil:
			e.early = p.look()
			continue
		case m.Event.End == nil:
			return ending{err: p.sb.breach("a start or output where only an end can come")}
		case !p.call.Sides[0].Ended() || !p.call.Sides[1].Ended():
			return ending{err: p.sb.breach("an end before the end of the output")}
		case !sensible(m.Event.End):
			return ending{err: p.sb.breach("an end with neither an exit code nor a signal")}
		}
		e.event, e.seen = m.Event.End, p.look()
		e.err = p.sb.callEnd(ctx, p.call.Stream)
		return e
	}
}

func sensible(e *message.EndEvent) bool {
	if e.Exited {
		return e.ExitCode >= 0 && e.ExitCode <= 255 && e.Signal == 0
	}
	return e.Signal >= 1 && e.Signal <= 64
}

// counted is what the machine's counters said at the program's end. The guest's
// word that it ended earlier counts only where others ran beside it, which may
// have passed a limit since.
func (p *process) counted(limit tranca.Reason, e ending) (tranca.Reason, *seen) {
	switch {
	case e.early != nil && !p.sb.alone(p):
		return e.early.Limit, e.early
	case e.seen != nil && !p.sb.alone(p):
		return e.seen.Limit, e.seen
	case e.seen == nil:
		e.seen = p.look()
	}
	if e.seen.Limit != "" {
		limit = e.seen.Limit
	}
	return limit, e.seen
}

// verdict is how the program ended. What the host has seen goes before what
// the guest says. A machine that has gone can't be asked; then the rest decides.
func (p *process) verdict(limit tranca.Reason, e ending) (tranca.Exit, error) {
	exit := tranca.Exit{Code: -1, Reason: tranca.EndError}
	if e.event != nil {
		exit.Signal = tranca.Signal(e.event.Signal)
	}
	limit, seen := p.counted(limit, e)
	p.seen = seen
	if limit == "" && seen.err == nil && exit.Signal == tranca.SIGXCPU && p.sb.mayHaveSpent(seen.Usage.CPU) {
		limit = tranca.EndCPU
	}
	switch {
	case limit != "":
		exit.Reason = limit
	case p.sb.wasKilled(p):
		exit.Reason = tranca.EndClosed
	case e.err != nil:
		return exit, fmt.Errorf("how the program ended is not known: %w", e.err)
	case e.event.Exited:
		exit.Reason, exit.Code = tranca.EndExited, int(e.event.ExitCode)
	default:
		exit.Reason = tranca.EndSignaled
	}
	return exit, nil
}

// mayHaveSpent reports whether a death by SIGXCPU may be that of the CPU time
// limit, where the kernel holds it for each process and tells nobody else. A
// program can send itself the signal, so what was counted must bear it out: at
// least half, since the kernel's limit goes by ticks, and where nothing is
// counted the signal has to do.
func (sb *sandbox) mayHaveSpent(cpu time.Duration) bool {
	return sb.cpuTime > 0 && (cpu < 0 || cpu >= sb.cpuTime/2)
}
