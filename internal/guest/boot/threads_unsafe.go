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

// allThreadsBounding empties the bounding set of every thread.
func allThreadsBounding() error {
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		_, _, e := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c, 0, 0, 0, 0)
		if e != 0 && e != unix.EINVAL {
			return os.NewSyscallError("drop bounding set", e)
		}
	}
	return nil
}

// allThreadsKeepCaps has every thread keep its permitted set when it becomes
// another user.
func allThreadsKeepCaps() error {
	_, _, e := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_SET_KEEPCAPS, 1, 0, 0, 0, 0)
	if e != 0 {
		return os.NewSyscallError("keep capabilities", e)
	}
	return nil
}

// allThreadsFS changes the user and group for file work of every thread. It
// takes the capabilities over files along, which are set anew afterwards.
func allThreadsFS(uid, gid uint32) error {
	for _, c := range []struct {
		call uintptr
		id   uint32
	}{{unix.SYS_SETFSGID, gid}, {unix.SYS_SETFSUID, uid}} {
		// It returns what was before, and no error.
		syscall.AllThreadsSyscall(c.call, uintptr(c.id), 0, 0)
		if now, _, _ := syscall.AllThreadsSyscall(c.call, ^uintptr(0), 0, 0); uint32(now) != c.id {
			return unix.EPERM
		}
	}
	return nil
}
