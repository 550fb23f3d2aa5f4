package container

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"

	"tranca/internal/guest/bootspec"
	"tranca/internal/linux/mount"
)

// restrict pins, protects and covers paths of an attached tree, by
// descriptors all the way: no name is looked up twice. Parents come before what
// is in them, so that a pin does not hide a protection.
func (s *stage) restrict(t mount.Tree, b *bootspec.Bind) error {
	for _, p := range b.Pin {
		if err := rebind(t, p, 0); err != nil {
			return fmt.Errorf("pin %s: %w", p, err)
		}
	}
	for _, p := range b.Protect {
		if err := rebind(t, p, mount.ReadOnly); err != nil {
			return fmt.Errorf("protect %s: %w", p, err)
		}
	}
	if len(b.Deny) == 0 {
		return nil
	}
	empty, err := s.emptiness()
	if err != nil {
		return err
	}
	for _, c := range b.Deny {
		if err := cover(t, empty, c); err != nil {
			return fmt.Errorf("deny %s: %w", c.Path, err)
		}
	}
	return nil
}

const (
	emptyFile   = "file"
	emptyFolder = "folder"
)

// emptiness is a folder that holds a file and a folder to cover others with,
// which nobody can read. It is mounted in the stage, since not every kernel
// clones from a mount that is nowhere.
func (s *stage) emptiness() (string, error) {
	at := filepath.Join(s.path, "empty")
	if _, err := os.Lstat(at); err == nil {
		return at, nil
	}
	t, err := mount.Tmpfs(4096, 8, 0o700, mount.NoSUID|mount.NoDev|mount.NoExec)
	if err != nil {
		return "", err
	}
	defer t.Close()
	if _, err := s.place(t, "empty", false); err != nil {
		return "", err
	}
	if err := os.Mkdir(filepath.Join(at, emptyFolder), 0); err != nil {
		return "", err
	}
	return at, os.WriteFile(filepath.Join(at, emptyFile), nil, 0)
}

// cover hides a path behind something empty that nobody can read.
func cover(t mount.Tree, empty string, c bootspec.Cover) error {
	fd, err := mount.Beneath(t.FD(), c.Path)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	name := emptyFolder
	if c.File {
		name = emptyFile
	}
	return mount.Cover(fd, unix.AT_FDCWD, filepath.Join(empty, name))
}

// rebind binds a path of the tree on itself, with attributes.
func rebind(t mount.Tree, p string, attrs uint64) error {
	fd, err := mount.Beneath(t.FD(), p)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return mount.Rebind(fd, attrs)
}

// expectSame has the agent look, before any code runs, that a path shows what
// was opened here.
func (pl *plan) expectSame(target string, fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	pl.boot.Same = append(pl.boot.Same, bootspec.Same{Path: path.Clean(target), Dev: st.Dev, Ino: st.Ino})
	return nil
}
