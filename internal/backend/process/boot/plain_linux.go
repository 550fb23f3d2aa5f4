package boot

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"tranca/internal/backend/process/bootspec"
	"tranca/internal/linux/mount"
)

// enterPlain is the boot of the weaker rung: no root of its own, no further
// namespaces than the network's, the code's user from the start.
func enterPlain(spec *bootspec.Spec) (*launcher, mount.Tree, error) {
	none := mount.FromFD(-1)
	if err := raiseLoopback(); err != nil {
		return nil, none, fmt.Errorf("loopback: %w", err)
	}
	if spec.Chroot != "" {
		if err := unix.Chroot(spec.Chroot); err != nil {
			return nil, none, os.NewSyscallError("chroot", err)
		}
		if err := unix.Chdir("/"); err != nil {
			return nil, none, os.NewSyscallError("chdir", err)
		}
	}
	if os.Geteuid() == 0 {
		if err := dropTo(int(spec.CodeUID), int(spec.CodeGID)); err != nil {
			return nil, none, fmt.Errorf("user: %w", err)
		}
	}
	// Programs that outlive their parents become the agent's children, by
	// which the host finds and ends them.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, none, os.NewSyscallError("subreaper", err)
	}
	if err := settle(spec); err != nil {
		return nil, none, fmt.Errorf("privileges: %w", err)
	}
	if err := dieWithParent(spec); err != nil {
		return nil, none, err
	}
	l := &launcher{spec: spec, tasks: make(chan func())}
	go l.serve()
	return l, none, nil
}

func dropTo(uid, gid int) error {
	if err := syscall.Setgroups(nil); err != nil {
		return os.NewSyscallError("setgroups", err)
	}
	if err := syscall.Setresgid(gid, gid, gid); err != nil {
		return os.NewSyscallError("setresgid", err)
	}
	return os.NewSyscallError("setresuid", syscall.Setresuid(uid, uid, uid))
}
