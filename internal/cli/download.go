package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"tranca"
	"tranca/client"
	"tranca/internal/archive"
	"tranca/internal/terminal"
)

// download copies out of a sandbox.
type download struct {
	a      *app
	box    *client.Sandbox
	resume bool
}

func (d *download) copy(ctx context.Context, src, dst string) error {
	files := d.box.Files()
	contents := contentsAsked(src)
	info, err := files.Stat(ctx, path.Clean(src))
	if err != nil {
		return err
	}
	folder := info.Type == tranca.FileDirectory
	if !folder && info.Type != tranca.FileRegular {
		return linkError(info, src)
	}
	if dst == "-" {
		if folder {
			return d.tar(ctx, path.Clean(src))
		}
		return d.print(ctx, files, src, info.Size)
	}
	if local, err := os.Stat(dst); (err == nil && local.IsDir()) || folderAsked(filepath.ToSlash(dst)) {
		if err := os.MkdirAll(dst, 0o777); err != nil {
			return fileError(err)
		}
		// Its own name is the caller's word, not the sandbox's.
		if !folder || !contents {
			dst = filepath.Join(dst, path.Base(path.Clean(src)))
		}
	}
	switch {
	case folder && d.resume:
		return errResumeFolder
	case folder:
		return d.folder(ctx, path.Clean(src), dst)
	}
	return d.file(ctx, files, src, dst, info)
}

func linkError(info tranca.FileInfo, src string) error {
	if info.Type == tranca.FileSymlink {
		return fmt.Errorf("%w: %s is a link to %q, and links are not followed: copy what it leads to", tranca.ErrInvalid, src, info.LinkTarget)
	}
	return fmt.Errorf("%w: %s is neither a file nor a folder", tranca.ErrInvalid, src)
}

// tar writes a folder to standard output.
func (d *download) tar(ctx context.Context, src string) error {
	if terminal.Is(d.a.Stdout) {
		return fmt.Errorf("%w: a folder goes to standard output as a tar, and that is a terminal", tranca.ErrInvalid)
	}
	r, err := d.box.Archive(ctx, src)
	if err != nil {
		return err
	}
	defer r.Close()
	return d.drain(d.a.Stdout, r, path.Base(src), 0)
}

// print writes a file to standard output.
func (d *download) print(ctx context.Context, files tranca.Files, src string, size int64) error {
	r, err := files.Read(ctx, src, 0)
	if err != nil {
		return err
	}
	defer r.Close()
	return d.drain(shielded(d.a.Stdout), r, path.Base(src), size)
}

// drain copies all of r, and tells what failed to write from what failed to be
// read.
func (d *download) drain(w io.Writer, r io.Reader, what string, size int64) error {
	p := d.a.progress(what, size)
	defer p.stop()
	_, err := io.CopyBuffer(struct{ io.Writer }{w}, p.reader(r), make([]byte, 256<<10))
	if f, ok := w.(*terminal.Filter); ok && err == nil {
		err = f.Close()
	}
	return err
}

// folder copies a folder with all below it.
func (d *download) folder(ctx context.Context, src, dst string) error {
	r, err := d.box.Archive(ctx, src)
	if err != nil {
		return err
	}
	defer r.Close()
	p := d.a.progress(path.Base(src), 0)
	defer p.stop()
	sum, err := archive.ExtractLocal(ctx, dst, p.reader(r), archive.Options{SkipLinks: true})
	p.stop()
	d.a.saySkipped(sum.Skipped, "a link that leads out")
	return err
}

// partSuffix is what the name of a file has until it is whole.
const partSuffix = ".part"

// file copies one file, or the rest of it. The file's folder is the caller's;
// within it nothing leads out, also where there is a link.
func (d *download) file(ctx context.Context, files tranca.Files, src, dst string, info tranca.FileInfo) error {
	if there, err := os.Lstat(dst); err == nil && !there.Mode().IsRegular() && there.Mode().Type() != fs.ModeSymlink {
		return d.special(ctx, files, src, dst, info.Size)
	}
	folder, err := os.OpenRoot(filepath.Dir(dst))
	if err != nil {
		return fileError(err)
	}
	defer folder.Close()
	name := filepath.Base(dst)
	part, held, err := d.openPart(folder, name+partSuffix, info)
	if err != nil {
		return err
	}
	defer part.Close()
	r, err := files.Read(ctx, src, held)
	if err != nil {
		return err
	}
	defer r.Close()
	if err := d.drain(part, r, name, info.Size-held); err != nil {
		return fmt.Errorf("%w; what came is in %s, and --resume goes on with it", err, dst+partSuffix)
	}
	if err := part.Close(); err != nil {
		return fmt.Errorf("write %s: %w", dst, err)
	}
	if err := folder.Rename(name+partSuffix, name); err != nil {
		return fileError(err)
	}
	return nil
}

// openPart opens what becomes the file, and says how much of it is there.
func (d *download) openPart(folder *os.Root, name string, info tranca.FileInfo) (*os.File, int64, error) {
	there, err := folder.Lstat(name)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, 0, fileError(err)
	case err == nil && d.resume && !there.Mode().IsRegular():
		return nil, 0, fmt.Errorf("%w: %s is no regular file", tranca.ErrInvalid, name)
	case err == nil && d.resume && there.Size() > info.Size:
		return nil, 0, fmt.Errorf("%w: %s has %d bytes here and the file %d there, so it is no part of the same file", tranca.ErrInvalid, name, there.Size(), info.Size)
	case err == nil && d.resume:
		f, err := folder.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return nil, 0, fileError(err)
		}
		return f, there.Size(), nil
	case err == nil:
		if err := folder.Remove(name); err != nil {
			return nil, 0, fileError(err)
		}
	}
	// One that can't be written to could not be resumed.
	f, err := folder.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode.Perm()|0o600)
	if err != nil {
		return nil, 0, fileError(err)
	}
	return f, 0, nil
}

// special writes to what is no file, such as a FIFO or a device, and stays
// there.
func (d *download) special(ctx context.Context, files tranca.Files, src, dst string, size int64) error {
	if d.resume {
		return fmt.Errorf("%w: %s is no regular file", tranca.ErrInvalid, dst)
	}
	f, err := os.OpenFile(dst, os.O_WRONLY, 0)
	if err != nil {
		return fileError(err)
	}
	defer f.Close()
	r, err := files.Read(ctx, src, 0)
	if err != nil {
		return err
	}
	defer r.Close()
	if err := d.drain(f, r, path.Base(src), size); err != nil {
		return err
	}
	return f.Close()
}
