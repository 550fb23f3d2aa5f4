package boot

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"tranca/internal/guest/bootspec"
	"tranca/internal/linux/mount"
)

// overlay shows a folder of the host as if it were writable. What is written is
// in the writable space, beside the parts of it that the code sees, and so
// within the same bounds; the folder itself is mounted read-only below it. The
// overlay keeps mounts of its own of both, which hang nowhere.
func (t *tree) overlay(b *bootspec.Bind, lower mount.Tree) (mount.Tree, error) {
	none := mount.FromFD(-1)
	if err := lower.Set(mount.ReadOnly | mount.NoSUID | mount.NoDev); err != nil {
		return none, err
	}
	place := bootspec.CowPlace(b.Target)
	if err := t.makeLayers(place, lower); err != nil {
		return none, err
	}
	if err := lower.Attach(t.scratch.FD(), place+"/lower"); err != nil {
		return none, err
	}
	// The kernel takes the folders by their paths alone. These begin at the
	// writable space, of which no part is anybody else's yet.
	if err := unix.Fchdir(t.scratch.FD()); err != nil {
		return none, os.NewSyscallError("fchdir", err)
	}
	return mount.Overlay(place+"/lower", place+"/"+bootspec.CowUpper, place+"/work", mount.NoSUID|mount.NoDev)
}

// makeLayers makes the folders of an overlay. The upper one is the root of what
// the code sees, so it is as the host's folder is.
func (t *tree) makeLayers(place string, lower mount.Tree) error {
	fd := t.scratch.FD()
	if err := unix.Mkdirat(fd, bootspec.CowFolder, 0o755); err != nil && err != unix.EEXIST {
		return &os.PathError{Op: "mkdir", Path: bootspec.CowFolder, Err: err}
	}
	upper := place + "/" + bootspec.CowUpper
	// Others may pass: an unprivileged host reads what its own user, the code's,
	// has written, and the agent's user is another.
	for _, dir := range []string{place, place + "/lower", place + "/work", upper} {
		if err := unix.Mkdirat(fd, dir, 0o755); err != nil {
			return &os.PathError{Op: "mkdir", Path: dir, Err: err}
		}
	}
	if err := t.likeLower(upper, lower); err != nil {
		return err
	}
	return marks(fd, upper)
}

// likeLower gives the upper folder the mode of the host's and, where that is
// the code's, its owner.
func (t *tree) likeLower(upper string, lower mount.Tree) error {
	var st unix.Stat_t
	if err := unix.Fstat(lower.FD(), &st); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	if t.spec.AgentUID == 0 && st.Uid == t.spec.CodeUID {
		if err := unix.Fchownat(t.scratch.FD(), upper, int(t.spec.CodeUID), int(t.spec.CodeGID), unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return &os.PathError{Op: "chown", Path: upper, Err: err}
		}
	}
	if err := unix.Fchmodat(t.scratch.FD(), upper, st.Mode&0o777, 0); err != nil {
		return &os.PathError{Op: "chmod", Path: upper, Err: err}
	}
	return nil
}

// marks tries whether the space can hold the marks by which an overlay tells a
// folder that was made anew from one of the host's. Without them the kernel
// would go on and fail in the middle of a program.
func marks(space int, upper string) error {
	fd, err := unix.Openat(space, upper, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: upper, Err: err}
	}
	defer unix.Close(fd)
	const mark = "user.tranca"
	err = unix.Fsetxattr(fd, mark, []byte("y"), 0)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return fmt.Errorf("the writable space takes no attributes, which a tmpfs does from Linux 6.6 on: %w", err)
	}
	if err != nil {
		return os.NewSyscallError("fsetxattr", err)
	}
	return os.NewSyscallError("fremovexattr", unix.Fremovexattr(fd, mark))
}
