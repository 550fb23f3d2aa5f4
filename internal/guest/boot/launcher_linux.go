package boot

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tranca/internal/guest/agent"
	"tranca/internal/guest/bootspec"
	"tranca/internal/linux/forkexec"
	"tranca/internal/linux/landlock"
	"tranca/internal/linux/seccomp"
)

// launcher starts programs from one thread, the one that boots, which is locked
// down when that is done: it has the code's pid and cgroup namespaces for its
// children, the code's Landlock domain, an empty bounding set and no_new_privs.
// What it forks has all of that from its first instruction; the rest (user,
// limits, filter) the child does by itself.
//
// All programs share one Landlock domain, so that one may signal another.
type launcher struct {
	spec   *bootspec.Spec
	filter []unix.SockFilter
	tasks  chan func()

	// Of a contained agent alone, which is the first process:
	reaper *reaper
	victim *victim
	users  int // the user namespace of the programs; 0 is the agent's

	// threads is /proc/self/task, where no namespace holds the programs; see ends.
	threads *os.File
}

// newLauncher makes the calling thread, which is its caller's for good, the one
// that starts programs: it boots, and serves afterwards. A thread beside it
// would be waited for at each turn.
func newLauncher(spec *bootspec.Spec) (*launcher, error) {
	// Never unlocked: the thread's state must not reach other goroutines.
	runtime.LockOSThread()
	l := &launcher{spec: spec, tasks: make(chan func())}
	if spec.Contained && len(spec.Filter) == 0 {
		return l, nil // whoever made the root filters too
	}
	var err error
	if l.filter, err = seccomp.FromBytes(spec.Filter); err != nil {
		return nil, err
	}
	if spec.Contained {
		return l, nil // in whatever groups its engine has put it
	}
	return l, l.enterCgroupNamespace()
}

// serve starts programs from the calling thread until ended is closed.
func (l *launcher) serve(ended <-chan struct{}) {
	runtime.LockOSThread()
	for {
		select {
		case f := <-l.tasks:
			f()
		case <-ended:
			return
		}
	}
}

// restrict gives the thread all that its children shall have.
func (l *launcher) restrict(init forkexec.Child) error {
	if !l.spec.Omit.Has(bootspec.Processes) {
		if err := unix.Setns(init.PIDFD, unix.CLONE_NEWPID); err != nil {
			return os.NewSyscallError("setns pid", err)
		}
	}
	if !l.spec.Omit.Has(bootspec.Privileges) {
		if err := dropBounding(); err != nil {
			return err
		}
	}
	if l.spec.Landlock >= 0 {
		if err := l.restrictFiles(); err != nil {
			return fmt.Errorf("landlock: %w", err)
		}
	}
	if err := threadCaps(remaining(l.spec)); err != nil {
		return err
	}
	return dieWithParent(l.spec)
}

// dropBounding empties the bounding set of the calling thread.
func dropBounding() error {
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && err != unix.EINVAL {
			return os.NewSyscallError("drop bounding set", err)
		}
	}
	return nil
}

// dieWithParent has the kernel kill the agent when its supervisor dies. It was
// asked for before the exec, but the kernel forgets it when a thread becomes
// another user. Each thread has its own, and one is enough; the calling one
// must stay, and stay the user that it is.
func dieWithParent(spec *bootspec.Spec) error {
	if spec.DeathSignal == 0 {
		return errors.New("no parent death signal")
	}
	return os.NewSyscallError("parent death signal", unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(spec.DeathSignal), 0, 0, 0))
}

