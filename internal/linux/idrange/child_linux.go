package idrange

import (
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// newUserNamespace makes a process in a user namespace of its own that does
// nothing but wait, and returns what ends it.
func newUserNamespace() (pid int, end func(), err error) {
	// The child dies with the thread that made it.
	runtime.LockOSThread()
	pid, errno := fork()
	if errno != 0 {
		runtime.UnlockOSThread()
		return 0, nil, errno
	}
	return pid, func() {
		_ = unix.Kill(pid, unix.SIGKILL)
		for {
			if _, err := unix.Wait4(pid, nil, 0, nil); err != unix.EINTR {
				break
			}
		}
		runtime.UnlockOSThread()
	}, nil
}

// fork makes the child. In there nothing of the Go runtime may run: only raw
// system calls, no growing stack, no allocation.
//
//go:norace
//go:nosplit
func fork() (int, syscall.Errno) {
	pid, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, unix.CLONE_NEWUSER|uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		return int(pid), errno
	}
	syscall.RawSyscall6(syscall.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0, 0)
	for {
		syscall.RawSyscall6(syscall.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
	}
}
