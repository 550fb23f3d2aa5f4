//go:build linux

package forkexec

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// op is one system call of the child.
type op struct {
	step    string
	trap    uintptr
	args    [6]uintptr
	mayFail bool
	result  *int32
}

// Script is what a child does between fork and exec. Build it with its
// methods, in the order in which the steps shall happen. A Script may be run
// more than once, but not at the same time. The zero value is not usable.
type Script struct {
	ops    []op
	flags  uintptr
	cgroup int
	pidfd  bool
	inner  *int32
	opened *int32
	keep   []any
	err    error
}

// New returns an empty script for a child in new namespaces as the CLONE_NEW*
// flags say.
func New(namespaces uintptr) *Script {
	return &Script{flags: namespaces, cgroup: -1, ops: make([]op, 0, 48)}
}

// WithPIDFD asks for a descriptor of the child.
func (s *Script) WithPIDFD() *Script { s.pidfd = true; return s }

// IntoCgroup starts the child in a version 2 cgroup, given its folder.
func (s *Script) IntoCgroup(fd int) *Script { s.cgroup = fd; return s }

func (s *Script) do(step string, trap uintptr, args ...uintptr) *op {
	o := op{step: step, trap: trap}
	copy(o.args[:], args)
	s.ops = append(s.ops, o)
	return &s.ops[len(s.ops)-1]
}

func (s *Script) str(v string) uintptr {
	b, err := syscall.BytePtrFromString(v)
	if err != nil {
		s.err = fmt.Errorf("string with a NUL byte: %w", err)
		b = new(byte)
	}
	s.keep = append(s.keep, b)
	return uintptr(unsafe.Pointer(b))
}

func (s *Script) strs(vs []string) uintptr {
	list := make([]*byte, len(vs)+1)
	for i, v := range vs {
		b, err := syscall.BytePtrFromString(v)
		if err != nil {
			s.err = fmt.Errorf("string with a NUL byte: %w", err)
			b = new(byte)
		}
		list[i] = b
	}
	s.keep = append(s.keep, list)
	return uintptr(unsafe.Pointer(&list[0]))
}

var zeroDigit = [...]byte{'0'}

// Join writes "0" to an open cgroup tasks or cgroup.procs file: the child
// joins it by itself, which spares the kernel's grace period that moving a
// process from outside waits for.
func (s *Script) Join(fd int) {
	s.do("join cgroup", unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&zeroDigit)), 1)
}

// RecordPID notes the child's process id in its own pid namespace.
func (s *Script) RecordPID() {
	s.inner = new(int32)
	s.do("getpid", unix.SYS_GETPID).result = s.inner
}

// Open opens a file for reading in the child, which has its parent's table of
// descriptors from then on, and so leaves the descriptor there; see
// [Child.Opened]. A script with it has neither Files nor CloseOnExecFrom, and
// is for Spawn.
func (s *Script) Open(path string) {
	s.flags |= unix.CLONE_FILES
	s.opened = new(int32)
	at := unix.AT_FDCWD
	s.do("open "+path, unix.SYS_OPENAT, uintptr(at), s.str(path), unix.O_RDONLY|unix.O_CLOEXEC, 0).result = s.opened
}

// Setsid makes the child the leader of a new session without a terminal.
func (s *Script) Setsid() { s.do("setsid", unix.SYS_SETSID) }

// ControllingTerminal makes the terminal in a descriptor the one that controls
// the session that the child leads; see [Script.Setsid]. The child's process
// group is in its foreground then.
func (s *Script) ControllingTerminal(fd int) {
	s.do("controlling terminal", unix.SYS_IOCTL, uintptr(fd), unix.TIOCSCTTY, 0)
}

// ParentDeathSignal has the kernel kill the child when the thread that forked
// it ends.
func (s *Script) ParentDeathSignal(sig syscall.Signal) {
	s.do("parent death signal", unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(sig))
}