// enterCgroupNamespace gives the thread's children a cgroup namespace whose
// root is the code's cgroup, so that their paths do not show the host's. The
// namespace is made by a child that joined the cgroup, for its root is where
// its maker is.
func (l *launcher) enterCgroupNamespace() error {
	if bornInGroup(l.spec) {
		return nil // each program does it at its birth
	}
	if len(l.spec.TaskFDs) == 0 {
		// No group of its own; the caller's path is still nobody's business.
		return os.NewSyscallError("unshare cgroup", unix.Unshare(unix.CLONE_NEWCGROUP))
	}
	s := forkexec.New(0)
	l.join(s)
	s.Unshare(unix.CLONE_NEWCGROUP)
	s.Open("/proc/self/ns/cgroup")
	s.Exit()
	c, err := s.Spawn()
	if err != nil {
		return fmt.Errorf("cgroup namespace: %w", err)
	}
	defer unix.Close(c.Opened)
	err = os.NewSyscallError("setns cgroup", unix.Setns(c.Opened, unix.CLONE_NEWCGROUP))
	_, waitErr := forkexec.Wait(c.PID)
	return errors.Join(err, waitErr)
}

func (l *launcher) join(s *forkexec.Script) {
	if l.spec.CodeCgroupFD != 0 {
		s.IntoCgroup(l.spec.CodeCgroupFD)
	}
	for _, fd := range l.spec.TaskFDs {
		s.Join(fd)
	}
}

// restrictFiles puts the thread, and so all code, into a Landlock domain that
// repeats in the kernel's second layer what the mounts say in the first: what
// was not meant to be there, such as a mount left by mistake, can be listed
// but not read.
func (l *launcher) restrictFiles() error {
	rules := []landlock.Rule{
		{Path: "/", Access: landlock.List},
		{Path: "/etc", Access: landlock.Read},
		{Path: "/proc", Access: landlock.Read},
		{Path: "/work", Access: landlock.ReadWrite},
		{Path: "/tmp", Access: landlock.ReadWrite},
		{Path: "/dev", Access: landlock.Terminal},
		{Path: "/dev/shm", Access: landlock.ReadWrite},
	}
	for _, b := range l.spec.Binds {
		switch {
		case b.Device || strings.HasPrefix(b.Target, "etc/"):
			// in a folder that has a rule
		case b.Writable:
			rules = append(rules, landlock.Rule{Path: "/" + b.Target, Access: landlock.ReadWrite})
		default:
			rules = append(rules, landlock.Rule{Path: "/" + b.Target, Access: landlock.ReadExec})
		}
	}
	return restrict(rules, l.spec.Landlock)
}

// restrict puts the calling thread into a Landlock domain.
func restrict(rules []landlock.Rule, minABI int) error {
	set, err := landlock.NewRuleset(landlock.Config{Rules: rules, MinABI: minABI})
	if err != nil {
		return err
	}
	defer set.Close()
	return landlock.Restrict(int(set.Fd()))
}

// Launch starts a program. See [agent.Launcher].
func (l *launcher) Launch(p agent.Program) (agent.Child, error) {
	s := forkexec.New(0)
	if p.Polled && l.reaper == nil {
		s.WithPIDFD()
	}
	s.RecordPID()
	l.join(s)
	if bornInGroup(l.spec) {
		s.Unshare(unix.CLONE_NEWCGROUP)
	}
	s.Setsid()
	s.Files([]int{int(p.Stdin.Fd()), int(p.Stdout.Fd()), int(p.Stderr.Fd())})
	if p.Terminal {
		s.ControllingTerminal(0)
	}
	for _, r := range l.spec.Rlimits {
		s.Rlimit(r.Resource, r.Soft, r.Hard)
	}
	s.Umask(0o22)
	switch {
	case l.users > 0:
		s.EnterUsers(l.users)
		l.become(s, l.spec.InsideUID, l.spec.InsideGID)
	case l.spec.AgentUID == 0:
		l.become(s, l.spec.CodeUID, l.spec.CodeGID)
	}
	l.giveUp(s)
	s.Chdir(p.Dir)
	if !l.spec.Plain && !(l.spec.Contained && l.filter == nil) {
		s.Seccomp(l.filter)
	}
	if l.ends() {
		// For an agent that is killed; one whose host goes ends all itself.
		s.ParentDeathSignal(unix.SIGKILL)
	}
	s.Exec(p.Path, p.Args, p.Env)
	if l.reaper != nil {
		c, err := l.spawnKnown(s, p.EndGroup)
		runtime.KeepAlive(p)
		if err != nil {
			return nil, err
		}
		return c, nil
	}

	c, err := l.spawn(s)
	runtime.KeepAlive(p)
	if err != nil {
		return nil, err
	}
	started := &child{pid: c.PID, inner: c.Inner, pidfd: c.PIDFD, endGroup: p.EndGroup}
	if c.Inner <= 0 {
		// A kill of everything came before its first step. Nobody knows it.
		_, _ = started.Wait()
		return nil, unix.EAGAIN
	}
	return started, nil
}

