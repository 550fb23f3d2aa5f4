package engine

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"tranca"
)

// maxTagBytes bounds the tag of a process.
const maxTagBytes = 256

// Process is a program that was started in a session and outlives the call that
// started it. What it wrote last is kept, so that anybody can read it later or
// again. Safe for concurrent use.
type Process struct {
	s       *Session
	id      tranca.ProcessID
	req     tranca.StartRequest
	started time.Time
	proc    tranca.Process
	place   *program
	out     *output
	in      *input // nil where its input is empty

	over bool // it has ended; the session's mutex guards this

	done chan struct{} // closed when exit, fault and end are set

	mu       sync.Mutex
	wall     *time.Timer
	stopped  tranca.Reason // why it is being stopped
	exit     tranca.Exit
	fault    error
	end      time.Time
	terminal *tranca.TerminalSize
}

// Start starts a program that lives until it ends, its wall clock runs out, the
// session ends, or, where the policy lets output end a run, it writes more than
// the output bound to one stream. ctx bounds the start only. Errors wrap [tranca.ErrNotFound]
// (no such program or folder), [tranca.ErrInvalid], [tranca.ErrRefused] (the
// environment), [tranca.ErrBusy] (too many programs), [tranca.ErrUnsupported] (a
// terminal) or [tranca.ErrGone].
func (s *Session) Start(ctx context.Context, r tranca.StartRequest) (*Process, error) {
	if err := checkStart(r); err != nil {
		return nil, err
	}
	ctx, done, err := s.work(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	_, env, err := s.narrow(tranca.Narrowing{Env: r.Env})
	if err != nil {
		return nil, err
	}
	if err := s.admit(ctx); err != nil {
		return nil, err
	}
	defer s.e.flight.leave(onePlace)
	place, err := s.join(ctx)
	if err != nil {
		return nil, err
	}
	defer place.settled()
	return s.start(ctx, place, r, env)
}

// checkStart refuses what no program can be started with.
func checkStart(r tranca.StartRequest) error {
	switch {
	case len(r.Args) == 0 || r.Args[0] == "":
		return fmt.Errorf("%w: no program is named", tranca.ErrInvalid)
	case r.Wall < 0:
		return fmt.Errorf("%w: a wall-clock time of %s", tranca.ErrInvalid, r.Wall)
	case len(r.Tag) > maxTagBytes || !utf8.ValidString(r.Tag):
		return fmt.Errorf("%w: a tag has at most %d bytes of UTF-8", tranca.ErrInvalid, maxTagBytes)
	}
	if r.Terminal != nil {
		if err := checkSize(*r.Terminal); err != nil {
			return err
		}
	}
	for _, c := range r.Tag {
		if !unicode.IsPrint(c) {
			return fmt.Errorf("%w: a tag holds %q, which is not printable", tranca.ErrInvalid, c)
		}
	}
	return checkArgs("command", r.Args)
}

// checkSize refuses a terminal that nothing can be shown on.
func checkSize(size tranca.TerminalSize) error {
	if size.Rows == 0 || size.Columns == 0 {
		return fmt.Errorf("%w: a terminal of %d rows and %d columns: each is 1 to 65535", tranca.ErrInvalid, size.Rows, size.Columns)
	}
	return nil
}

// start starts the program and takes it into the list.
func (s *Session) start(ctx context.Context, place *program, r tranca.StartRequest, env map[string]string) (*Process, error) {
	p := &Process{
		s: s, req: r, place: place, done: make(chan struct{}), started: time.Now(),
		out: newOutput(s.box.plan.kept().Output.Size, s.e.cfg.FollowGrace),
	}
	p.req.Args, p.req.Env = slices.Clone(r.Args), nil // the environment may be large, and hold secrets
	cmd := tranca.Command{
		Args: p.req.Args, Env: env, Dir: r.Dir, Stdout: sink{p.out, stdout}, Stderr: sink{p.out, stderr},
	}
	if r.Terminal != nil {
		size := *r.Terminal
		p.terminal, cmd.Terminal = &size, r.Terminal
	}
	if r.Stdin || r.Terminal != nil {
		p.in = newInput()
		cmd.Stdin = p.in
	}
	proc, err := s.box.sb.Start(ctx, cmd)
	if err != nil {
		p.abandon()
		return nil, s.notStarted(ctx, place, err)
	}
	p.proc = proc
	s.enlist(p)
	s.e.tell(tranca.Event{Kind: tranca.EventStarted, ID: s.ID(), Backend: s.box.plan.backend.Name()})
	s.e.stats.add(func(c *Stats) { c.Processes++ })
	if r.Wall > 0 {
		p.mu.Lock()
		p.wall = time.AfterFunc(s.box.plan.wall(r.Wall), func() { p.stop(tranca.EndWall) })
		p.mu.Unlock()
	}
	go p.follow()
	if p.outputKills() {
		go p.endByOutput()
	}
	return p, nil
}

// outputKills says that the policy ends a program whose output is too much.
func (p *Process) outputKills() bool {
	return p.s.box.plan.policy.Limits.Output.OnExceed == tranca.ExceedKill
}

func (p *Process) endByOutput() {
	select {
	case <-p.out.over:
		p.stop(tranca.EndOutput)
	case <-p.done:
	}
}

// notStarted gives up a start, and the session where its sandbox has failed.
func (s *Session) notStarted(ctx context.Context, place *program, err error) error {
	if left := place.leave(ctx, ctx.Err() != nil); left != nil {
		s.fail("it could not be stopped: " + left.Error())
	}
	if ctx.Err() == nil && sandboxFailed(err) {
		s.fail("its machine died: " + err.Error())
	}
	return s.because(err)
}

// abandon frees what waits for the program.
func (p *Process) abandon() {
	p.out.end()
	if p.in != nil {
		p.in.abandon()
	}
}

// follow waits for the end of the program.
func (p *Process) follow() {
	exit, err := p.proc.Wait(p.s.waits)
	p.s.mu.Lock()
	closed := p.s.gone != nil && !p.s.failed
	p.s.mu.Unlock()
	p.mu.Lock()
	stop := p.stopped
	if stop == "" && closed {
		stop = tranca.EndClosed
	}
	p.exit = settle(waited{exit: exit, err: err}, stop, p.outputKills() && p.out.exceeded())
	p.end = time.Now()
	if p.exit.Reason == tranca.EndError {
		p.fault = fmt.Errorf("how the program ended is not known: %w", p.s.because(err))
	}
	exit = p.exit
	if p.wall != nil {
		p.wall.Stop()
	}
	p.mu.Unlock()
	p.abandon()
	if err := p.place.leave(context.Background(), false); err != nil {
		p.s.fail("it could not be stopped: " + err.Error())
	}
	p.s.retire(p)
	p.s.e.stats.add(func(c *Stats) { c.Processes--; c.ProcessesEnded[exit.Reason]++ })
	p.s.e.tell(tranca.Event{Kind: tranca.EventEnded, ID: p.s.ID(), Backend: p.s.box.plan.backend.Name(), Exit: &exit})
	close(p.done)
}

// stop ends the program. One that can't be ended takes the session with it.
func (p *Process) stop(why tranca.Reason) {
	if p.s.e.begin() != nil {
		return // the engine is being closed, which ends it
	}
	defer p.s.e.running.Done()
	p.mu.Lock()
	if p.stopped == "" {
		p.stopped = why
	}
	p.mu.Unlock()
	p.out.hurry()
	err := p.place.kill(context.Background(), p.proc)
	if err == nil {
		timer := time.NewTimer(p.s.e.cfg.CloseTimeout)
		defer timer.Stop()
		select {
		case <-p.done:
			return
		case <-p.s.life.Done():
			return
		case <-timer.C:
			err = fmt.Errorf("program %s was killed and no end was told", p.id)
		}
	}
	p.s.fail("it could not be stopped: " + err.Error())
}

// Info returns what is known of the program.
func (p *Process) Info() tranca.ProcessInfo {
	p.mu.Lock()
	defer p.mu.Unlock()
	info := tranca.ProcessInfo{
		ID: p.id, PID: p.proc.PID(), Tag: p.req.Tag, Args: slices.Clone(p.req.Args), Dir: p.req.Dir,
		Started: p.started, Stdout: p.out.info(stdout), Stderr: p.out.info(stderr),
	}
	if p.terminal != nil {
		size := *p.terminal
		info.Terminal = &size
	}
	if !p.end.IsZero() {
		exit := p.exit
		info.Exit, info.Ended = &exit, p.end
	}
	return info
}

// running returns an error where the program has ended.
func (p *Process) running() error {
	select {
	case <-p.done:
		return fmt.Errorf("%w: program %s has ended", tranca.ErrGone, p.id)
	default:
		return nil
	}
}

// Signal sends a signal to the program, or to its process group. Errors wrap
// [tranca.ErrInvalid] or [tranca.ErrGone].
func (p *Process) Signal(ctx context.Context, sig tranca.Signal, group bool) error {
	if sig < 1 || sig > 64 {
		return fmt.Errorf("%w: signal %d: it is 1 to 64", tranca.ErrInvalid, sig)
	}
	return p.do(ctx, func(ctx context.Context) error {
		if group {
			return p.proc.SignalGroup(ctx, sig)
		}
		return p.proc.Signal(ctx, sig)
	})
}

// do does something with a program that runs, as a use of its session.
func (p *Process) do(ctx context.Context, f func(context.Context) error) error {
	done, err := p.s.use()
	if err != nil {
		return err
	}
	defer done()
	if err := p.running(); err != nil {
		return err
	}
	ctx, cancel := p.s.tie(ctx)
	defer cancel()
	return f(ctx)
}

// Resize changes the size of the program's terminal. Errors wrap
// [tranca.ErrInvalid], [tranca.ErrUnsupported] (no terminal) or [tranca.ErrGone].
func (p *Process) Resize(ctx context.Context, size tranca.TerminalSize) error {
	if err := checkSize(size); err != nil {
		return err
	}
	r, ok := tranca.As[tranca.Resizer](p.proc)
	if p.req.Terminal == nil || !ok {
		return fmt.Errorf("%w: program %s has no terminal", tranca.ErrUnsupported, p.id)
	}
	return p.do(ctx, func(ctx context.Context) error {
		if err := r.Resize(ctx, size); err != nil {
			return err
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.terminal = &size
		return nil
	})
}

// Write writes to the program's standard input and returns when all of it was
// taken. Two writes are never mixed; where ctx ends one, a part of it may have
// been taken. Errors wrap [tranca.ErrInvalid] (its input is empty),
// [tranca.ErrClosed] after CloseStdin, or [tranca.ErrGone].
func (p *Process) Write(ctx context.Context, b []byte) error {
	if p.in == nil {
		return fmt.Errorf("%w: program %s was started without an input to write to", tranca.ErrInvalid, p.id)
	}
	return p.do(ctx, func(ctx context.Context) error { return p.in.write(ctx, b) })
}

// CloseStdin ends the program's input after what was written; with a terminal
// it only says that nothing more is typed. Idempotent, and no error once the
// program has ended.
func (p *Process) CloseStdin(ctx context.Context) error {
	if p.in == nil || p.running() != nil {
		return nil //nolint:nilerr // it has ended
	}
	if err := p.do(ctx, p.in.closeWrite); !ended(err) {
		return err
	}
	return nil
}

// Wait returns how the program ended, after all its output. If ctx ends first
// its error is returned and the program goes on.
func (p *Process) Wait(ctx context.Context) (tranca.Exit, error) {
	defer p.s.occupy()()
	select {
	case <-p.done:
	default:
		select {
		case <-p.done:
		case <-ctx.Done():
			return tranca.Exit{Code: -1}, context.Cause(ctx)
		}
	}
	return p.exit, p.fault
}

// Follow begins to read the program's output. Close the follower.
func (p *Process) Follow(opts FollowOptions) *Follower { return p.out.follow(opts, p.s.occupy) }

func processID(n int) tranca.ProcessID { return tranca.ProcessID("p" + strconv.Itoa(n)) }
