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
)

func isEOF(err error) bool { return errors.Is(err, io.EOF) }

// process is the sandbox's program.
type process struct {
	sb   *sandbox
	cmd  tranca.Command
	call *wire.Call
	pid  int

	killed bool // by the owner; sb.mu guards it

	hurried   chan struct{} // closed when the program was killed
	hurryOnce sync.Once
	mute      mutes
	pumps     sync.WaitGroup

	done chan struct{}
	exit tranca.Exit // set before done is closed
	err  error
}

func newProcess(sb *sandbox, cmd tranca.Command) *process {
	return &process{sb: sb, cmd: cmd, hurried: make(chan struct{}), done: make(chan struct{})}
}

// doneOf is p.done, or a closed channel where there is no p.
func doneOf(p *process) <-chan struct{} {
	if p != nil {
		return p.done
	}
	c := make(chan struct{})
	close(c)
	return c
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
	select {
	case <-p.done:
		return fmt.Errorf("%w: the program has ended", tranca.ErrGone)
	default:
	}
	req := message.SendSignalRequest{
		Process: message.ProcessSelector{PID: uint32(p.pid)}, Number: uint32(sig), Group: group,
	}
	err := p.sb.unary(ctx, answerTimeout, message.MethodSendSignal, &req, &message.Empty{})
	if errors.Is(err, tranca.ErrNotFound) {
		return fmt.Errorf("%w: the program has ended", tranca.ErrGone)
	}
	return err
}

// hurry gives output and end a deadline from now on.
func (p *process) hurry() { p.hurryOnce.Do(func() { close(p.hurried) }) }

// run follows a program that has started.
func (p *process) run() {
	p.pumps.Go(func() { p.pump(p.call.Sides[0], p.cmd.Stdout, false) })
	p.pumps.Go(func() { p.pump(p.call.Sides[1], p.cmd.Stderr, true) })
	if p.cmd.Stdin != nil {
		go p.feed()
	}
	go p.supervise()
}

// supervise finds how the program ended.
func (p *process) supervise() {
	ended := make(chan ending, 1)
	go func() {
		end, err := p.events()
		p.pumps.Wait()
		ended <- ending{end, err}
	}()
	limit, e := p.await(ended)
	p.mute.set()
	p.call.Close()
	for _, side := range p.call.Sides {
		side.Close()
	}
	p.exit, p.err = p.verdict(limit, e)
	p.sb.release(p, p.exit.Signal)
	close(p.done)
}

// ending is what the guest said of the end: an event or an error.
type ending struct {
	event *message.EndEvent
	err   error
}

// errDrained is the ending of a program that was killed and whose end did not
// come in time.
var errDrained = errors.New("its end did not come in time")

// await waits for the end and all output. Once the program was killed, by its
// owner or by a limit, that has a deadline.
func (p *process) await(ended <-chan ending) (limit tranca.Reason, e ending) {
	var deadline <-chan time.Time
	hurried := (<-chan struct{})(p.hurried)
	for {
		select {
		case e = <-ended:
			return limit, e
		case limit = <-p.sb.m.Limit():
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
func (p *process) events() (*message.EndEvent, error) {
	ctx := context.Background()
	for {
		var m message.StartResponse
		if err := p.sb.answer(ctx, p.call.Stream, &m); err != nil {
			if isEOF(err) {
				err = p.sb.breach("a program without an end")
			}
			return nil, err
		}
		if p.mute.isSet() {
			// The program was given up and its streams are being closed, which
			// the guest may answer with an end: no order holds any more.
			return nil, errDrained
		}
		switch {
		case m.Event.KeepAlive:
			continue
		case m.Event.End == nil:
			return nil, p.sb.breach("a start or output where only an end can come")
		case !p.call.Sides[0].Ended() || !p.call.Sides[1].Ended():
			return nil, p.sb.breach("an end before the end of the output")
		case !sensible(m.Event.End):
			return nil, p.sb.breach("an end with neither an exit code nor a signal")
		}
		return m.Event.End, p.sb.callEnd(ctx, p.call.Stream)
	}
}

func sensible(e *message.EndEvent) bool {
	if e.Exited {
		return e.ExitCode >= 0 && e.ExitCode <= 255 && e.Signal == 0
	}
	return e.Signal >= 1 && e.Signal <= 64
}

// verdict is how the program ended. What the host has seen goes before what
// the guest says.
func (p *process) verdict(limit tranca.Reason, e ending) (tranca.Exit, error) {
	exit := tranca.Exit{Code: -1, Reason: tranca.EndError}
	if e.event != nil {
		exit.Signal = tranca.Signal(e.event.Signal)
	}
	ctx, cancel := context.WithTimeout(context.Background(), observeTimeout)
	defer cancel()
	// A machine that has gone can't be asked; then the rest decides.
	obs, err := p.sb.m.Observe(ctx)
	if err == nil && obs.Limit != "" {
		limit = obs.Limit
	}
	if limit == "" && err == nil && exit.Signal == tranca.SIGXCPU && p.sb.mayHaveSpent(obs.Usage.CPU) {
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
