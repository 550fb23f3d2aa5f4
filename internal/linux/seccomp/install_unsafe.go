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
func Install(p Program) error { return install(p, 0) }

// InstallAll puts every thread of the process under the filter. All of them
// must be under the same filters before. No_new_privs is set on the caller.
func InstallAll(p Program) error { return install(p, unix.SECCOMP_FILTER_FLAG_TSYNC) }

func install(p Program, flags uintptr) error {
	if err := p.check(); err != nil {
		return err
	}
	prog := p.Fprog()
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags,
		uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(p)
	if errno != 0 {
		return fmt.Errorf("%w: install seccomp filter of %d instructions: %w",
			ErrUnavailable, len(p), errno)
	}
	return nil
}
