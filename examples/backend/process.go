package hostexec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"tranca"
)

// limited sets resource limits on itself and becomes the program. At the soft
// limit of CPU time it is told by SIGXCPU, a second later it is killed.
const limited = `ulimit -S -t "$1" && ulimit -H -t $(($1 + 1)) && ulimit -n "$2" && ulimit -f "$3" && shift 3 && exec "$@"`

const searchPath = "/usr/bin:/bin"

// process is a started program.
type process struct {
	s    *sandbox
	cmd  *exec.Cmd
	done chan struct{}
	exit tranca.Exit
	err  error

	mu   sync.Mutex
	over bool // it has been waited for: its number may be somebody else's
}

// start is called with the sandbox locked.
func start(s *sandbox, c tranca.Command) (*process, error) {
	if c.Terminal != nil {
		return nil, fmt.Errorf("%w: a terminal", tranca.ErrUnsupported)
	}
	dir, err := s.folder(c.Dir)
	if err != nil {
		return nil, err
	}
	program, err := find(c.Args[0])
	if err != nil {
		return nil, err
	}
	l := s.spec.Policy.Limits
	seconds := int64((l.CPUTime + time.Second - 1) / time.Second)
	args := []string{
		"-c", limited, "sh", strconv.FormatInt(seconds, 10),
		strconv.FormatInt(l.OpenFiles, 10), strconv.FormatInt(l.FileSize/512, 10), program,
	}
	cmd := exec.Command("/bin/sh", append(args, c.Args[1:]...)...)
	cmd.Dir, cmd.Env = dir, s.environment(c, dir)
	cmd.Stdout, cmd.Stderr = output(c.Stdout), output(c.Stderr)
	cmd.SysProcAttr = attributes()
	// What holds the streams open after the program's end, a descendant, a
	// reader or a writer that hangs, is not waited for longer than this.
	cmd.WaitDelay = 500 * time.Millisecond
	var feed io.WriteCloser
	if c.Stdin != nil {
		if feed, err = cmd.StdinPipe(); err != nil {
			return nil, fmt.Errorf("%w: %w", tranca.ErrUnavailable, err)
		}
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%w: %w", tranca.ErrUnavailable, err)
	}
	if feed != nil {
		go func() {
			// Wait closes the pipe too, and waits for no reader that hangs.
			_, _ = io.Copy(feed, c.Stdin)
			feed.Close()
		}()
	}
	p := &process{s: s, cmd: cmd, done: make(chan struct{})}
	go p.wait(l.CPUTime)
	return p, nil
}

// attributes give a process group, and a network namespace without a network.
func attributes() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true, Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: 0}
	if os.Geteuid() != 0 {
		a.Cloneflags |= syscall.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	}
	return a
}

// folder returns where a program starts.
func (s *sandbox) folder(dir string) (string, error) {
	name, err := inside(dir)
	if dir == "" || dir == s.spec.Policy.Workdir {
		name, err = ".", nil
	}
	if err != nil {
		return "", err
	}
	info, err := s.root.Stat(name)
	if err != nil || !info.IsDir() {
		return "", fmt.Errorf("%w: folder %q", tranca.ErrNotFound, dir)
	}
	return filepath.Join(s.dir, name), nil
}

// find looks a program up.
func find(name string) (string, error) {
	tries := []string{name}
	if filepath.Base(name) == name {
		tries = nil
		for _, dir := range filepath.SplitList(searchPath) {
			tries = append(tries, filepath.Join(dir, name))
		}
	}
	for _, path := range tries {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w: program %q", tranca.ErrNotFound, name)
}

func (s *sandbox) environment(c tranca.Command, dir string) []string {
	p := s.spec.Policy
	env := map[string]string{
		"HOME": dir, "PATH": searchPath, "USER": p.User.Name, "LOGNAME": p.User.Name,
		"LANG": "C.UTF-8", "PWD": dir, "TMPDIR": s.dir,
	}
	maps.Copy(env, p.Env)
	maps.Copy(env, c.Env)
	list := []string{}
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	return list
}

// output hides failures of a writer: the rest is dropped.
func output(w io.Writer) io.Writer {
	if w == nil {
		return nil
	}
	return &writer{w: w}
}

type writer struct{ w io.Writer }

func (w *writer) Write(p []byte) (int, error) {
	if w.w != nil {
		if _, err := w.w.Write(p); err != nil {
			w.w = nil
		}
	}
	return len(p), nil
}

// wait waits for the end, kills what the program left in its group, and says
// how it ended.
func (p *process) wait(limit time.Duration) {
	err := p.cmd.Wait()
	p.mu.Lock()
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	p.over = true
	p.mu.Unlock()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) && !errors.Is(err, exec.ErrWaitDelay) {
		p.err = fmt.Errorf("%w: %w", tranca.ErrGone, err)
	}
	state := p.cmd.ProcessState
	cpu := state.UserTime() + state.SystemTime()
	p.exit = ending(state, cpu >= limit)
	p.s.ended(p, cpu, p.exit)
	close(p.done)
}

func ending(state *os.ProcessState, overCPU bool) tranca.Exit {
	status, ok := state.Sys().(syscall.WaitStatus)
	switch {
	case !ok:
		return tranca.Exit{Code: -1, Reason: tranca.EndError}
	case !status.Signaled():
		return tranca.Exit{Code: status.ExitStatus(), Reason: tranca.EndExited}
	}
	reason := tranca.EndSignaled
	if sig := status.Signal(); sig == syscall.SIGXCPU || overCPU && sig == syscall.SIGKILL {
		reason = tranca.EndCPU
	}
	return tranca.Exit{Code: -1, Signal: tranca.Signal(status.Signal()), Reason: reason}
}

func (p *process) PID() int { return p.cmd.Process.Pid }

func (p *process) Signal(_ context.Context, sig tranca.Signal) error { return p.send(p.PID(), sig) }

func (p *process) SignalGroup(_ context.Context, sig tranca.Signal) error {
	return p.send(-p.PID(), sig)
}

func (p *process) send(pid int, sig tranca.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if sig < 1 || sig > 64 {
		return fmt.Errorf("%w: signal %d", tranca.ErrInvalid, sig)
	}
	select {
	case <-p.done:
		return fmt.Errorf("%w: process %d", tranca.ErrGone, p.PID())
	default:
	}
	if p.over {
		return fmt.Errorf("%w: process %d", tranca.ErrGone, p.PID())
	}
	if err := syscall.Kill(pid, syscall.Signal(sig)); err != nil {
		return fmt.Errorf("%w: process %d: %w", tranca.ErrGone, p.PID(), err)
	}
	return nil
}

func (p *process) kill() { _ = p.send(-p.PID(), tranca.SIGKILL) }

func (p *process) Wait(ctx context.Context) (tranca.Exit, error) {
	select {
	case <-p.done:
		return p.exit, p.err
	case <-ctx.Done():
		return tranca.Exit{}, context.Cause(ctx)
	}
}

// class gives an error of the file system one of tranca's classes.
func class(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %w", tranca.ErrNotFound, err)
	case errors.Is(err, fs.ErrExist), errors.Is(err, syscall.ENOTEMPTY):
		return fmt.Errorf("%w: %w", tranca.ErrExists, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: %w", tranca.ErrRefused, err)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w: %w", tranca.ErrNoSpace, err)
	}
	return fmt.Errorf("%w: %w", tranca.ErrInvalid, err)
}