// Files makes the given descriptors the child's 0, 1, 2, … and marks all
// others close-on-exec. They are moved out of the way first, above the highest
// of them, so that they may be given in any order and none is overwritten
// before it was placed. Descriptors that later steps use must be among them or
// be given as keep; keep's new numbers are returned.
func (s *Script) Files(fds []int, keep ...int) []int {
	all := append(append(make([]int, 0, len(fds)+len(keep)), fds...), keep...)
	base := len(fds)
	for _, fd := range all {
		base = max(base, fd+1)
	}
	moved := make([]int, len(keep))
	for i, fd := range all {
		s.do("park descriptor", unix.SYS_DUP3, uintptr(fd), uintptr(base+i), unix.O_CLOEXEC)
		if i >= len(fds) {
			moved[i-len(fds)] = base + i
		}
	}
	for i := range fds {
		s.do("place descriptor", unix.SYS_DUP3, uintptr(base+i), uintptr(i), 0)
	}
	s.CloseOnExecFrom(len(fds))
	return moved
}

// CloseOnExecFrom marks descriptors from n on close-on-exec.
func (s *Script) CloseOnExecFrom(n int) {
	s.do("close_range", unix.SYS_CLOSE_RANGE, uintptr(n), ^uintptr(0)>>32, unix.CLOSE_RANGE_CLOEXEC|unix.CLOSE_RANGE_UNSHARE)
}

// closeAllBut closes every descriptor but one.
func (s *Script) closeAllBut(fd int) {
	if fd > 0 {
		s.do("close_range", unix.SYS_CLOSE_RANGE, 0, uintptr(fd-1), 0)
	}
	s.do("close_range", unix.SYS_CLOSE_RANGE, uintptr(fd+1), ^uintptr(0)>>32, 0)
}

// Rlimit sets a resource limit, soft and hard.
func (s *Script) Rlimit(resource int, soft, hard uint64) {
	l := &unix.Rlimit{Cur: soft, Max: hard}
	s.keep = append(s.keep, l)
	s.do("rlimit", unix.SYS_PRLIMIT64, 0, uintptr(resource), uintptr(unsafe.Pointer(l)), 0)
}

// Undumpable closes the child's memory, descriptors and namespaces to others
// of its user.
func (s *Script) Undumpable() { s.do("close to others", unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0) }

// Umask sets the file mode creation mask.
func (s *Script) Umask(mask uintptr) { s.do("umask", unix.SYS_UMASK, mask) }

// Unshare leaves namespaces behind.
func (s *Script) Unshare(flags uintptr) { s.do("unshare", unix.SYS_UNSHARE, flags) }

// EnterUsers enters a user namespace that this process has made, with every
// right in it until it becomes a user there.
func (s *Script) EnterUsers(fd int) {
	s.do("enter user namespace", unix.SYS_SETNS, uintptr(fd), unix.CLONE_NEWUSER)
}

// DropBounding empties the bounding set, so that no exec ever gives a
// capability. It needs CAP_SETPCAP.
func (s *Script) DropBounding() {
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		s.do("drop bounding set", unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c, 0, 0, 0).mayFail = true
	}
}

// User changes to a user and group with no supplementary groups.
func (s *Script) User(uid, gid uint32) {
	s.do("setgroups", unix.SYS_SETGROUPS, 0, 0)
	s.do("setresgid", unix.SYS_SETRESGID, uintptr(gid), uintptr(gid), uintptr(gid))
	s.do("setresuid", unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid))
}

// Mount mounts a file system of a type at a path.
func (s *Script) Mount(fstype, target string, flags uintptr) {
	s.do("mount "+fstype, unix.SYS_MOUNT, s.str(fstype), s.str(target), s.str(fstype), flags, 0)
}

// ReapOrphans has the kernel reap the children that the held process
// inherits: it does for whoever ignores SIGCHLD.
func (s *Script) ReapOrphans() {
	// struct sigaction of the kernel: handler, flags, restorer, mask.
	act := &[4]uint64{1, 0, 0, 0}
	s.keep = append(s.keep, act)
	s.do("sigaction", unix.SYS_RT_SIGACTION, uintptr(unix.SIGCHLD), uintptr(unsafe.Pointer(act)), 0, 8)
}

