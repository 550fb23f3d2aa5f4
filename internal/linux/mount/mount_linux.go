// Package mount makes mounts by descriptor, with the kernel's newer mount
// calls: nothing is named by a path twice, so nothing can be swapped between
// the look and the use.
//
// Linux 5.15 and later. Safe for concurrent use as the kernel's calls are.
package mount

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Attributes of mounts, to be combined.
const (
	ReadOnly = unix.MOUNT_ATTR_RDONLY
	NoSUID   = unix.MOUNT_ATTR_NOSUID
	NoDev    = unix.MOUNT_ATTR_NODEV
	NoExec   = unix.MOUNT_ATTR_NOEXEC
)

// Tree is a mount, or a tree of mounts, held by a descriptor.
type Tree struct{ fd int }

// FD returns the descriptor, for use with the *at calls. It stays the Tree's.
func (t Tree) FD() int { return t.fd }

// FromFD takes over a descriptor that came from another process.
func FromFD(fd int) Tree { return Tree{fd} }

// Close drops the descriptor. A tree that is attached stays; one that is not
// is gone.
func (t Tree) Close() error { return unix.Close(t.fd) }

// Tmpfs makes a detached tmpfs. Size is in bytes, inodes a count, mode the
// permission bits of its root.
func Tmpfs(size, inodes uint64, mode uint32, attrs int) (Tree, error) {
	return newFS("tmpfs", attrs, map[string]string{
		"size":      strconv.FormatUint(size, 10),
		"nr_inodes": strconv.FormatUint(inodes, 10),
		"mode":      strconv.FormatUint(uint64(mode), 8),
	})
}

// Terminals makes a detached devpts of its own: its terminals are nobody
// else's, they are at most so many, and each belongs to whom opened it. Anybody
// may open the file ptmx in it.
func Terminals(most uint64, attrs int) (Tree, error) {
	return newFS("devpts", attrs, map[string]string{
		"max":      strconv.FormatUint(most, 10),
		"ptmxmode": "0666",
	})
}

// FileSystem makes a detached mount of a file system on a device.
func FileSystem(fstype, device string, attrs int) (Tree, error) {
	return newFS(fstype, attrs, map[string]string{"source": device})
}

// Overlay makes a detached overlay of a lower folder, which is only read, and
// an upper one, which takes what is written; work is the kernel's own. All are
// reached from the working directory. It is one that a user namespace may make:
// its marks are attributes of the user, and it never follows one that names
// another place.
func Overlay(lower, upper, work string, attrs int) (Tree, error) {
	return newFS("overlay", attrs, map[string]string{
		"lowerdir": lower, "upperdir": upper, "workdir": work,
		"index": "off", "metacopy": "off", "xino": "off",
	}, "userxattr")
}

func newFS(fstype string, attrs int, options map[string]string, flags ...string) (Tree, error) {
	fs, err := unix.Fsopen(fstype, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return Tree{}, os.NewSyscallError("fsopen "+fstype, err)
	}
	defer unix.Close(fs)
	for k, v := range options {
		if err := unix.FsconfigSetString(fs, k, v); err != nil {
			return Tree{}, os.NewSyscallError(fmt.Sprintf("fsconfig %s %s=%s", fstype, k, v), err)
		}
	}
	for _, flag := range flags {
		if err := unix.FsconfigSetFlag(fs, flag); err != nil {
			return Tree{}, os.NewSyscallError(fmt.Sprintf("fsconfig %s %s", fstype, flag), err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return Tree{}, os.NewSyscallError("fsconfig create "+fstype, err)
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, attrs)
	if err != nil {
		return Tree{}, os.NewSyscallError("fsmount "+fstype, err)
	}
	return Tree{fd}, nil
}

// Clone copies the mounts at a path, relative to a folder's descriptor or
// absolute with unix.AT_FDCWD. With recursive the mounts below come too; in a
// user namespace they must, because they cover what lies under them.
func Clone(dir int, path string, recursive bool) (Tree, error) {
	flags := uint(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_NO_AUTOMOUNT)
	if recursive {
		flags |= unix.AT_RECURSIVE
	}
	if path == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	fd, err := unix.OpenTree(dir, path, flags)
	if err != nil {
		return Tree{}, &os.PathError{Op: "open_tree", Path: path, Err: err}
	}
	return Tree{fd}, nil
}

// Set adds attributes to the whole tree.
func (t Tree) Set(attrs uint64) error {
	a := &unix.MountAttr{Attr_set: attrs, Propagation: unix.MS_PRIVATE}
	err := unix.MountSetattr(t.fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, a)
	return os.NewSyscallError("mount_setattr", err)
}

// MapIDs makes owners appear as the given user namespace maps them, in the
// whole tree or, on error, nowhere. The tree must not be attached yet.
func (t Tree) MapIDs(userns int) error {
	a := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(userns)}
	err := unix.MountSetattr(t.fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, a)
	return os.NewSyscallError("mount_setattr idmap", err)
}

// Attach puts the tree at a path, relative to a folder's descriptor. The path
// "" attaches it on the descriptor itself.
func (t Tree) Attach(dir int, path string) error {
	flags := unix.MOVE_MOUNT_F_EMPTY_PATH
	if path == "" {
		flags |= unix.MOVE_MOUNT_T_EMPTY_PATH
	}
	if err := unix.MoveMount(t.fd, "", dir, path, flags); err != nil {
		return &os.PathError{Op: "move_mount", Path: path, Err: err}
	}
	return nil
}

// Rebind mounts what is at a descriptor on itself, with more attributes.
func Rebind(at int, attrs uint64) error {
	m, err := Clone(at, "", true)
	if err != nil {
		return err
	}
	defer m.Close()
	if err := m.Set(attrs); err != nil {
		return err
	}
	return m.Attach(at, "")
}

// Cover hides what is at a descriptor behind a mount of something empty, which
// is named as for [Clone].
func Cover(at, dir int, empty string) error {
	m, err := Clone(dir, empty, false)
	if err != nil {
		return err
	}
	defer m.Close()
	if err := m.Set(ReadOnly | NoSUID | NoDev | NoExec); err != nil {
		return err
	}
	return m.Attach(at, "")
}

// Pivot makes what is attached at a path the root of every process in this mount
// namespace, and lets go of the old one; old is an empty folder of the new root
// for the moment in between.
func Pivot(path, old string) error {
	if err := unix.Chdir(path); err != nil {
		return os.NewSyscallError("chdir", err)
	}
	if err := unix.PivotRoot(".", old); err != nil {
		return os.NewSyscallError("pivot_root", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return os.NewSyscallError("chdir", err)
	}
	return os.NewSyscallError("umount old root", unix.Unmount("/"+old, unix.MNT_DETACH))
}

// Beneath opens a path below a folder for use as a place, never following a
// link of any kind and never leaving the folder.
func Beneath(dir int, path string) (int, error) {
	fd, err := unix.Openat2(dir, path, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return -1, &os.PathError{Op: "openat2", Path: path, Err: err}
	}
	return fd, nil
}

// NoLinks opens an absolute path for use as a place; a symbolic link in any
// part of it is ELOOP.
func NoLinks(path string) (int, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return -1, &os.PathError{Op: "openat2", Path: path, Err: err}
	}
	return fd, nil
}
