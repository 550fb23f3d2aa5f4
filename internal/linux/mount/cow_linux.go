package mount

import (
	"errors"
	"fmt"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// Upper is the folder of [Layers] that takes what is written.
const Upper = "upper"

// Layers says where the folders of an overlay are made.
type Layers struct {
	// Space is what takes what is written, attached somewhere.
	Space Tree
	// Path leads to Space; empty is the working directory. The kernel takes
	// folders by their paths alone, so nobody else may change what it leads by.
	Path string
	// Place is a folder in Space that is made, as are those above it.
	Place string
	// Own gives the upper folder to a user and group, if the lower one is that
	// user's.
	Own      bool
	UID, GID uint32
}

// CopyOnWrite makes a detached overlay that shows a folder as if it were
// writable. What is written goes to the space; the folder itself is mounted
// read-only below it. The overlay keeps mounts of its own of both, which hang
// nowhere. On error some of the place may be there.
func CopyOnWrite(lower Tree, l Layers) (Tree, error) {
	none := FromFD(-1)
	if err := lower.Set(ReadOnly | NoSUID | NoDev); err != nil {
		return none, err
	}
	if err := l.make(lower); err != nil {
		return none, err
	}
	if err := lower.Attach(l.Space.FD(), l.Place+"/lower"); err != nil {
		return none, err
	}
	at := path.Join(l.Path, l.Place)
	return Overlay(at+"/lower", at+"/"+Upper, at+"/work", NoSUID|NoDev)
}

// make makes the folders. The upper one is the root of what is shown, so it is
// as the lower one is.
func (l *Layers) make(lower Tree) error {
	fd := l.Space.FD()
	for i := range len(l.Place) {
		if l.Place[i] == '/' {
			if err := unix.Mkdirat(fd, l.Place[:i], 0o755); err != nil && err != unix.EEXIST {
				return &os.PathError{Op: "mkdir", Path: l.Place[:i], Err: err}
			}
		}
	}
	upper := l.Place + "/" + Upper
	// Others may pass: an unprivileged host reads what its own user, the code's,
	// has written, and the agent's user is another.
	for _, dir := range []string{l.Place, l.Place + "/lower", l.Place + "/work", upper} {
		if err := unix.Mkdirat(fd, dir, 0o755); err != nil {
			return &os.PathError{Op: "mkdir", Path: dir, Err: err}
		}
	}
	if err := l.like(upper, lower); err != nil {
		return err
	}
	return marks(fd, upper)
}

// like gives the upper folder the mode and the owner of the lower one.
func (l *Layers) like(upper string, lower Tree) error {
	var st unix.Stat_t
	if err := unix.Fstat(lower.FD(), &st); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	if l.Own && st.Uid == l.UID {
		if err := unix.Fchownat(l.Space.FD(), upper, int(l.UID), int(l.GID), unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return &os.PathError{Op: "chown", Path: upper, Err: err}
		}
	}
	if err := unix.Fchmodat(l.Space.FD(), upper, st.Mode&0o777, 0); err != nil {
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
