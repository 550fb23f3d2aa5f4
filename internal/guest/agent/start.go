package agent

import (
	"context"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tranca/internal/guest/message"
	"tranca/internal/guest/wire"
)

// proc is a running program.
type proc struct {
	config message.ProcessConfig
	tag    string
	child  Child

	stdinMu sync.Mutex // one writer at a time
	stdin   *os.File   // nil if it reads /dev/null
	term    *os.File   // the agent's end of its terminal, if it has one
}

// pipes are the standard files of a program. Close them when nobody reads any
// more.
type pipes struct {
	theirs [3]*os.File
	stdin  *os.File // nil if the program's stdin is /dev/null
	out    [2]int   // -1 if not open
	// polled are out in Go's poller; nil for those that a thread waits for.
	polled [2]*os.File
	term   *os.File // instead of stdin and polled: out[0] as a terminal
	stop   int      // an eventfd that ends the reading of out by threads
}

func (p *pipes) closeTheirs() {
	for i, f := range p.theirs {
		if f != nil {
			f.Close()
			p.theirs[i] = nil
		}
	}
}

func (p *pipes) close() {
	p.closeTheirs()
	if p.stdin != nil {
		p.stdin.Close()
	}
	for i, f := range []*os.File{p.polled[0], p.polled[1]} {
		if f != nil {
			f.Close()
			p.out[i] = -1
		}
	}
	if p.term != nil {
		p.term.Close()
		p.out[0] = -1
	}
	for _, fd := range []int{p.out[0], p.out[1], p.stop} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

// stopReading ends the pumps with what is in the pipes.
func (p *pipes) stopReading() {
	for _, f := range []*os.File{p.polled[0], p.polled[1], p.term} {
		if f != nil {
			_ = f.SetReadDeadline(passed)
		}
	}
	if p.stop >= 0 {
		_, _ = unix.Write(p.stop, []byte{0, 0, 0, 0, 0, 0, 0, 1})
	}
}

// pump sends one of the outputs.
func (p *pipes) pump(i int, side *wire.Stream) {
	kind := message.Stdout
	if i == 1 {
		kind = message.Stderr
	}
	switch {
	case p.term != nil && i == 0:
		p.pumpPolled(p.term, side, message.Terminal)
	case p.term != nil:
		_ = side.CloseSend()
	case p.polled[i] != nil:
		p.pumpPolled(p.polled[i], side, kind)
	default:
		pump(p.out[i], p.stop, side, kind)
	}
}

// start runs a program for the length of the call.
func (a *agent) start(c *wire.Call) error {
	var req message.StartRequest
	if err := receive(c, &req); err != nil {
		return err
	}
	if len(c.Sides) != 2 {
		return invalid("a start needs two side streams")
	}
	threaded, err := a.reserve()
	if err != nil {
		return err
	}
	// The place is free before anybody hears of the end, and who hears of it may
	// start the next one.
	ended := sync.OnceFunc(a.release)
	defer ended()
	if threaded {
		defer a.releaseThreads()
	}
	p, files, err := a.launch(&req, threaded)
	if err != nil {
		return err
	}
	defer files.close()
	a.enter(p)
	return a.follow(c, p, files, ended)
}

// reserve takes a place for one more program, and one for the threads that
// follow it if there is any.
func (a *agent) reserve() (threaded bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.running >= a.cfg.MaxProcesses {
		return false, busy(strconv.Itoa(a.running) + " programs are running, which is the most")
	}
	a.running++
	if threaded = a.threaded < mostThreaded; threaded {
		a.threaded++
	}
	return threaded, nil
}

func (a *agent) release() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running--
}

func (a *agent) releaseThreads() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.threaded--
}

func (a *agent) enter(p *proc) {
	a.mu.Lock()
	a.procs[uint32(p.child.PID())] = p
	a.mu.Unlock()
}

// leave forgets a program that has ended. Its pid may be another's by now.
func (a *agent) leave(p *proc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if pid := uint32(p.child.PID()); a.procs[pid] == p {
		delete(a.procs, pid)
	}
}

