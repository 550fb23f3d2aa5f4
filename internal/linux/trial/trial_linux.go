package trial

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tranca/internal/linux/forkexec"
)

// nobody is the user of no rights.
const nobody = 65534

// wait is how long a call may take that takes microseconds.
const wait = 2 * time.Second

// Result is what a trial saw.
type Result struct {
	// Reached says that the kernel did it.
	Reached bool
	// Refused says how it refused where it did not: "unshare: operation not
	// permitted".
	Refused string
}

// attempt runs a script. An error means that nothing was seen.
func attempt(s *forkexec.Script, within time.Duration) (Result, error) {
	_, err := s.Try(within)
	return outcome(err)
}

// outcome is what the end of a script says. An error means that nothing was
// seen.
func outcome(err error) (Result, error) {
	var failed *forkexec.Error
	switch {
	case err == nil:
		return Result{Reached: true}, nil
	case errors.As(err, &failed) && !preparing(failed.Step):
		return Result{Refused: err.Error()}, nil
	}
	return Result{}, err
}

// preparing reports whether a step is not what is tried.
func preparing(step string) bool {
	switch step {
	case "clone", "pipe", "dup", "close_range", "parent death signal", "setgroups", "setresgid", "setresuid", "wait for child", "child":
		return true
	}
	return false
}

// unprivileged begins a script as a user of no rights.
func unprivileged() *forkexec.Script {
	s := forkexec.New(0)
	if os.Geteuid() == 0 {
		s.User(nobody, nobody)
		s.ParentDeathSignal(syscall.SIGKILL) // which a change of user takes back
	}
	return s
}

// UserNamespace makes a user namespace, and uses a right in it.
func UserNamespace() (Result, error) {
	s := unprivileged()
	s.Call("unshare user", unix.SYS_UNSHARE, unix.CLONE_NEWUSER)
	s.Call("unshare uts in it", unix.SYS_UNSHARE, unix.CLONE_NEWUTS)
	return attempt(s, wait)
}

// IOURing makes a ring.
func IOURing() (Result, error) {
	s := unprivileged()
	s.Call("io_uring_setup", unix.SYS_IO_URING_SETUP, 4, s.Memory(make([]byte, 120)))
	return attempt(s, wait)
}

// AlgorithmSocket opens a socket of the kernel's cryptography. Where its module
// is not loaded yet this loads it, so look first.
func AlgorithmSocket() (Result, error) {
	s := unprivileged()
	s.Call("socket AF_ALG", unix.SYS_SOCKET, unix.AF_ALG, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	return attempt(s, wait)
}

// Keyrings asks for the thread's keyring, which there is none of, without
// making one.
func Keyrings() (Result, error) {
	s := unprivileged()
	thread := unix.KEY_SPEC_THREAD_KEYRING
	s.Call("keyctl", unix.SYS_KEYCTL, unix.KEYCTL_GET_KEYRING_ID, uintptr(thread), 0)
	_, err := s.Try(wait)
	var failed *forkexec.Error
	if errors.As(err, &failed) && failed.Errno == unix.ENOKEY {
		return Result{Reached: true}, nil // the answer is about keys
	}
	return outcome(err)
}

// Programs makes a map for programs in the kernel.
func Programs() (Result, error) {
	s := unprivileged()
	attr := make([]byte, 128) // type: array, key, value, entries
	attr[0], attr[4], attr[8], attr[12] = unix.BPF_MAP_TYPE_ARRAY, 4, 4, 1
	s.Call("bpf", unix.SYS_BPF, unix.BPF_MAP_CREATE, s.Memory(attr), uintptr(len(attr)))
	return attempt(s, wait)
}

// UserFaults asks to handle the page faults of the kernel, too.
func UserFaults() (Result, error) {
	s := unprivileged()
	s.Call("userfaultfd", unix.SYS_USERFAULTFD, unix.O_CLOEXEC)
	return attempt(s, wait)
}

// Writable reports whether this process may write at a path: a mount that is
// read-only refuses root, too.
func Writable(path string) bool { return unix.Access(path, unix.W_OK) == nil }
