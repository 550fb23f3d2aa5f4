package vmtest

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Tree is a root tree that is being put together in a folder. Make it as
// root, or the files in the VM belong to who made it.
type Tree struct {
	dir string
	// libs are where the loader looks, in its order.
	libs []string
}

// NewTree starts a tree in an empty folder: the usual folders, with bin, sbin
// and lib as links into usr where this host has them so.
func NewTree(dir string) (*Tree, error) {
	t := &Tree{dir: dir, libs: []string{
		"/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu", "/usr/lib64", "/lib64", "/usr/lib", "/lib",
	}}
	for _, d := range []string{
		"usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "etc", "proc", "sys", "dev", "run", "var", "home", "mnt",
	} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return nil, err
		}
	}
	for _, d := range []string{"bin", "sbin", "lib", "lib64"} {
		target, err := os.Readlink("/" + d)
		if err != nil { // a real folder on this host
			if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
				return nil, err
			}
			continue
		}
		if err := os.Symlink(strings.TrimPrefix(target, "/"), filepath.Join(dir, d)); err != nil {
			return nil, err
		}
	}
	for _, d := range []string{"tmp", "var/tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o777); err != nil {
			return nil, err
		}
		if err := os.Chmod(filepath.Join(dir, d), fs.ModeSticky|0o777); err != nil {
			return nil, err
		}
	}
	return t, os.Mkdir(filepath.Join(dir, "root"), 0o700)
}

// NewTreeFrom starts a tree with what is in a tar archive, such as one that
// mmdebstrap makes.
func NewTreeFrom(archive, dir string) (*Tree, error) {
	text, err := exec.Command("tar", "--numeric-owner", "-C", dir, "-xf", archive).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("unpack %s: %w: %s", archive, err, text)
	}
	return &Tree{dir: dir}, nil
}

// Write makes a file from text.
func (t *Tree) Write(path string, mode fs.FileMode, text string) error {
	to := filepath.Join(t.dir, path)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(to, []byte(text), mode); err != nil {
		return err
	}
	return os.Chmod(to, mode)
}

// Program adds a program of this host by name, what its links lead to, and the
// libraries that it needs. It looks in the system's folders, not in PATH, whose
// first hit may be somebody's shim.
func (t *Tree) Program(name string) error {
	for _, dir := range []string{"/usr/bin", "/usr/sbin", "/bin", "/sbin"} {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return t.file(path, path)
		}
	}
	return fmt.Errorf("the VM needs the program %s: %w", name, fs.ErrNotExist)
}

// file adds a file with links and libraries. asked is for messages.
func (t *Tree) file(path, asked string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("for %s: %w", asked, err)
	}
	to, err := t.target(path)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(to); err == nil {
		return nil
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		link, err := os.Readlink(path)
		if err != nil {
			return err
		}
		if err := os.Symlink(link, to); err != nil {
			return err
		}
		if !filepath.IsAbs(link) {
			link = filepath.Join(filepath.Dir(path), link)
		}
		return t.file(link, asked)
	}
	if err := copyFile(path, to, info); err != nil {
		return err
	}
	return t.libraries(path, asked)
}

// target is where a host path stands in the tree. Its folder is made. A folder
// of the path that is a link on the host is one in the tree too: NewTree made it.
func (t *Tree) target(path string) (string, error) {
	to := filepath.Join(t.dir, path)
	return to, os.MkdirAll(filepath.Dir(to), 0o755)
}

func (t *Tree) libraries(path, asked string) error {
	if t.libs == nil {
		return nil // the archive brought all
	}
	f, err := elf.Open(path)
	if err != nil {
		return nil // a script, or data
	}
	defer f.Close()
	needed, err := f.ImportedLibraries()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if interp := f.Section(".interp"); interp != nil {
		name, err := interp.Data()
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := t.file(strings.TrimRight(string(name), "\x00"), asked); err != nil {
			return err
		}
	}
	for _, lib := range needed {
		found := slices.IndexFunc(t.libs, func(dir string) bool {
			_, err := os.Stat(filepath.Join(dir, lib))
			return err == nil
		})
		if found < 0 {
			return fmt.Errorf("%s needs %s, which is in none of %v", path, lib, t.libs)
		}
		if err := t.file(filepath.Join(t.libs[found], lib), asked); err != nil {
			return err
		}
	}
	return nil
}

// Folder adds a folder of this host as it is, to the given place. Names in
// skip are left out wherever they stand.
func (t *Tree) Folder(from, to string, skip ...string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if slices.Contains(skip, d.Name()) && path != from {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return t.copyEntry(path, filepath.Join(t.dir, to, rel), info)
	})
}

func (t *Tree) copyEntry(from, to string, info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return os.MkdirAll(to, info.Mode().Perm())
	case info.Mode()&fs.ModeSymlink != 0:
		link, err := os.Readlink(from)
		if err != nil {
			return err
		}
		if err := os.Symlink(link, to); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	case info.Mode().IsRegular():
		if err := copyFile(from, to, info); err != nil {
			return err
		}
		return t.libraries(from, from)
	}
	return nil // sockets and devices have no place here
}

// copyFile keeps the mode, with its set-user-id bit: newuidmap needs it.
func copyFile(from, to string, info fs.FileInfo) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return errors.Join(err, out.Close())
	}
	if err := out.Close(); err != nil {
		return err
	}
	return os.Chmod(to, info.Mode()&(fs.ModePerm|fs.ModeSetuid|fs.ModeSetgid))
}

// Image writes the tree into an ext4 file system with free bytes of room.
func (t *Tree) Image(path string, free int64) error {
	used, err := t.size()
	if err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Truncate(used+used/4+free), f.Close()); err != nil {
		return err
	}
	text, err := exec.Command("mke2fs", "-q", "-F", "-t", "ext4", "-O", "^has_journal", "-d", t.dir, path).CombinedOutput()
	if err != nil {
		return fmt.Errorf("mke2fs: %w: %s", err, text)
	}
	return nil
}

func (t *Tree) size() (int64, error) {
	var sum int64
	err := filepath.WalkDir(t.dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		sum += 4096
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			sum += stat.Blocks * 512
		}
		return nil
	})
	return sum, err
}
