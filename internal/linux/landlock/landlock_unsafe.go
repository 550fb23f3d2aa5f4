package landlock

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rulesetAttr is struct landlock_ruleset_attr without the part that only says
// what to log. An older kernel takes a longer struct as long as what it does
// not know is zero.
type rulesetAttr struct {
	files, network, scopes uint64
}

// pathAttr is struct landlock_path_beneath_attr, which is packed: 12 bytes.
// The padding that Go puts behind is not read.
type pathAttr struct {
	allowed uint64
	parent  int32
}

// version asks the kernel for its ABI.
func version() (int, error) {
	abi, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, errno
	}
	return int(abi), nil
}

// create makes a ruleset; its descriptor is closed on exec.
func create(r Rights) (int, error) {
	attr := rulesetAttr{files: r.Files, network: r.Network, scopes: r.Scopes}
	fd, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET,
		uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return 0, errno
	}
	return int(fd), nil
}

// addPath allows rights beneath what the descriptor leads to.
func addPath(ruleset, parent int, allowed uint64) error {
	attr := pathAttr{allowed: allowed, parent: int32(parent)}
	_, _, errno := unix.RawSyscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset),
		unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// Restrict puts the calling thread, and what it starts from now on, under the
// ruleset for good. The caller has locked the goroutine to its thread and set
// no_new_privs. Flags stay 0: after an execve the kernel then logs nothing, so
// that code can't fill the host's audit log. A child that runs no Go code makes
// the same call itself: landlock_restrict_self(ruleset, 0).
func Restrict(ruleset int) error {
	_, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0)
	if errno != 0 {
		return fmt.Errorf("%w: restrict by Landlock: %w", ErrUnavailable, errno)
	}
	return nil
}
