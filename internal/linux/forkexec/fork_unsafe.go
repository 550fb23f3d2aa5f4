//go:build linux

package forkexec

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The runtime blocks signals before a fork and puts handlers and mask right
// after it. Package syscall has these for itself; gVisor and others reach them
// the same way, and the runtime keeps them for that.

//go:linkname beforeFork syscall.runtime_BeforeFork
func beforeFork()

//go:linkname afterFork syscall.runtime_AfterFork
func afterFork()

//go:linkname afterForkInChild syscall.runtime_AfterForkInChild
func afterForkInChild()

//go:noescape
func rawVfork(trap, a1, a2, a3 uintptr) (r1, errno uintptr)

// cloneArgs is struct clone_args of clone3(2), its first version plus cgroup.
type cloneArgs struct {
	flags, pidfd, childTID, parentTID, exitSignal     uint64
	stack, stackSize, tls, setTID, setTIDSize, cgroup uint64
}

// start is one fork: what clone needs, what the child does, what came out.
// All of it is on the heap before the fork, because the child must not
// allocate and, with vfork, shares the memory.
type start struct {
	ops    []op
	clone3 *cloneArgs
	flags  uintptr
	pidfd  int32
	// hold makes the child wait for ever after its last step.
	hold bool
	// status is where a child with a memory of its own reports, else -1.
	status int
	// failed and errno are written by the child: in shared memory after vfork.
	failed [2]uint32
}

const okByte = 0xffffffff

// fork makes the child. The child never returns from it.
//
// No ":=" and no call but of assembly after beforeFork: the child may not
// allocate, grow the stack or take a lock.
//
//go:noinline
//go:norace
//go:nocheckptr
func fork(s *start) (pid uintptr, errno uintptr) {
	var (
		i     int
		r, e1 uintptr
		en    syscall.Errno
		o     *op
	)
	beforeFork()
	if s.clone3 != nil {
		pid, errno = rawVfork(unix.SYS_CLONE3, uintptr(unsafe.Pointer(s.clone3)), unsafe.Sizeof(*s.clone3), 0)
	} else {
		pid, errno = rawVfork(unix.SYS_CLONE, s.flags, 0, uintptr(unsafe.Pointer(&s.pidfd)))
	}
	if errno != 0 || pid != 0 {
		return
	}

	afterForkInChild()
	for i = 0; i < len(s.ops); i++ {
		o = &s.ops[i]
		r, e1, en = syscall.RawSyscall6(o.trap, o.args[0], o.args[1], o.args[2], o.args[3], o.args[4], o.args[5])
		if en != 0 && !o.mayFail {
			s.failed[0] = uint32(i)
			s.failed[1] = uint32(en)
			goto fail
		}
		if o.result != nil {
			*o.result = int32(r)
		}
	}
	if s.hold {
		s.failed[0] = okByte
		syscall.RawSyscall(unix.SYS_WRITE, uintptr(s.status), uintptr(unsafe.Pointer(&s.failed)), 8)
		syscall.RawSyscall(unix.SYS_CLOSE, uintptr(s.status), 0, 0)
		for {
			syscall.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
		}
	}
fail:
	_ = e1
	if s.status >= 0 {
		syscall.RawSyscall(unix.SYS_WRITE, uintptr(s.status), uintptr(unsafe.Pointer(&s.failed)), 8)
	}
	for {
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, 253, 0, 0)
	}
}

// Spawn runs the script in a vforked child. It returns when the child has
// execed, or with an *[Error] that names the step that failed; the child is
// then reaped. The caller reaps a started child.
//
// The parent thread, not the process, is the child's parent for a parent
// death signal: lock the goroutine to a thread that lives long enough.
func (s *Script) Spawn() (Child, error) {
	if s.err != nil {
		return Child{}, s.err
	}
	st := s.start(unix.CLONE_VM | unix.CLONE_VFORK)
	st.status = -1
	st.failed = [2]uint32{okByte, 0}
	pid, err := s.fork(st)
	if err != nil {
		return Child{}, err
	}
	if st.failed[0] != okByte {
		return Child{}, s.reap(st, pid)
	}
	return s.child(st, pid), nil
}

// fork makes the child while no other of this process is made, and puts the
// signals back.
func (s *Script) fork(st *start) (pid int, err error) {
	syscall.ForkLock.Lock()
	child, errno := fork(st)
	afterFork()
	syscall.ForkLock.Unlock()
	runtime.KeepAlive(s)
	if errno != 0 {
		return 0, &Error{"clone", syscall.Errno(errno)}
	}
	return int(child), nil
}

