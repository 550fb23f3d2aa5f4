package boot

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"tranca/internal/guest/bootspec"
	"tranca/internal/linux/forkexec"
	"tranca/internal/linux/landlock"
	"tranca/internal/linux/mount"
	"tranca/internal/linux/netns"
)

// enterContained is the boot inside a root and namespaces that somebody else
// has made: a container engine or a kernel in user space. The agent is the
// first process there, and reaps.
func enterContained(spec *bootspec.Spec) (*launcher, mount.Tree, error) {
	none := mount.FromFD(-1)
	if os.Getpid() != 1 && !spec.Omit.Has(bootspec.Processes) {
		return nil, none, errors.New("the guest agent is not the first process here")
	}
	if spec.AgentUID != 0 || (spec.CodeUID == 0 || spec.CodeGID == 0) && !spec.Omit.Has(bootspec.Users) {
		return nil, none, errors.New("agent and code need users of their own")
	}
	if spec.Hostname != "" {
		if err := unix.Sethostname([]byte(spec.Hostname)); err != nil {
			return nil, none, os.NewSyscallError("sethostname", err)
		}
	}
	if err := makeGuestGroup(spec); err != nil {
		return nil, none, fmt.Errorf("cgroup: %w", err)
	}
	_ = netns.RaiseLoopback() // mostly it is up already, and there is no right to raise it
	if spec.Audit {
		if err := auditRights(spec); err != nil {
			return nil, none, fmt.Errorf("rights: %w", err)
		}
		if err := audit(spec); err != nil {
			return nil, none, fmt.Errorf("root: %w", err)
		}
	}
	l, err := newLauncher(spec)
	if err != nil {
		return nil, none, fmt.Errorf("launcher: %w", err)
	}
	if err := l.watchThreads(); err != nil {
		return nil, none, fmt.Errorf("launcher: %w", err)
	}
	if err := l.restrictContained(); err != nil {
		return nil, none, err
	}
	if err := settle(spec); err != nil {
		return nil, none, fmt.Errorf("privileges: %w", err)
	}
	if err := holdTasks(spec.Tasks); err != nil {
		return nil, none, fmt.Errorf("threads: %w", err)
	}
	l.reaper = newReaper()
	go l.reaper.run()
	return l, none, nil
}

// restrictContained gives the calling thread, and what it forks, what the
// engine has not given.
func (l *launcher) restrictContained() error {
	omits := l.spec.Omit.Has(bootspec.Privileges)
	// Only who has rights in a namespace of its own gets a filter without it.
	if !omits || !l.spec.Insulate {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return os.NewSyscallError("no_new_privs", err)
		}
	}
	if !omits {
		if err := dropBounding(); err != nil {
			return err
		}
	}
	l.victim = newVictim()
	if l.spec.Insulate {
		var err error
		if l.users, err = insulate(l.spec); err != nil {
			return fmt.Errorf("user namespace: %w", err)
		}
	}
	if l.spec.Landlock < 0 {
		return nil
	}
	if err := restrict(containedRules(l.spec), l.spec.Landlock); err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	return nil
}

// containedRules repeat in the kernel's second layer that only the declared
// places are written to. What there is to read is the image's.
func containedRules(spec *bootspec.Spec) []landlock.Rule {
	rules := []landlock.Rule{
		{Path: "/", Access: landlock.ReadExec},
		{Path: "/dev", Access: landlock.Terminal},
	}
	for _, w := range spec.Writable {
		rules = append(rules, landlock.Rule{Path: w.Path, Access: landlock.ReadWrite})
	}
	return rules
}

// reaper waits for every process of which this one is the parent: programs,
// and what they leave behind, which becomes a child of the first process. It
// alone waits, since a wait that is meant for one child can't pass over another
// that nobody waits for.
type reaper struct {
	mu    sync.Mutex // held over a fork, so that no end comes before its beginning
	known map[int]*child
	some  *sync.Cond // signalled when there may be a child
}

func newReaper() *reaper {
	r := &reaper{known: map[int]*child{}}
	r.some = sync.NewCond(&r.mu)
	return r
}

