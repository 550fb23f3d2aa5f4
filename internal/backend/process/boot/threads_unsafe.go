//go:build linux

package boot

import (
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// allThreadsCaps sets permitted and effective sets of every thread and empties
// the inheritable ones; the kernel empties the ambient sets with them.
func allThreadsCaps(caps uint64) error {
	hdr := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := &[2]unix.CapUserData{
		{Effective: uint32(caps), Permitted: uint32(caps)},
		{Effective: uint32(caps >> 32), Permitted: uint32(caps >> 32)},
	}
	_, _, e := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(hdr)), uintptr(unsafe.Pointer(data)), 0)
	if e != 0 {
		return os.NewSyscallError("capset", e)
	}
	return nil
}

// threadCaps sets the calling thread's sets.
func threadCaps(caps uint64) error {
	hdr := &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := &[2]unix.CapUserData{
		{Effective: uint32(caps), Permitted: uint32(caps)},
		{Effective: uint32(caps >> 32), Permitted: uint32(caps >> 32)},
	}
	return os.NewSyscallError("capset", unix.Capset(hdr, &data[0]))
}

// raiseLoopback brings up the one interface of the network namespace, so that
// programs in it can serve themselves, unless it is up.
func raiseLoopback() error {
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
