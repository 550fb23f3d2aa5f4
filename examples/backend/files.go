package hostexec

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"tranca"
)

// files serves the sandbox's folder, whose top is "/". os.Root keeps every
// path inside, whatever links the code has made.
type files struct{ s *sandbox }

const maxList = 100_000

// inside makes a path relative to the folder.
func inside(name string) (string, error) {
	if strings.IndexByte(name, 0) >= 0 {
		return "", fmt.Errorf("%w: a path with a NUL byte", tranca.ErrInvalid)
	}
	return "./" + strings.TrimPrefix(path.Clean("/"+name), "/"), nil
}

// enter checks the caller, the sandbox and the path.
func (f files) enter(ctx context.Context, name string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	if f.s.closed {
		return "", f.s.gone()
	}
	if name == "" {
		return "", fmt.Errorf("%w: an empty path", tranca.ErrInvalid)
	}
	return inside(name)
}

// openRegular opens a regular file and nothing else, without blocking.
func (f files) openRegular(name string, flags int, mode fs.FileMode) (*os.File, error) {
	file, err := f.s.root.OpenFile(name, flags|syscall.O_NONBLOCK, mode)
	if err != nil {
		return nil, class(err)
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%w: %s is no regular file", tranca.ErrInvalid, name)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

func (f files) Read(ctx context.Context, name string, offset int64) (io.ReadCloser, error) {
	at, err := f.enter(ctx, name)
	if err != nil {
		return nil, err
	}
	file, err := f.openRegular(at, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		file.Close()
		return nil, class(err)
	}
	return file, nil
}

func (f files) Write(ctx context.Context, name string, r io.Reader, mode fs.FileMode) (int64, error) {
	at, err := f.enter(ctx, name)
	if err != nil {
		return 0, err
	}
	file, err := f.openRegular(at, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode.Perm())
	if err != nil {
		return 0, err
	}
	defer file.Close()
	n, err := io.Copy(file, r)
	if err == nil {
		err = class(file.Chmod(mode.Perm()))
	}
	return n, err
}

func (f files) info(at string) (tranca.FileInfo, error) {
	st, err := f.s.root.Lstat(at)
	if err != nil {
		return tranca.FileInfo{}, class(err)
	}
	out := tranca.FileInfo{
		Name: path.Base(at), Path: path.Join("/", at), Mode: st.Mode().Perm(), Modified: st.ModTime(),
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		out.UID, out.GID = sys.Uid, sys.Gid
	}
	switch {
	case st.Mode().IsRegular():
		out.Type, out.Size = tranca.FileRegular, st.Size()
	case st.IsDir():
		out.Type = tranca.FileDirectory
	case st.Mode()&fs.ModeSymlink != 0:
		out.Type = tranca.FileSymlink
		out.LinkTarget, err = f.s.root.Readlink(at)
	default:
		out.Type = tranca.FileOther
	}
	return out, class(err)
}

func (f files) Stat(ctx context.Context, name string) (tranca.FileInfo, error) {
	at, err := f.enter(ctx, name)
	if err != nil {
		return tranca.FileInfo{}, err
	}
	return f.info(at)
}

func (f files) List(ctx context.Context, name string, depth int) ([]tranca.FileInfo, error) {
	at, err := f.enter(ctx, name)
	if err != nil {
		return nil, err
	}
	if depth < 1 {
		return nil, fmt.Errorf("%w: depth %d", tranca.ErrInvalid, depth)
	}
	if st, err := f.s.root.Stat(at); err != nil || !st.IsDir() {
		if err != nil {
			return nil, class(err)
		}
		return nil, fmt.Errorf("%w: %s is no folder", tranca.ErrInvalid, name)
	}
	top := strings.TrimPrefix(at, "./")
	if top == "" {
		top = "."
	}
	var all []tranca.FileInfo
	err = fs.WalkDir(f.s.root.FS(), top, func(sub string, d fs.DirEntry, err error) error {
		if err != nil || sub == top {
			return err
		}
		if len(all) == maxList {
			return fmt.Errorf("%w: %s has more than %d entries", tranca.ErrInvalid, name, maxList)
		}
		info, err := f.info("./" + sub)
		if err != nil {
			return err
		}
		all = append(all, info)
		below := strings.TrimPrefix(strings.TrimPrefix(sub, top), "/")
		if d.IsDir() && strings.Count(below, "/")+1 >= depth {
			return fs.SkipDir
		}
		return nil
	})
	return all, err
}

func (f files) MakeDir(ctx context.Context, name string) (tranca.FileInfo, error) {
	at, err := f.enter(ctx, name)
	if err != nil {
		return tranca.FileInfo{}, err
	}
	if _, err := f.s.root.Lstat(at); err == nil {
		return tranca.FileInfo{}, fmt.Errorf("%w: %s", tranca.ErrExists, name)
	}
	if err := f.s.root.MkdirAll(at, 0o755); err != nil {
		return tranca.FileInfo{}, class(err)
	}
	return f.info(at)
}

func (f files) Move(ctx context.Context, from, to string) (tranca.FileInfo, error) {
	src, err := f.enter(ctx, from)
	if err != nil {
		return tranca.FileInfo{}, err
	}
	dst, err := f.enter(ctx, to)
	if err != nil {
		return tranca.FileInfo{}, err
	}
	if _, err := f.s.root.Lstat(src); err != nil {
		return tranca.FileInfo{}, class(err)
	}
	if strings.HasPrefix(dst+"/", src+"/") {
		return tranca.FileInfo{}, fmt.Errorf("%w: %s is in %s", tranca.ErrInvalid, to, from)
	}
	if err := f.s.root.MkdirAll(path.Dir(dst), 0o755); err != nil {
		return tranca.FileInfo{}, class(err)
	}
	if err := f.s.root.Rename(src, dst); err != nil {
		return tranca.FileInfo{}, class(err)
	}
	return f.info(dst)
}

func (f files) Remove(ctx context.Context, name string) error {
	at, err := f.enter(ctx, name)
	if err != nil {
		return err
	}
	if at == "./" {
		return fmt.Errorf("%w: the root can't be removed", tranca.ErrRefused)
	}
	return class(f.s.root.RemoveAll(at))
}
