package fake

import (
	"context"
	"fmt"
	"io"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"tranca"
)

// holdOpen is how long output that a descendant holds open delays Wait.
const holdOpen = 500 * time.Millisecond

// proc is one pretended process. The function that it runs calls its methods;
// each of them ends the function when the process is killed.
type proc struct {
	s       *sandbox
	pid     int
	started bool // by Start, and not by another process
	args    []string
	env     map[string]string
	dir     string
	stdin   io.Reader
	out     *pipe
	err     *pipe
	ignores map[tranca.Signal]bool
	// terminal is nil where it has none; s.mu guards it.
	terminal *sized
	group    *proc // whose process group it is in
	endGroup bool
	accept   chan conn // where it listens; s.mu guards it

	sig   atomic.Int32  // the signal that ends it
	dying chan struct{} // closed when it is to end
	die   sync.Once

	exit  tranca.Exit
	fault error
	done  chan struct{} // closed when Wait may return
}

// killed unwinds the function of a process.
type killed struct{ sig tranca.Signal }

func newProc(s *sandbox, cmd tranca.Command, dir string) *proc {
	env := maps.Clone(s.spec.Policy.Env)
	if env == nil {
		env = map[string]string{}
	}
	for name, value := range map[string]string{
		"HOME": s.spec.Policy.Workdir, "PATH": "/usr/bin:/bin", "USER": s.spec.Policy.User.Name,
		"LOGNAME": s.spec.Policy.User.Name, "LANG": "C.UTF-8", "PWD": dir,
	} {
		if _, set := env[name]; !set {
			env[name] = value
		}
	}
	maps.Copy(env, cmd.Env)
	p := &proc{
		s: s, args: cmd.Args, env: env, dir: dir, stdin: cmd.Stdin,
		out: newPipe(cmd.Stdout), err: newPipe(cmd.Stderr),
		ignores: map[tranca.Signal]bool{}, dying: make(chan struct{}), done: make(chan struct{}),
	}
	p.group, p.endGroup = p, cmd.EndGroup
	if cmd.Terminal != nil {
		p.terminal = &sized{*cmd.Terminal, make(chan struct{}, 1)}
	}
	return p
}

// run is the whole life of a process.
func (p *proc) run(main func(*proc) int) {
	code, sig := p.call(main)
	p.end(code, sig)
	p.leave()
	held := !p.out.release()
	held = !p.err.release() || held
	p.drain(held)
	close(p.done)
}

// drain waits until the outputs are written: for as long as that takes, unless
// somebody else holds one open or the process was killed.
func (p *proc) drain(held bool) {
	timer := time.NewTimer(holdOpen)
	defer timer.Stop()
	late := timer.C
	if !held && p.exit.Reason == tranca.EndExited {
		late = nil
	}
	for _, o := range []*pipe{p.out, p.err} {
		select {
		case <-o.drained:
		case <-late:
			return
		}
	}
}

// call runs the program and catches the end of a killed one.
func (p *proc) call(main func(*proc) int) (code int, sig tranca.Signal) {
	defer func() {
		switch end := recover().(type) {
		case nil:
		case killed:
			sig = end.sig
		default:
			panic(end)
		}
	}()
	return main(p), 0
}

// end settles how it ended, as the host sees it.
func (p *proc) end(code int, sig tranca.Signal) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	switch {
	case p.s.failed:
		p.fault = fmt.Errorf("%w: the guest agent died", tranca.ErrGone)
	case p.s.limit != "":
		p.exit = tranca.Exit{Code: -1, Signal: sig, Reason: p.s.limit}
	case sig != 0:
		p.exit = tranca.Exit{Code: -1, Signal: sig, Reason: tranca.EndSignaled}
	default:
		p.exit = tranca.Exit{Code: code & 0xff, Reason: tranca.EndExited}
	}
}

// leave takes the process out of the sandbox.
func (p *proc) leave() {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	delete(p.s.procs, p)
	if p.started {
		p.s.started--
	}
	for other := range p.s.procs {
		if p.endGroup && other.group == p {
			other.signal(tranca.SIGKILL)
		}
	}
	p.s.changed.Broadcast()
}

