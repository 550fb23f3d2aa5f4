package landlock

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// fileRights are those that the kernel takes for a rule on something that is
// not a folder.
const fileRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
	unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
	unix.LANDLOCK_ACCESS_FS_IOCTL_DEV | unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX

// accessRights lists the rights behind each kind of access.
func accessRights() map[Access]uint64 {
	return map[Access]uint64{
		Read:    unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR,
		Execute: unix.LANDLOCK_ACCESS_FS_EXECUTE,
		Write: unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
			unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
			unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
			unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO |
			unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER,
		Device:  unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE,
		Ioctl:   unix.LANDLOCK_ACCESS_FS_IOCTL_DEV,
		Connect: unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX,
		List:    unix.LANDLOCK_ACCESS_FS_READ_DIR,
	}
}

// rights returns the mask of an access.
func (a Access) rights() uint64 {
	var mask uint64
	for kind, rights := range accessRights() {
		if a&kind != 0 {
			mask |= rights
		}
	}
	return mask
}

// allowed returns the mask that the kernel takes for an object, of the rights
// that are handled.
func (a Access) allowed(handled uint64, folder bool) uint64 {
	mask := a.rights() & handled
	if !folder {
		mask &= fileRights
	}
	return mask
}

// add puts the rule into a ruleset.
func (r Rule) add(ruleset int, handled uint64) error {
	if r.Access == 0 || r.Access&^allAccess != 0 {
		return fmt.Errorf("%w: Landlock rule for %s has access %#x, want kinds out of %#x",
			ErrInvalid, r.name(), uint(r.Access), uint(allAccess))
	}
	fd, done, err := r.open()
	if err != nil {
		return err
	}
	defer done()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("%w: Landlock rule for %s: %w", ErrInvalid, r.name(), err)
	}
	mask := r.Access.allowed(handled, st.Mode&unix.S_IFMT == unix.S_IFDIR)
	if mask == 0 {
		return nil // only of what this ABI does not handle: it is allowed anyway
	}
	if err := addPath(ruleset, fd, mask); err != nil {
		return fmt.Errorf("%w: Landlock rule for %s: %w", ErrInvalid, r.name(), err)
	}
	return nil
}

// name is what messages call the rule.
func (r Rule) name() string {
	if r.File != nil {
		return fmt.Sprintf("descriptor of %q", r.File.Name())
	}
	return fmt.Sprintf("%q", r.Path)
}

// open returns a descriptor of the rule's object, and what ends its use.
func (r Rule) open() (fd int, done func(), err error) {
	if r.File != nil {
		return int(r.File.Fd()), func() {}, nil
	}
	if !filepath.IsAbs(r.Path) {
		return 0, nil, fmt.Errorf("%w: Landlock rule for %q: the path is not absolute", ErrInvalid, r.Path)
	}
	how := unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	fd, err = unix.Openat2(unix.AT_FDCWD, r.Path, &how)
	switch {
	case err == nil:
		return fd, func() { _ = unix.Close(fd) }, nil
	case errors.Is(err, unix.ELOOP):
		return 0, nil, fmt.Errorf("%w: Landlock rule for %q: a part of the path is a symbolic link; name what it leads to",
			ErrInvalid, r.Path)
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return 0, nil, fmt.Errorf("%w: Landlock rule for %q: %w", ErrNotFound, r.Path, err)
	}
	return 0, nil, fmt.Errorf("%w: Landlock rule for %q: %w", ErrInvalid, r.Path, err)
}
