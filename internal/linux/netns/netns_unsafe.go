//go:build linux

// Package netns makes network namespaces with nothing but a loopback that
// works.
package netns

import (
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// New makes a network namespace that nobody is in, with its loopback up, owned
// by the caller's user namespace. It needs CAP_SYS_ADMIN. The namespace goes
// with the file and the last process in it.
func New() (*os.File, error) {
	type made struct {
		file *os.File
		err  error
	}
	done := make(chan made)
	go func() {
		// Never unlocked: the thread ends with the goroutine, and is in no
		// namespace of its own for anybody else.
		runtime.LockOSThread()
		file, err := unshared()
		done <- made{file, err}
	}()
	m := <-done
	return m.file, m.err
}

func unshared() (*os.File, error) {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return nil, os.NewSyscallError("unshare network", err)
	}
	if err := RaiseLoopback(); err != nil {
		return nil, err
	}
	return os.Open("/proc/thread-self/ns/net")
}

// RaiseLoopback brings up the one interface of the calling thread's network
// namespace, so that programs in it can serve themselves, unless it is up.
func RaiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	var req struct {
		name  [unix.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}
	copy(req.name[:], "lo")
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCGIFFLAGS, uintptr(unsafe.Pointer(&req)))
	if e == 0 && req.flags&unix.IFF_UP != 0 {
		return nil
	}
	req.flags = unix.IFF_UP | unix.IFF_RUNNING
	_, _, e = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&req)))
	if e != 0 {
		return os.NewSyscallError("SIOCSIFFLAGS", e)
	}
	return nil
}