// DefaultSignals has the hangup and the interrupt end a program again. Where
// this process was started with them ignored, by nohup or in the background of
// a script, Go leaves them so, and an exec hands that on.
func (s *Script) DefaultSignals() {
	act := new([4]uint64)
	s.keep = append(s.keep, act)
	for _, n := range []unix.Signal{unix.SIGHUP, unix.SIGINT} {
		s.do("sigaction", unix.SYS_RT_SIGACTION, uintptr(n), uintptr(unsafe.Pointer(act)), 0, 8)
	}
}

// KeepCapabilities keeps the permitted set over a change of user.
func (s *Script) KeepCapabilities() {
	s.do("keep capabilities", unix.SYS_PRCTL, unix.PR_SET_KEEPCAPS, 1, 0, 0, 0)
}

// Capabilities sets permitted, effective and inheritable sets to the same
// bits.
func (s *Script) Capabilities(bits uint64) {
	hdr := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	lo, hi := uint32(bits), uint32(bits>>32)
	data := &[2]unix.CapUserData{
		{Effective: lo, Permitted: lo, Inheritable: lo},
		{Effective: hi, Permitted: hi, Inheritable: hi},
	}
	s.keep = append(s.keep, hdr, data)
	s.do("capset", unix.SYS_CAPSET, uintptr(unsafe.Pointer(hdr)), uintptr(unsafe.Pointer(data)))
}

// Ambient raises each capability in the ambient set, so that it survives an
// exec by a user that is not mapped yet.
func (s *Script) Ambient(bits uint64) {
	for c := uintptr(0); c < 64; c++ {
		if bits&(1<<c) != 0 {
			s.do("ambient capability", unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, c, 0, 0)
		}
	}
}

// ClearAmbient empties the ambient set.
func (s *Script) ClearAmbient() {
	s.do("clear ambient", unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
}

// NotDumpable keeps others of the same user from looking into the process.
func (s *Script) NotDumpable() {
	s.do("not dumpable", unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

// KillAll kills every process of the child's pid namespace that it may
// signal, but for the first one and itself; ESRCH where there is none. The
// kernel does it in one go, so that no fork escapes.
func (s *Script) KillAll() { s.do("kill all", unix.SYS_KILL, ^uintptr(0), uintptr(unix.SIGKILL)) }

// Exit ends the child. Nothing follows it.
func (s *Script) Exit() { s.do("exit", unix.SYS_EXIT_GROUP, 0) }

// Chdir changes the folder.
func (s *Script) Chdir(dir string) { s.do("chdir "+dir, unix.SYS_CHDIR, s.str(dir)) }

// NoNewPrivileges makes exec never give more rights.
func (s *Script) NoNewPrivileges() {
	s.do("no_new_privs", unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// Seccomp installs a filter. Steps after it must be allowed by it.
func (s *Script) Seccomp(prog []unix.SockFilter) {
	if len(prog) == 0 {
		s.err = fmt.Errorf("empty seccomp filter")
		return
	}
	f := &unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	s.keep = append(s.keep, f, prog)
	s.do("seccomp", unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(f)))
}

// Exec runs a program by path. Nothing follows it.
func (s *Script) Exec(path string, argv, env []string) {
	s.do("exec "+path, unix.SYS_EXECVE, s.str(path), s.strs(argv), s.strs(env))
}

// ExecFD runs the program in an open file. Nothing follows it.
func (s *Script) ExecFD(fd int, argv, env []string) {
	s.do("exec", unix.SYS_EXECVEAT, uintptr(fd), s.str(""), s.strs(argv), s.strs(env), unix.AT_EMPTY_PATH)
}

// Name sets the name that process lists show, at most 15 bytes.
func (s *Script) Name(name string) {
	s.do("name", unix.SYS_PRCTL, unix.PR_SET_NAME, s.str(name), 0, 0, 0)
}
