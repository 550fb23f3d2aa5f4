//go:build linux

package attempt

import (
	"errors"
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

// startThread makes a thread that reads one byte of the descriptor and ends.
// The kernel puts 0 into tid when it is gone.
//
//go:noescape
func startThread(flags uintptr, tid *uint32, fd uintptr) (r uintptr)

// int80 makes a system call of 32 bits.
//
//go:noescape
func int80(number, a1, a2 uintptr) (r uintptr)

// What a call of a forked child may be besides a system call.
const (
	trapTouch = ^uintptr(0) - iota // writes to each page of what came before
	trapCopy                       // copies bytes to where what came before is mapped
	trapInt80
	// trapWait makes one more child, which does what comes next. This one closes a
	// descriptor, waits, and leaves in r how the other ended.
	trapWait
)

const atFDCWD = ^uintptr(99) // -100

// opening is what is opened for an argument of a call, and closed after it.
type opening struct{ path, flags uintptr }

// call is one thing that a forked child does, and what came of it, for which it
// lies in memory that parent and child share.
type call struct {
	trap uintptr
	args [6]uintptr
	// opens has, for each argument that is a descriptor, what is to be opened.
	opens [6]opening
	// must ends the child when the call fails, with its error number; forks says
	// that the call may return in a second child, which ends at once.
	must, forks bool

	done     bool
	r, errno uintptr
}

const pageSize = 4096

// fork makes a child of one thread that does the calls and ends with 0. It is a
// copy of this process, with its command line. It never returns from here: no
// call but of assembly, for the child may not allocate, grow the stack or take
// a lock.
//
//go:noinline
//go:norace
//go:nocheckptr
func fork(calls []call) (pid uintptr, errno syscall.Errno) {
	var (
		i, j    int
		c       *call
		at, out *byte
		size    uintptr
		e1      uintptr
		last    uintptr
		status  uint32
	)
	beforeFork()
	pid, _, errno = syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		return
	}
	afterForkInChild()
	for i = 0; i < len(calls); i++ {
		c = &calls[i]
		switch c.trap {
		case trapTouch:
			at = *(**byte)(unsafe.Pointer(&last))
			for size = 0; size < c.args[0]; size += pageSize {
				*(*byte)(unsafe.Add(unsafe.Pointer(at), size)) = 1
			}
			errno = 0
		case trapCopy:
			at = *(**byte)(unsafe.Pointer(&last))
			out = *(**byte)(unsafe.Pointer(&c.args[0]))
			for size = 0; size < c.args[1]; size++ {
				*(*byte)(unsafe.Add(unsafe.Pointer(at), size)) = *(*byte)(unsafe.Add(unsafe.Pointer(out), size))
			}
			errno = 0
		case trapWait:
			last, e1, errno = syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
			if errno != 0 || last == 0 {
				break
			}
			syscall.RawSyscall(unix.SYS_CLOSE, c.args[0], 0, 0)
			for {
				_, e1, errno = syscall.RawSyscall6(unix.SYS_WAIT4, last, uintptr(unsafe.Pointer(&status)), 0, 0, 0, 0)
				if errno != unix.EINTR {
					break
				}
			}
			c.r = uintptr(status)
			goto end
		case trapInt80:
			last = int80(c.args[0], c.args[1], c.args[2])
			errno = 0
			if int32(last) < 0 && int32(last) > -4096 {
				errno = syscall.Errno(-int32(last))
			}
		default:
			errno = 0
			for j = 0; j < len(c.opens) && errno == 0; j++ {
				if c.opens[j].path != 0 {
					c.args[j], e1, errno = syscall.RawSyscall6(unix.SYS_OPENAT, atFDCWD, c.opens[j].path, c.opens[j].flags, 0, 0, 0)
				}
			}
			if errno == 0 {
				last, e1, errno = syscall.RawSyscall6(c.trap, c.args[0], c.args[1], c.args[2], c.args[3], c.args[4], c.args[5])
			} else {
				j-- // that one isn't open
			}
			for j--; j >= 0; j-- {
				if c.opens[j].path != 0 {
					syscall.RawSyscall(unix.SYS_CLOSE, c.args[j], 0, 0)
				}
			}
			_ = e1
		}
		if c.forks && errno == 0 && last == 0 {
			goto end // in the second child, with the same shared memory
		}
		c.r = last
		c.errno = uintptr(errno)
		c.done = true
		if errno != 0 && c.must {
			syscall.RawSyscall(unix.SYS_EXIT_GROUP, uintptr(errno), 0, 0)
		}
	}
end:
	for {
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
}

// forked forks; the parent goes on as before.
func forked(calls []call) (int, error) {
	syscall.ForkLock.Lock()
	pid, errno := fork(calls)
	afterFork()
	syscall.ForkLock.Unlock()
	runtime.KeepAlive(calls)
	if errno != 0 {
		return 0, errno
	}
	return int(pid), nil
}

// sharedCalls returns n calls in memory that children share, and the function
// that frees them.
func sharedCalls(n int) ([]call, func(), error) {
	size := max(n, 1) * int(unsafe.Sizeof(call{}))
	mem, err := sharedBytes(size)
	if err != nil {
		return nil, nil, err
	}
	return unsafe.Slice((*call)(unsafe.Pointer(&mem[0])), n), func() { _ = unix.Munmap(mem) }, nil
}

// sharedBytes returns memory outside of the heap that children share.
func sharedBytes(size int) ([]byte, error) {
	return unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANON)
}

