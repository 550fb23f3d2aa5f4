package seccomp

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// actions are probes that need more than one call. Those of refusedActions are
// refused; all others are twins of refused calls and must work.
var actions = map[string]func() unix.Errno{
	"clone into a user namespace": func() unix.Errno { return fork(unix.CLONE_NEWUSER) },
	"clone with an upper bit":     func() unix.Errno { return fork(1<<32 | unix.CLONE_NEWUSER) },
	"lease":                       func() unix.Errno { return onFile(lease) },
	"whiteout device":             func() unix.Errno { return node(unix.S_IFCHR) },
	"huge pages in memory":        func() unix.Errno { return memfd(unix.MFD_HUGETLB) },

	"clone":              func() unix.Errno { return fork(0) },
	"lock":               func() unix.Errno { return onFile(lock) },
	"flock":              func() unix.Errno { return onFile(flock) },
	"FIFO":               func() unix.Errno { return node(unix.S_IFIFO) },
	"file in memory":     func() unix.Errno { return memfd(unix.MFD_CLOEXEC) },
	"TCP":                func() unix.Errno { return socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC) },
	"UDP over IPv6":      func() unix.Errno { return socket(unix.AF_INET6, unix.SOCK_DGRAM) },
	"pair of streams":    func() unix.Errno { return pair(unix.SOCK_STREAM) },
	"pair of seqpackets": func() unix.Errno { return pair(unix.SOCK_SEQPACKET) },
	"be nicer":           func() unix.Errno { return errnoOf(unix.Setpriority(unix.PRIO_PROCESS, 0, 10)) },
	"ask the personality": func() unix.Errno {
		_, _, e := unix.RawSyscall(unix.SYS_PERSONALITY, uintptr(allBits), 0, 0)
		return e
	},
	"be dumpable": func() unix.Errno { return errnoOf(unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)) },
}

var refusedActions = map[string]bool{
	"clone into a user namespace": true, "clone with an upper bit": true,
	"lease": true, "whiteout device": true, "huge pages in memory": true,
}

func errnoOf(err error) unix.Errno {
	var errno unix.Errno
	if err != nil && !errors.As(err, &errno) {
		return unix.EDOM
	}
	return errno
}

// fork makes a child that ends at once, without the Go runtime's help.
func fork(flags uintptr) unix.Errno {
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, flags|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return errno
	}
	if pid == 0 {
		for {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
	_, err := unix.Wait4(int(pid), nil, 0, nil)
	return errnoOf(err)
}

func onFile(act func(fd int) error) unix.Errno {
	f, err := os.CreateTemp("", "seccomp")
	if err != nil {
		return errnoOf(err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	return errnoOf(act(int(f.Fd())))
}

func lease(fd int) error {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_WRLCK)
	return err
}

func lock(fd int) error {
	return unix.FcntlFlock(uintptr(fd), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
}

func flock(fd int) error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) }

// node makes a node in a fresh folder; a character device 0:0 is what Linux
// lets anybody make.
func node(kind uint32) unix.Errno {
	dir, err := os.MkdirTemp("", "seccomp")
	if err != nil {
		return errnoOf(err)
	}
	defer os.RemoveAll(dir)
	return errnoOf(unix.Mknod(filepath.Join(dir, "node"), kind|0o600, 0))
}

func memfd(flags int) unix.Errno {
	fd, err := unix.MemfdCreate("seccomp", flags)
	if err == nil {
		unix.Close(fd)
	}
	return errnoOf(err)
}

func socket(family, kind int) unix.Errno {
	fd, err := unix.Socket(family, kind, 0)
	if err == nil {
		unix.Close(fd)
	}
	return errnoOf(err)
}

func pair(kind int) unix.Errno {
	fds, err := unix.Socketpair(unix.AF_UNIX, kind, 0)
	if err == nil {
		unix.Close(fds[0])
		unix.Close(fds[1])
	}
	return errnoOf(err)
}

// TestActions runs what takes more than one call: the refused ones fail under
// the filter and work without it, the others work under it.
func TestActions(t *testing.T) {
	for name := range actions {
		t.Run(name, func(t *testing.T) {
			got := probeErrno(t, strict, name)
			if !refusedActions[name] {
				if got != 0 {
					t.Errorf("under the filter: %s, want success", unix.ErrnoName(got))
				}
				return
			}
			if got == 0 {
				t.Error("under the filter it works")
			}
			if free := probeErrno(t, unfiltered, name); free == got {
				t.Errorf("without the filter: %s too, so the probe shows nothing", unix.ErrnoName(free))
			}
		})
	}
}
