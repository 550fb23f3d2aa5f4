package seccomp

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Install puts the calling thread, and what it starts from now on, under the
// filter for good. The caller has locked the goroutine to its thread
// ([runtime.LockOSThread]) and set no_new_privs, without which the kernel
// refuses a caller that is not privileged. Other threads stay as they are.
func Install(p Program) error {
	if err := p.check(); err != nil {
		return err
	}
	prog := p.Fprog()
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0,
		uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(p)
	if errno != 0 {
		return fmt.Errorf("%w: install seccomp filter of %d instructions: %w",
			ErrUnavailable, len(p), errno)
	}
	return nil
}