// spawn forks by the script and keeps the child's place for its end.
func (r *reaper) spawn(s *forkexec.Script, endGroup bool) (*child, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.some.Signal()
	c, err := s.Spawn()
	if err != nil {
		return nil, err
	}
	started := &child{pid: c.PID, inner: c.Inner, pidfd: -1, endGroup: endGroup, reaped: make(chan unix.WaitStatus, 1)}
	r.known[c.PID] = started
	return started, nil
}

// run reaps for as long as the agent lives.
func (r *reaper) run() {
	for {
		var info unix.Siginfo
		// Without reaping, so that no signal meets a pid that is somebody
		// else's by then.
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOWAIT|unix.WALL, nil)
		switch err {
		case nil:
			r.reap()
		case unix.ECHILD:
			r.await()
		}
	}
}

// await returns when there may be children. Orphans come only from programs,
// which are children themselves.
func (r *reaper) await() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG|unix.WALL, nil); err == unix.ECHILD {
		r.some.Wait()
	}
}

// reap takes the end of one child.
func (r *reaper) reap() {
	r.mu.Lock()
	defer r.mu.Unlock()
	var info unix.Siginfo
	if err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG|unix.WALL, nil); err != nil {
		return
	}
	pid := infoPID(&info)
	if pid <= 0 {
		return
	}
	c := r.known[pid]
	delete(r.known, pid)
	if c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.gone = true
		if c.endGroup {
			_ = unix.Kill(-c.pid, unix.SIGKILL) // no error: it may be empty
		}
	}
	ws, err := forkexec.Wait(pid)
	if c != nil && err == nil {
		c.reaped <- ws
	}
}

// killAllContained ends every program and returns when none is left. The agent
// does it itself: where programs have taken every place that the control group
// has, it could fork nobody. The kernel leaves out the first process and the
// caller, and the agent is both; no fork escapes, as it is done in one go.
func killAllContained() error {
	for range killRounds {
		err := unix.Kill(-1, unix.SIGKILL)
		if err == unix.ESRCH {
			return nil
		}
		if err != nil {
			return os.NewSyscallError("kill", err)
		}
		time.Sleep(time.Millisecond) // for the reaper
	}
	return errors.New("programs do not die")
}

// spawnKnown forks from the launcher's thread and has the reaper wait.
func (l *launcher) spawnKnown(s *forkexec.Script, endGroup bool) (c *child, err error) {
	done := make(chan struct{})
	l.tasks <- func() {
		defer close(done)
		err = l.victim.during(func() (err error) { c, err = l.reaper.spawn(s, endGroup); return err })
	}
	<-done
	return c, err
}

// pipes is a stream of two descriptors: a container engine gives no other.
type pipes struct{ in, out *os.File }

var _ io.ReadWriteCloser = pipes{}

func (p pipes) Read(b []byte) (int, error)  { return p.in.Read(b) }
func (p pipes) Write(b []byte) (int, error) { return p.out.Write(b) }
func (p pipes) Close() error                { return errors.Join(p.in.Close(), p.out.Close()) }

// takeStdio makes a stream of standard input and output, and leaves those
// empty, so that no program can ever inherit it.
func takeStdio() (pipes, error) {
	var fds [2]int
	for i := range fds {
		fd, err := unix.FcntlInt(uintptr(i), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			return pipes{}, os.NewSyscallError("dup", err)
		}
		fds[i] = fd
	}
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return pipes{}, os.NewSyscallError("open null", err)
	}
	defer unix.Close(null)
	for i := range fds {
		if err := unix.Dup3(null, i, 0); err != nil {
			return pipes{}, os.NewSyscallError("dup", err)
		}
		if err := unix.SetNonblock(fds[i], true); err != nil {
			return pipes{}, os.NewSyscallError("set non-blocking", err)
		}
	}
	return pipes{os.NewFile(uintptr(fds[0]), "stream"), os.NewFile(uintptr(fds[1]), "stream")}, nil
}
