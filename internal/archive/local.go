package archive

import (
	"archive/tar"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"tranca"
)

// PackLocal writes a tar archive of a folder or file of the own disk, as [Pack]
// does of a sandbox's. A link at the end of path is followed, one below never.
// Owners and their names are left out. Links that [Extract] would refuse are
// left out too, and named with what else was.
func PackLocal(ctx context.Context, name string, w io.Writer) (Skipped, error) {
	p := &packer{ctx: ctx, w: tar.NewWriter(w)}
	info, err := os.Stat(name)
	if err != nil {
		return p.skipped, local(err)
	}
	dir, base := name, "."
	if !info.IsDir() {
		// By its folder, so that a name in a folder is all that is ever opened.
		full, err := filepath.EvalSymlinks(name) //nolint:forbidigo // the name is the caller's own, and may be a link
		if err != nil {
			return p.skipped, local(err)
		}
		dir, base = filepath.Split(full)
		if dir == "" {
			dir = "."
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return p.skipped, local(err)
	}
	defer root.Close()
	l := &localPacker{p, root}
	if info.IsDir() {
		return p.end(l.folder("."))
	}
	if !info.Mode().IsRegular() {
		return p.skipped, fmt.Errorf("%w: %q is no file, folder or link", tranca.ErrInvalid, name)
	}
	return p.end(l.file(base))
}

type localPacker struct {
	*packer
	root *os.Root
}

// folder writes what a folder holds, in lexical order, parents first.
func (l *localPacker) folder(dir string) error {
	f, err := l.root.Open(filepath.FromSlash(dir))
	if err != nil {
		return l.without(dir, err)
	}
	names, err := f.Readdirnames(-1)
	f.Close()
	if err != nil {
		return l.without(dir, err)
	}
	slices.Sort(names)
	for _, base := range names {
		if err := l.ctx.Err(); err != nil {
			return context.Cause(l.ctx)
		}
		if err := l.one(path.Join(dir, base)); err != nil {
			return err
		}
	}
	return nil
}

// without leaves out what can't be read or went meanwhile.
func (l *localPacker) without(name string, err error) error {
	if name != "." && gone(local(err)) {
		l.skipped.add(name)
		return nil
	}
	return local(err)
}

func (l *localPacker) one(name string) error {
	info, err := l.root.Lstat(filepath.FromSlash(name))
	if err != nil {
		return l.without(name, err)
	}
	entry := tranca.FileInfo{Mode: info.Mode(), Modified: info.ModTime(), Type: tranca.FileOther}
	switch {
	case info.Mode().IsRegular():
		return l.file(name)
	case info.IsDir():
		entry.Type = tranca.FileDirectory
		if err := l.entry(name, name, entry); err != nil {
			return err
		}
		return l.folder(name)
	case info.Mode()&fs.ModeSymlink != 0:
		to, err := l.root.Readlink(filepath.FromSlash(name))
		if err != nil {
			return l.without(name, err)
		}
		if entry.LinkTarget = filepath.ToSlash(to); leadsOut(name, entry.LinkTarget) == "" {
			entry.Type = tranca.FileSymlink
		}
	}
	return l.entry(name, name, entry)
}

// file writes a regular file. It never waits for a FIFO that took its place.
func (l *localPacker) file(name string) error {
	f, err := l.root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return l.without(name, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return l.without(name, err)
	}
	if !info.Mode().IsRegular() {
		l.skipped.add(name)
		return nil
	}
	l.open = func(string) (io.ReadCloser, error) { return io.NopCloser(f), nil }
	return l.entry(name, name, tranca.FileInfo{
		Type: tranca.FileRegular, Size: info.Size(), Mode: info.Mode(), Modified: info.ModTime(),
	})
}

// ExtractLocal extracts a tar archive that came from a sandbox into a folder of
// the own disk, which it makes where nothing is. What [Extract] refuses is
// refused here too. No entry is written through a link, neither one of the
// archive nor one that was there, and by no way outside of the folder. Files
// that are there are replaced, each at once when it is whole.
func ExtractLocal(ctx context.Context, dir string, r io.Reader, opts Options) (Summary, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return Summary{}, local(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Summary{}, local(err)
	}
	defer root.Close()
	return extract(ctx, outside{root}, r, opts)
}

// outside is a folder of the own disk. [os.Root] keeps every path in it, also
// where somebody puts links there meanwhile.
type outside struct{ root *os.Root }

func (t outside) kind(name string) (tranca.FileType, string, error) {
	info, err := t.root.Lstat(filepath.FromSlash(name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", "", nil
	case err != nil:
		return "", "", local(err)
	case info.Mode().IsRegular():
		return tranca.FileRegular, "", nil
	case info.IsDir():
		return tranca.FileDirectory, "", nil
	case info.Mode()&fs.ModeSymlink != 0:
		to, err := t.root.Readlink(filepath.FromSlash(name))
		return tranca.FileSymlink, filepath.ToSlash(to), local(err)
	}
	return tranca.FileOther, "", nil
}

func (t outside) mkdir(name string) error {
	return local(t.root.Mkdir(filepath.FromSlash(name), 0o777))
}

// write writes under a name of its own and renames. A new name can't be a link,
// and a rename replaces one instead of following it.
func (t outside) write(name string, r io.Reader, mode fs.FileMode) error {
	temp := filepath.FromSlash(path.Join(path.Dir(name), ".tranca-"+strings.ToLower(rand.Text())))
	f, err := t.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return local(err)
	}
	_, err = io.Copy(f, r)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = t.root.Rename(temp, filepath.FromSlash(name))
	}
	if err != nil {
		return local(errors.Join(err, t.root.Remove(temp)))
	}
	return nil
}

// symlink makes a link. One that would lead out of the folder by a link that was
// there before is taken back.
func (t outside) symlink(name, to string) error {
	at := filepath.FromSlash(name)
	if err := t.root.Symlink(filepath.FromSlash(to), at); err != nil {
		return local(err)
	}
	_, err := t.root.Stat(at)
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return errors.Join(refuse(name, "a link to %.200q, which leads out of the folder: %v", to, err), t.root.Remove(at))
}

func (t outside) remove(name string) error {
	return local(t.root.Remove(filepath.FromSlash(name)))
}

// local puts an error of the own disk into one of the module's classes.
func local(err error) error {
	class := tranca.ErrInvalid
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		class = tranca.ErrNotFound
	case errors.Is(err, fs.ErrExist):
		class = tranca.ErrExists
	case errors.Is(err, fs.ErrPermission):
		class = tranca.ErrRefused
	case errors.Is(err, syscall.ENOSPC):
		class = tranca.ErrNoSpace
	}
	return fmt.Errorf("%w: %w", class, err)
}
