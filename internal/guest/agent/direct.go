package agent

import (
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Direct starts programs as plain children in a session, and so a process
// group, of their own. It confines nothing by itself. The zero value works.
type Direct struct {
	// Attr, where set, changes the attributes of a child: its credentials, a
	// chroot. It must leave Setsid and PidFD as they are.
	Attr func(*syscall.SysProcAttr)
	// Rewrite, where set, changes what is started: it may put a program in
	// front that sets resource limits and then executes the real one.
	Rewrite func(Program) (Program, error)
}

// Launch starts p.
func (d Direct) Launch(p Program) (Child, error) {
	if d.Rewrite != nil {
		var err error
		if p, err = d.Rewrite(p); err != nil {
			return nil, err
		}
	}
	pidfd := -1
	attr := &syscall.SysProcAttr{Setsid: true, PidFD: &pidfd, Setctty: p.Terminal}
	if d.Attr != nil {
		d.Attr(attr)
	}
	pid, err := syscall.ForkExec(p.Path, p.Args, &syscall.ProcAttr{
		Dir: p.Dir, Env: p.Env, Sys: attr,
		Files: []uintptr{p.Stdin.Fd(), p.Stdout.Fd(), p.Stderr.Fd()},
	})
	if err != nil {
		return nil, err
	}
	c := &directChild{pid: pid, endGroup: p.EndGroup}
	if pidfd >= 0 {
		// Not blocking, so that waiting costs no thread.
		_ = syscall.SetNonblock(pidfd, true)
		c.pidfd = os.NewFile(uintptr(pidfd), "pidfd")
	}
	return c, nil
}

type directChild struct {
	pid      int
	pidfd    *os.File // nil where the kernel gives none
	endGroup bool

	mu     sync.Mutex // a pid may be signalled only while it isn't reaped
	reaped bool
	status Status
}

func (c *directChild) PID() int { return c.pid }

func (c *directChild) Wait() (Status, error) {
	if c.pidfd == nil {
		return c.waitBlocking()
	}
	defer c.pidfd.Close()
	conn, err := c.pidfd.SyscallConn()
	if err != nil {
		return c.waitBlocking()
	}
	var waitErr error
	err = conn.Read(func(uintptr) bool {
		var done bool
		done, waitErr = c.reap()
		return done || waitErr != nil
	})
	if err != nil {
		return c.waitBlocking()
	}
	return c.status, waitErr
}

func (c *directChild) waitBlocking() (Status, error) {
	for {
		err := unix.Waitid(unix.P_PID, c.pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return Status{}, err
		}
		if done, err := c.reap(); done || err != nil {
			return c.status, err
		}
	}
}

// reap takes the status if the child has ended.
func (c *directChild) reap() (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.endGroup && c.ended() {
		_ = syscall.Kill(-c.pid, syscall.SIGKILL) // no error: it may be empty
	}
	var ws syscall.WaitStatus
	pid, err := syscall.Wait4(c.pid, &ws, syscall.WNOHANG, nil)
	if err == syscall.EINTR || (err == nil && pid == 0) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	c.reaped = true
	if ws.Signaled() {
		c.status = Status{Code: -1, Signal: int(ws.Signal())}
	} else {
		c.status = Status{Code: ws.ExitStatus()}
	}
	return true, nil
}

// ended reports whether the child has ended and waits to be reaped.
func (c *directChild) ended() bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, c.pid, &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
	return err == nil && info.Signo != 0
}

func (c *directChild) Signal(sig int, group bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reaped {
		return syscall.ESRCH
	}
	pid := c.pid
	if group {
		pid = -pid
	}
	return syscall.Kill(pid, syscall.Signal(sig))
}
