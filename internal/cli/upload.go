package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"tranca"
	"tranca/client"
	"tranca/internal/archive"
)

// upload copies into a sandbox.
type upload struct {
	a      *app
	box    *client.Sandbox
	resume bool
}

func (u *upload) copy(ctx context.Context, src, dst string) error {
	files := u.box.Files()
	there, err := remoteIsFolder(ctx, files, dst)
	if err != nil {
		return err
	}
	if src == "-" {
		if there || folderAsked(dst) {
			return fmt.Errorf("%w: %s is a folder: name the file that standard input becomes", tranca.ErrInvalid, dst)
		}
		p := u.a.progress("standard input", 0)
		defer p.stop()
		_, err := files.Write(ctx, dst, p.reader(u.a.Stdin), 0o644)
		return err
	}
	info, err := os.Stat(src)
	if err != nil {
		return fileError(err)
	}
	asked := dst
	if there || folderAsked(dst) {
		if !info.IsDir() || !contentsAsked(src) {
			dst = path.Join(dst, filepath.Base(src))
		}
	}
	switch {
	case info.IsDir() && u.resume:
		return errResumeFolder
	case info.IsDir():
		return u.folder(ctx, src, path.Clean(dst))
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w: %s is no regular file: give it by standard input, as -", tranca.ErrInvalid, src)
	}
	if !there && folderAsked(asked) {
		if _, err := files.MakeDir(ctx, path.Dir(dst)); err != nil {
			return err
		}
	}
	return u.file(ctx, files, src, dst, info)
}

// file copies one file, or the rest of it.
func (u *upload) file(ctx context.Context, files tranca.Files, src, dst string, info os.FileInfo) error {
	f, err := os.Open(src)
	if err != nil {
		return fileError(err)
	}
	defer f.Close()
	if !u.resume {
		p := u.a.progress(filepath.Base(src), info.Size())
		defer p.stop()
		_, err := files.Write(ctx, dst, &countedFile{f, p}, info.Mode().Perm())
		return err
	}
	resumer, ok := tranca.As[tranca.FileResumer](files)
	if !ok {
		return fmt.Errorf("%w: this sandbox can't go on with a file", tranca.ErrUnsupported)
	}
	held, err := remoteSize(ctx, files, dst)
	switch {
	case err != nil:
		return err
	case held > info.Size():
		return fmt.Errorf("%w: %s has %d bytes there and %d here, so it is no part of the same file", tranca.ErrInvalid, dst, held, info.Size())
	}
	if _, err := f.Seek(held, io.SeekStart); err != nil {
		return fileError(err)
	}
	p := u.a.progress(filepath.Base(src), info.Size()-held)
	defer p.stop()
	_, err = resumer.WriteFrom(ctx, dst, &countedFile{f, p}, held, info.Mode().Perm())
	return err
}

// countedFile is a file that can be read again from where a connection broke.
type countedFile struct {
	f *os.File
	p *progress
}

func (c *countedFile) Read(b []byte) (int, error) {
	n, err := c.f.Read(b)
	c.p.done.Add(int64(n))
	return n, err
}

// Seek implements [io.Seeker]. What is read again is not counted twice.
func (c *countedFile) Seek(offset int64, whence int) (int64, error) {
	before, err := c.f.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, err
	}
	after, err := c.f.Seek(offset, whence)
	if err == nil {
		c.p.done.Add(after - before)
	}
	return after, err
}

// remoteSize is how much of a file is there.
func remoteSize(ctx context.Context, files tranca.Files, name string) (int64, error) {
	there, err := existing(ctx, files, name)
	if err != nil || there == nil {
		return 0, err
	}
	if there.Type != tranca.FileRegular {
		return 0, fmt.Errorf("%w: %s is no regular file", tranca.ErrInvalid, name)
	}
	return there.Size, nil
}

// folder copies a folder with all below it.
func (u *upload) folder(ctx context.Context, src, dst string) error {
	p := u.a.progress(filepath.Base(src), 0)
	defer p.stop()
	r, w := io.Pipe()
	type outcome struct {
		left archive.Skipped
		err  error
	}
	packed := make(chan outcome, 1)
	go func() {
		left, err := archive.PackLocal(ctx, src, w)
		w.CloseWithError(err)
		packed <- outcome{left, err}
	}()
	_, err := u.box.Extract(ctx, dst, p.reader(r))
	if err != nil {
		r.CloseWithError(err)
	} else {
		// A tar may have a tail that nobody needs to read.
		_, err = io.Copy(io.Discard, r)
	}
	o := <-packed
	p.stop()
	u.a.saySkipped(o.left, "no file that can be read, or a link that leads out")
	return err
}
