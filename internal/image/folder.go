//go:build linux

package image

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"

	"tranca"
)

// treeSource is the source of a folder that is a root tree: one layer, in the
// order of names and of root's, so that the same files give the same image.
func (w *work) treeSource(ctx context.Context, root *os.Root, name string, p Progress) (Source, error) {
	p.begin("reading "+name, 0)
	return readMade(func(out io.Writer) error {
		return packTree(ctx, root, out, w.s.bounds)
	}, func(r io.Reader) (Source, error) {
		return w.tarballSource(ctx, p.reader(r), name)
	})
}

// treePacker writes a folder as a layer.
type treePacker struct {
	ctx    context.Context
	root   *os.Root
	w      *tar.Writer
	bounds Bounds
	count  int
	bytes  int64
	buf    []byte
}

func packTree(ctx context.Context, root *os.Root, w io.Writer, bounds Bounds) error {
	p := &treePacker{ctx: ctx, root: root, w: tar.NewWriter(w), bounds: bounds, buf: make([]byte, 128<<10)}
	if err := p.folder("."); err != nil {
		return err
	}
	return p.w.Close()
}

func (p *treePacker) folder(dir string) error {
	f, err := p.root.Open(dir)
	if err != nil {
		return inputError(dir, err)
	}
	names, err := f.Readdirnames(-1)
	f.Close()
	if err != nil {
		return inputError(dir, err)
	}
	slices.Sort(names)
	for _, base := range names {
		if p.ctx.Err() != nil {
			return context.Cause(p.ctx)
		}
		if p.count++; p.count > p.bounds.Entries {
			return fmt.Errorf("%w: the folder has more than %d entries", tranca.ErrInvalid, p.bounds.Entries)
		}
		if err := p.one(path.Join(dir, base)); err != nil {
			return err
		}
	}
	return nil
}

// one writes an entry. Devices, FIFOs and sockets are no part of a root tree
// that sandboxes share.
func (p *treePacker) one(name string) error {
	info, err := p.root.Lstat(name)
	if err != nil {
		return inputError(name, err)
	}
	h := &tar.Header{
		Name: name, ModTime: info.ModTime().Truncate(1e9), Format: tar.FormatPAX, Mode: 0o644,
	}
	switch {
	case info.IsDir():
		h.Typeflag, h.Name, h.Mode = tar.TypeDir, name+"/", 0o755
		if err := p.w.WriteHeader(h); err != nil {
			return err
		}
		return p.folder(name)
	case info.Mode()&fs.ModeSymlink != 0:
		h.Typeflag, h.Mode = tar.TypeSymlink, 0o777
		if h.Linkname, err = p.root.Readlink(name); err != nil {
			return inputError(name, err)
		}
		return p.w.WriteHeader(h)
	case info.Mode().IsRegular():
		return p.file(name, h)
	}
	return nil
}

func (p *treePacker) file(name string, h *tar.Header) error {
	f, err := openRegular(p.root, name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return inputError(name, err)
	}
	h.Typeflag, h.Size = tar.TypeReg, info.Size()
	if info.Mode()&0o111 != 0 {
		h.Mode = 0o755
	}
	if p.bytes += h.Size; p.bytes > p.bounds.Bytes {
		return fmt.Errorf("%w: the folder's files have more than %d bytes", tranca.ErrInvalid, p.bounds.Bytes)
	}
	if err := p.w.WriteHeader(h); err != nil {
		return err
	}
	n, err := io.CopyBuffer(onlyWriter{p.w}, onlyReader{io.LimitReader(f, h.Size)}, p.buf)
	if err == nil && n < h.Size {
		err = fmt.Errorf("%w: %s became shorter while it was read", tranca.ErrInvalid, name)
	}
	return err
}

// onlyWriter and onlyReader let a copy use the buffer that it is given.
type onlyWriter struct{ io.Writer }
type onlyReader struct{ io.Reader }

// digestStream reads all, and says what it was.
func digestStream(ctx context.Context, r io.Reader) (string, int64, error) {
	h := sha256.New()
	n, err := copyAll(ctx, h, r)
	return digestIn(h), n, err
}
