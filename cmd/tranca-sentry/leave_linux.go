package main

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"tranca/internal/guest/boot"
	"tranca/internal/guest/bootspec"
	"tranca/internal/guest/sentryspec"
	"tranca/internal/linux/mount"
)

// stage is where the empty root is attached until it becomes the root.
const stage = "/proc"

// leaveHost makes the Sentry a user of its own in an empty root without any
// capability. Its platform wants to look once at the map of its own memory, so
// that this one file is there, and nothing can open it once the filter is on.
func leaveHost(spec *sentryspec.Spec) error {
	if err := syscall.Setresgid(spec.GID, spec.GID, spec.GID); err != nil {
		return os.NewSyscallError("setresgid", err)
	}
	if err := syscall.Setresuid(spec.UID, spec.UID, spec.UID); err != nil {
		return os.NewSyscallError("setresuid", err)
	}
	if err := emptyRoot(); err != nil {
		return fmt.Errorf("empty root: %w", err)
	}
	if !spec.Omit.Has(bootspec.Privileges) {
		if err := boot.DropAll(); err != nil {
			return fmt.Errorf("privileges: %w", err)
		}
	}
	// A process that has become another user can't be traced by that one. The
	// platform attaches to processes that it forks, which inherit that. No
	// other process has this user.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	if spec.Omit.Has(bootspec.End) {
		return nil
	}
	// The kernel forgets it when a thread becomes another user.
	return os.NewSyscallError("parent death signal", unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0))
}

// emptyRoot moves into a root of one file.
func emptyRoot() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return os.NewSyscallError("make mounts private", err)
	}
	maps, err := mount.Clone(unix.AT_FDCWD, "/proc/self/maps", false)
	if err != nil {
		return fmt.Errorf("own memory map: %w", err)
	}
	defer maps.Close()
	root, err := mount.Tmpfs(4096, 16, 0o755, mount.NoSUID|mount.NoDev)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, dir := range []string{"proc", "proc/self", ".old"} {
		if err := unix.Mkdirat(root.FD(), dir, 0o755); err != nil {
			return &os.PathError{Op: "mkdir", Path: dir, Err: err}
		}
	}
	fd, err := unix.Openat(root.FD(), "proc/self/maps", unix.O_CREAT|unix.O_CLOEXEC, 0o444)
	if err != nil {
		return &os.PathError{Op: "create", Path: "proc/self/maps", Err: err}
	}
	unix.Close(fd)
	if err := root.Attach(unix.AT_FDCWD, stage); err != nil {
		return err
	}
	if err := maps.Attach(root.FD(), "proc/self/maps"); err != nil {
		return err
	}
	return pivot(root)
}

func pivot(root mount.Tree) error {
	if err := mount.Pivot(stage, ".old"); err != nil {
		return err
	}
	if err := unix.Rmdir("/.old"); err != nil {
		return os.NewSyscallError("rmdir", err)
	}
	return root.Set(mount.ReadOnly | mount.NoSUID | mount.NoDev | mount.NoExec)
}