// signal delivers a signal; one that is not ignored ends the process.
func (p *proc) signal(sig tranca.Signal) {
	if sig != tranca.SIGKILL && p.ignores[sig] {
		return
	}
	p.die.Do(func() {
		p.sig.Store(int32(sig))
		close(p.dying)
	})
}

// ignore makes the process live on when it is sent a signal.
func (p *proc) ignore(sig tranca.Signal) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.ignores[sig] = true
}

// check ends the function of a process that is to end.
func (p *proc) check() {
	select {
	case <-p.dying:
		panic(killed{tranca.Signal(p.sig.Load())})
	default:
	}
}

func (p *proc) sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.dying:
		p.check()
	}
}

// write writes to one of its outputs and blocks while that is full.
func (p *proc) write(o *pipe, text string) {
	for len(text) > 0 {
		n := min(len(text), pipeChunk)
		select {
		case o.chunks <- []byte(text[:n]):
			text = text[n:]
		case <-p.dying:
			p.check()
		}
	}
}

// read reads its input; a Read that is under way when the process ends is
// abandoned.
func (p *proc) read(size int) ([]byte, error) {
	switch {
	case p.stdin == nil && p.terminal != nil:
		<-p.dying
		p.check()
	case p.stdin == nil:
		return nil, io.EOF
	}
	type got struct {
		b   []byte
		err error
	}
	c := make(chan got, 1)
	go func() {
		b := make([]byte, size)
		n, err := p.stdin.Read(b)
		if err != nil {
			err = io.EOF // a pipe doesn't carry errors
		}
		c <- got{b[:n], err}
	}()
	select {
	case g := <-c:
		if g.err != nil && len(g.b) == 0 && p.terminal != nil {
			<-p.dying // nothing more is typed, which is no end
			p.check()
		}
		return g.b, g.err
	case <-p.dying:
		p.check()
		return nil, io.EOF
	}
}

// fork starts a child that shares its outputs. It fails at the limit.
func (p *proc) fork(main func(*proc) int) bool {
	p.check()
	child := &proc{
		s: p.s, args: p.args, env: p.env, dir: p.dir, out: p.out.hold(), err: p.err.hold(), group: p.group,
		ignores: map[tranca.Signal]bool{}, dying: make(chan struct{}), done: make(chan struct{}),
	}
	p.s.mu.Lock()
	full := int64(len(p.s.procs)) >= p.s.spec.Policy.Limits.Processes
	if !full {
		p.s.addLocked(child)
	}
	p.s.mu.Unlock()
	if full {
		child.out.release()
		child.err.release()
		p.s.refused(tranca.HitPIDs)
		return false
	}
	go child.run(main)
	return true
}

func (p *proc) PID() int { return p.pid }

func (p *proc) Signal(_ context.Context, sig tranca.Signal) error {
	if p.s.b.opt.SignalErr != nil {
		if err := p.s.b.opt.SignalErr(); err != nil {
			return err
		}
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if _, alive := p.s.procs[p]; !alive {
		return fmt.Errorf("%w: process %d", tranca.ErrGone, p.pid)
	}
	p.signal(sig)
	return nil
}

func (p *proc) SignalGroup(ctx context.Context, sig tranca.Signal) error {
	return p.Signal(ctx, sig)
}

func (p *proc) Wait(ctx context.Context) (tranca.Exit, error) {
	select {
	case <-p.done:
		return p.exit, p.fault
	case <-ctx.Done():
		return tranca.Exit{}, context.Cause(ctx)
	}
}

const (
	pipeChunk  = 4 << 10
	pipeChunks = 16
)

// pipe is one output with room for 64 KiB.
type pipe struct {
	chunks  chan []byte
	drained chan struct{}

	mu    sync.Mutex
	users int
}

func newPipe(w io.Writer) *pipe {
	o := &pipe{chunks: make(chan []byte, pipeChunks), drained: make(chan struct{}), users: 1}
	go func() {
		defer close(o.drained)
		for chunk := range o.chunks {
			if w == nil {
				continue
			}
			if _, err := w.Write(chunk); err != nil {
				w = nil
			}
		}
	}()
	return o
}

func (o *pipe) hold() *pipe {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.users++
	return o
}

// release gives up one hold and reports whether it was the last.
func (o *pipe) release() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.users--
	if o.users == 0 {
		close(o.chunks)
	}
	return o.users == 0
}