func address(data []byte) uintptr { return uintptr(unsafe.Pointer(&data[0])) }

// execCall is the call that makes a process another program. What it points to
// is alive as long as keep is.
func execCall(path string, argv, env []string) (c call, keep []any, err error) {
	name, err1 := syscall.BytePtrFromString(path)
	args, err2 := syscall.SlicePtrFromStrings(argv)
	vars, err3 := syscall.SlicePtrFromStrings(env)
	if err := errors.Join(err1, err2, err3); err != nil {
		return call{}, nil, unix.EINVAL // a NUL
	}
	c = call{trap: unix.SYS_EXECVE, must: true, args: [6]uintptr{uintptr(unsafe.Pointer(name)),
		uintptr(unsafe.Pointer(&args[0])), uintptr(unsafe.Pointer(&vars[0]))}}
	return c, []any{name, args, vars}, nil
}

// threads makes so many threads that wait for the descriptor, all signals
// blocked. It returns how many there are, and what waits for their end once the
// other end of the descriptor is closed.
func threads(count, fd int) (made int, gone func(), err error) {
	mem, err := sharedBytes(4 * count)
	if err != nil {
		return 0, nil, err
	}
	words := unsafe.Slice((*uint32)(unsafe.Pointer(&mem[0])), count)
	var all, old unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, &old); err != nil {
		_ = unix.Munmap(mem)
		return 0, nil, err
	}
	const flags = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND |
		unix.CLONE_THREAD | unix.CLONE_SYSVSEM | unix.CLONE_CHILD_CLEARTID
	for made < count {
		words[made] = 1
		r := startThread(flags, &words[made], uintptr(fd))
		if int(r) < 0 {
			words[made] = 0
			err = syscall.Errno(-int(r))
			break
		}
		made++
	}
	if e := unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil); err == nil {
		err = e
	}
	return made, func() { awaitZero(words); _ = unix.Munmap(mem) }, err
}

// byDefault gives a signal its default action, which the runtime's own calls
// can't for those that it needs itself.
func byDefault(sig syscall.Signal) error {
	var action [4]uint64 // a struct sigaction of the kernel, all zero
	_, _, errno := syscall.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// killAt has the kernel kill this process at that time from now, whatever it
// does then.
func killAt(milliseconds int64) error {
	event := struct {
		value        uint64
		signal, kind int32
		rest         [12]uint32
	}{signal: int32(unix.SIGKILL)}
	var timer int32
	_, _, errno := syscall.RawSyscall(unix.SYS_TIMER_CREATE, unix.CLOCK_MONOTONIC,
		uintptr(unsafe.Pointer(&event)), uintptr(unsafe.Pointer(&timer)))
	if errno != 0 {
		return errno
	}
	when := [4]int64{2: milliseconds / 1000, 3: milliseconds % 1000 * 1e6}
	_, _, errno = syscall.RawSyscall6(unix.SYS_TIMER_SETTIME, uintptr(timer), 0,
		uintptr(unsafe.Pointer(&when)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// cpuTime is what this process has used, in nanoseconds.
func cpuTime() int64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts) != nil {
		return 0
	}
	return ts.Nano()
}