// launch checks the request and starts the program.
func (a *agent) launch(req *message.StartRequest, threaded bool) (*proc, *pipes, error) {
	prog := Program{Terminal: req.PTY != nil, Polled: !threaded, EndGroup: req.EndGroup, Dir: a.abs(req.Process.Cwd), Args: append([]string{req.Process.Cmd}, req.Process.Args...)}
	if err := checkRequest(req); err != nil {
		return nil, nil, err
	}
	prog.Env = mergeEnv(a.cfg.Env, req.Process.Envs, prog.Dir)
	if prog.Terminal && lookupEnv(prog.Env, "TERM") == "" {
		prog.Env = append(prog.Env, defaultTerm)
	}
	var files *pipes
	err := a.id.do(func() (err error) {
		if err = checkDir(prog.Dir); err != nil {
			return err
		}
		if prog.Path, err = a.lookup(req.Process.Cmd); err != nil {
			return err
		}
		// Made with the code's user, so that it can open /dev/stdout anew.
		if prog.Terminal {
			files, err = openTerminal(req.PTY)
		} else {
			files, err = makePipes(!req.NoStdin, threaded)
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	prog.Stdin, prog.Stdout, prog.Stderr = files.theirs[0], files.theirs[1], files.theirs[2]
	child, err := a.cfg.Launcher.Launch(prog)
	files.closeTheirs()
	if err != nil {
		files.close()
		return nil, nil, onPath("starting", prog.Path, err)
	}
	return &proc{config: req.Process, tag: req.Tag, child: child, stdin: files.stdin, term: files.term}, files, nil
}

// checkRequest refuses what the kernel would take for something else.
func checkRequest(req *message.StartRequest) error {
	c := &req.Process
	if c.Cmd == "" {
		return invalid("the program's name is empty")
	}
	if strings.IndexByte(c.Cmd, 0) >= 0 || strings.IndexByte(c.Cwd, 0) >= 0 {
		return invalid("a NUL in the program's name or its working directory")
	}
	for i, arg := range c.Args {
		if strings.IndexByte(arg, 0) >= 0 {
			return invalid("a NUL in argument " + strconv.Itoa(i+1))
		}
	}
	for name, value := range c.Envs {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.IndexByte(value, 0) >= 0 {
			return invalid("environment variable " + strconv.Quote(name) + ": an empty name, a '=' in it, or a NUL")
		}
	}
	return nil
}

func checkDir(dir string) error {
	fd, err := openAt(unix.AT_FDCWD, dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err == syscall.ENOENT || err == syscall.ENOTDIR {
		return invalid("working directory " + strconv.Quote(dir) + " does not exist")
	}
	if err != nil {
		return onPath("entering", dir, err)
	}
	return unix.Close(fd)
}

// lookup finds a program that is named without a slash.
func (a *agent) lookup(name string) (string, error) {
	if strings.IndexByte(name, '/') >= 0 {
		return name, nil
	}
	var denied error
	for dir := range strings.SplitSeq(a.cfg.Path, ":") {
		if !strings.HasPrefix(dir, "/") {
			continue
		}
		path := dir + "/" + name
		var st unix.Stat_t
		if unix.Stat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
			continue
		}
		if st.Mode&0o111 != 0 {
			return path, nil
		}
		denied = onPath("starting", path, syscall.EACCES)
	}
	if denied != nil {
		return "", denied
	}
	return "", &wire.Error{Code: wire.CodeNotFound, Message: "program " + strconv.Quote(name) + " is not in PATH"}
}

func lookupEnv(env []string, name string) string {
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// mergeEnv puts the request's variables over the base. PWD follows dir unless
// the request says otherwise.
func mergeEnv(base []string, add map[string]string, dir string) []string {
	env := make([]string, 0, len(base)+len(add)+1)
	for _, kv := range base {
		name, _, _ := strings.Cut(kv, "=")
		if _, over := add[name]; !over && name != "PWD" {
			env = append(env, kv)
		}
	}
	for name, value := range add {
		env = append(env, name+"="+value)
	}
	if _, over := add["PWD"]; !over {
		env = append(env, "PWD="+dir)
	}
	return env
}

// follow tells the program's events until its end, and calls ended at that.
func (a *agent) follow(c *wire.Call, p *proc, files *pipes, ended func()) error {
	ctx := context.Background()
	first := message.StartResponse{Event: message.ProcessEvent{Start: &message.StartEvent{PID: uint32(p.child.PID())}}}
	// Whoever isn't there to hear it has reset the call, which is seen below.
	_ = c.Send(ctx, first.Append(nil), false)

	var feeding, pumping sync.WaitGroup
	feeding.Go(func() { p.feed(c.Stream) })
	for i, side := range c.Sides {
		pumping.Go(func() { files.pump(i, side) })
	}
	status, err := a.await(c, p)
	a.leave(p)
	ended()
	p.endInput()
	finishOutput(c, files, &pumping)
	if err == nil {
		last := message.StartResponse{Event: message.ProcessEvent{End: endEvent(status)}}
		err = c.Send(ctx, last.Append(nil), true)
	}
	if err != nil {
		e := toWire(err)
		c.Reset(e.Code, e.Message)
	}
	c.Close()
	feeding.Wait()
	return nil
}

// prompt is how long the end of a program may wait for its output before the
// host is told of it. Most never wait that long.
const prompt = 3 * time.Millisecond

// finishOutput waits until the output of a program that has ended was sent. A host that
// takes its time is told of the end meanwhile.
func finishOutput(c *wire.Call, files *pipes, pumping *sync.WaitGroup) {
	drained := make(chan struct{})
	go func() {
		pumping.Wait()
		close(drained)
	}()
	timer := time.NewTimer(prompt)
	defer timer.Stop()
	select {
	case <-drained:
		return
	case <-timer.C:
	}
	notice := message.StartResponse{Event: message.ProcessEvent{Ended: true}}
	// Whoever isn't there to hear it has reset the call.
	_ = c.Send(context.Background(), notice.Append(nil), false)
	timer.Reset(grace - prompt)
	select {
	case <-drained:
	case <-timer.C:
		// A descendant holds the output open. What is in the pipe still counts.
		files.stopReading()
		<-drained
	}
}

// await waits for the program's end, and kills it when nobody follows it any
// more.
func (a *agent) await(c *wire.Call, p *proc) (Status, error) {
	type result struct {
		status Status
		err    error
	}
	waited := make(chan result, 1)
	go func() {
		status, err := p.child.Wait()
		waited <- result{status, err}
	}()
	select {
	case r := <-waited:
		return r.status, r.err
	case <-c.Reseted():
	case <-a.sess.Done():
	}
	if a.cfg.Outlive > 0 {
		select {
		case r := <-waited:
			return r.status, r.err
		case <-time.After(a.cfg.Outlive):
		}
	}
	_ = p.child.Signal(int(unix.SIGKILL), true)
	r := <-waited
	return r.status, r.err
}

func endEvent(s Status) *message.EndEvent {
	e := &message.EndEvent{ExitCode: int32(s.Code), Exited: s.Signal == 0, Signal: uint32(s.Signal)}
	switch {
	case s.Signal != 0:
		e.ExitCode = -1
		e.Status = "signal: " + strconv.Itoa(s.Signal)
		e.Error = e.Status
	default:
		e.Status = "exit status " + strconv.Itoa(s.Code)
		if s.Code != 0 {
			e.Error = e.Status
		}
	}
	return e
}