// Hold runs the script in a child with a memory of its own, which then waits
// for ever with its orphans reaped by the kernel. It returns when the last step
// is done.
func (s *Script) Hold() (Child, error) {
	wait, err := s.HoldAside()
	if err != nil {
		return Child{}, err
	}
	return wait()
}

// HoldAside is Hold for a caller with something else to do meanwhile: it
// returns when the child is forked, and wait, which has to be called once, when
// the last step is done.
func (s *Script) HoldAside() (wait func() (Child, error), err error) {
	if s.err != nil {
		return nil, s.err
	}
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return nil, &Error{"pipe", err.(syscall.Errno)}
	}
	ops := len(s.ops)
	s.closeAllBut(p[1]) // the child outlives its use of them, and execs never
	st := s.start(0)
	st.status, st.hold = p[1], true
	pid, err := s.fork(st)
	unix.Close(p[1])
	if err != nil {
		s.ops = s.ops[:ops]
		unix.Close(p[0])
		return nil, err
	}
	return func() (Child, error) {
		defer func() { s.ops = s.ops[:ops] }()
		defer unix.Close(p[0])
		return s.held(st, pid, p[0])
	}, nil
}

// held reads what a held child reports.
func (s *Script) held(st *start, pid, report int) (Child, error) {
	word, ok := readReport(report)
	if !ok {
		word = [2]uint32{okByte - 1, uint32(unix.EPIPE)}
	}
	if word[0] != okByte {
		st.failed = word
		return Child{}, s.reap(st, pid)
	}
	return s.child(st, pid), nil
}

// readReport reads what a child with a memory of its own has in start.failed;
// ok is false where it said nothing.
func readReport(fd int) (word [2]uint32, ok bool) {
	buf := (*[8]byte)(unsafe.Pointer(&word))[:]
	n, err := readFull(fd, buf)
	return word, err == nil && n == len(buf)
}

// Reap kills the child if it lives, waits for its end and closes PIDFD. It is
// for the parent alone, once, and only where PIDFD was asked for.
func (c Child) Reap() (unix.WaitStatus, error) {
	defer unix.Close(c.PIDFD)
	if err := unix.PidfdSendSignal(c.PIDFD, unix.SIGKILL, nil, 0); err != nil && err != unix.ESRCH {
		return 0, &Error{"kill child", err.(syscall.Errno)}
	}
	return Wait(c.PID)
}

// Wait waits for the end of a child of this process and reaps it.
func Wait(pid int) (unix.WaitStatus, error) {
	var ws unix.WaitStatus
	for {
		_, err := unix.Wait4(pid, &ws, unix.WALL, nil)
		switch err {
		case nil:
			return ws, nil
		case unix.EINTR:
			continue
		}
		return ws, &Error{"wait for child", err.(syscall.Errno)}
	}
}

func (s *Script) child(st *start, pid int) Child {
	c := Child{PID: pid, PIDFD: int(st.pidfd)}
	if s.inner != nil {
		c.Inner = int(*s.inner)
	}
	if s.opened != nil {
		c.Opened = int(*s.opened)
	}
	return c
}

// reap waits for a child that failed before exec and says why.
func (s *Script) reap(st *start, pid int) error {
	if st.pidfd >= 0 {
		unix.Close(int(st.pidfd))
	}
	_, _ = Wait(pid) // what the child said is the error to tell
	return s.failure(st.failed)
}

// failure is the error of the step that a child reported.
func (s *Script) failure(word [2]uint32) error {
	step := "child"
	if i := int(word[0]); i < len(s.ops) {
		step = s.ops[i].step
	}
	return &Error{step, syscall.Errno(word[1])}
}

func (s *Script) start(extra uintptr) *start {
	st := &start{ops: s.ops, pidfd: -1, flags: s.flags | extra | uintptr(unix.SIGCHLD)}
	if s.pidfd {
		st.flags |= unix.CLONE_PIDFD
	}
	if s.cgroup >= 0 {
		st.clone3 = &cloneArgs{
			flags:      uint64(st.flags&^0xff) | unix.CLONE_INTO_CGROUP,
			exitSignal: uint64(unix.SIGCHLD),
			cgroup:     uint64(s.cgroup),
		}
		if s.pidfd {
			st.clone3.pidfd = uint64(uintptr(unsafe.Pointer(&st.pidfd)))
		}
	}
	return st
}

func readFull(fd int, b []byte) (int, error) {
	n := 0
	for n < len(b) {
		m, err := unix.Read(fd, b[n:])
		if err == unix.EINTR {
			continue
		}
		if err != nil || m == 0 {
			return n, err
		}
		n += m
	}
	return n, nil
}