// become makes a program the code's user, in a user namespace of its own without
// a capability that it could get back.
func (l *launcher) become(s *forkexec.Script, uid, gid uint32) {
	switch {
	case l.spec.Omit.Has(bootspec.Privileges):
		s.KeepCapabilities()
	case l.users > 0:
		s.DropBounding()
	}
	s.User(uid, gid)
}

// giveUp has a program give up every right that the launcher has.
func (l *launcher) giveUp(s *forkexec.Script) {
	if l.spec.Omit.Has(bootspec.Privileges) {
		s.Capabilities(keptCaps(l.spec))
		s.Ambient(keptCaps(l.spec))
		return
	}
	s.ClearAmbient()
	s.Capabilities(0)
	s.NoNewPrivileges()
}

// KillAll ends every program. See [agent.Killer]. One kill reaches all that
// there are; it is repeated until the last of them has been reaped.
func (l *launcher) KillAll() error {
	switch {
	case l.ends():
		return l.killOwn()
	case l.reaper != nil:
		return killAllContained()
	}
	for range killRounds {
		s := forkexec.New(0).WithPIDFD()
		s.KillAll()
		s.Exit()
		c, err := l.spawn(s)
		if errors.Is(err, unix.ESRCH) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := c.Reap(); err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	return errors.New("programs do not die")
}

// killRounds of a millisecond and more are what dying programs get.
const killRounds = 2000

func (l *launcher) spawn(s *forkexec.Script) (c forkexec.Child, err error) {
	done := make(chan struct{})
	l.tasks <- func() { c, err = s.Spawn(); close(done) }
	<-done
	return c, err
}

// child is a started program. It is the agent's own child, so its pid can't
// be reused before Wait has reaped it; mu orders signals and that.
type child struct {
	pid, inner int
	pidfd      int // -1 where a thread waits
	endGroup   bool
	reaped     chan unix.WaitStatus // where a reaper waits
	mu         sync.Mutex
	gone       bool
}

func (c *child) PID() int { return c.inner }

func (c *child) Wait() (agent.Status, error) {
	if c.reaped != nil {
		return status(<-c.reaped), nil
	}
	if c.pidfd >= 0 {
		_ = agent.WaitPIDFD(c.pidfd) // what it can't wait for is waited for below
	}
	// Wait without reaping first, so that Signal never meets a pid that is
	// somebody else's by then.
	for {
		err := unix.Waitid(unix.P_PID, c.pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return agent.Status{}, os.NewSyscallError("waitid", err)
		}
		break
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
	if c.endGroup {
		_ = unix.Kill(-c.pid, unix.SIGKILL) // no error: it may be empty
	}
	ws, err := forkexec.Wait(c.pid)
	if err != nil {
		return agent.Status{}, err
	}
	return status(ws), nil
}

func status(ws unix.WaitStatus) agent.Status {
	if ws.Signaled() {
		return agent.Status{Code: -1, Signal: int(ws.Signal())}
	}
	return agent.Status{Code: ws.ExitStatus()}
}

func (c *child) Signal(sig int, group bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return unix.ESRCH
	}
	pid := c.pid
	if group {
		pid = -pid // the program leads its session, so its pid names its group
	}
	return unix.Kill(pid, syscall.Signal(sig))
}
