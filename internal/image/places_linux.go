package image

import (
	"path"

	"golang.org/x/sys/unix"
)

// Every sandbox has some places of its own, whatever its image has there. They
// are made in the tree where they are missing, so that a backend can cover them
// in a tree that is read-only: folders, and files of /etc, each empty.
var (
	ownFolders = []string{"dev", "proc", "sys", "tmp", "work"}
	ownFiles   = []string{"group", "hostname", "hosts", "nsswitch.conf", "passwd", "resolv.conf"}
)

// makePlaces makes what is missing, and returns the names of what it made. A
// link or anything else in the place of a folder goes; only /etc may be a link
// to a folder of the tree.
func (u *unpacker) makePlaces() (made []string, err error) {
	root := &folder{fd: u.fd}
	for _, name := range ownFolders {
		new, err := u.placeFolder(root, name)
		if err != nil {
			return made, asEntryError(name, err)
		}
		if new {
			made = append(made, name)
		}
	}
	etc, err := u.folder("etc")
	if err != nil {
		if _, err := u.placeFolder(root, "etc"); err != nil {
			return made, asEntryError("etc", err)
		}
		made = append(made, "etc")
		if etc, err = u.folder("etc"); err != nil {
			return made, asEntryError("etc", err)
		}
	}
	for _, name := range ownFiles {
		new, err := u.placeFile(etc, name)
		if err != nil {
			return made, asEntryError(path.Join("etc", name), err)
		}
		if new {
			made = append(made, path.Join(etc.name, name))
		}
	}
	return made, nil
}

func (u *unpacker) placeFolder(above *folder, base string) (made bool, err error) {
	isDir, err := isFolder(above.fd, base)
	if isDir || err != nil && err != unix.ENOENT {
		return false, err
	}
	if err := u.remove(above.fd, base); err != nil {
		return false, err
	}
	if err := unix.Mkdirat(above.fd, base, 0o755); err != nil {
		return false, err
	}
	return true, unix.Fchmodat(above.fd, base, 0o755, 0)
}

func (u *unpacker) placeFile(above *folder, base string) (made bool, err error) {
	var st unix.Stat_t
	err = unix.Fstatat(above.fd, base, &st, unix.AT_SYMLINK_NOFOLLOW)
	if err == nil && st.Mode&unix.S_IFMT == unix.S_IFREG || err != nil && err != unix.ENOENT {
		return false, err
	}
	if err := u.remove(above.fd, base); err != nil {
		return false, err
	}
	fd, err := u.create(above, base, 0o644)
	if err != nil {
		return false, err
	}
	if err := unix.Fchmod(fd, 0o644); err != nil {
		unix.Close(fd)
		return false, err
	}
	return true, unix.Close(fd)
}
