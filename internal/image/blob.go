//go:build linux

package image

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"

	"tranca"
)

// blobPath is where a blob lies. The digest was checked.
func (s *Store) blobPath(digest string) string { return s.path(blobsDir, hexOf(digest)) }

// addBlob puts a blob into the store unless it is there, and whole. What comes
// is checked byte for byte: exactly the descriptor's size, and its digest.
func (w *work) addBlob(ctx context.Context, d Descriptor, open func(context.Context) (io.ReadCloser, error), p Progress) error {
	held, err := w.s.lock(ctx, placeOf(d.Digest, forBlob), exclusive)
	if err != nil {
		return err
	}
	defer held.release()
	err = w.s.checkBlob(ctx, d)
	switch {
	case err == nil:
		p.add(d.Size)
		return nil
	case errors.Is(err, errCorrupt):
		if err := os.Remove(w.s.blobPath(d.Digest)); err != nil {
			return w.s.failed("remove", w.s.blobPath(d.Digest), err)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if path := w.files[d.Digest]; path != "" { // it was compared when it was written
		p.add(d.Size)
		delete(w.files, d.Digest)
		return w.place(path, d.Digest)
	}
	r, err := open(ctx)
	if err != nil {
		return err
	}
	defer r.Close()
	temp := w.temp()
	sum, n, err := w.spool(ctx, temp, io.LimitReader(p.reader(r), d.Size+1))
	if err != nil {
		return fmt.Errorf("blob %s: %w", short(d.Digest), err)
	}
	switch {
	case n > d.Size:
		return fmt.Errorf("%w: blob %s is longer than the %d bytes that were promised", tranca.ErrInvalid, short(d.Digest), d.Size)
	case n < d.Size:
		return fmt.Errorf("%w: blob %s ended after %d of %d bytes", tranca.ErrInvalid, short(d.Digest), n, d.Size)
	case sum != d.Digest:
		return fmt.Errorf("%w: blob %s has another digest: %s", tranca.ErrInvalid, short(d.Digest), sum)
	}
	return w.place(temp, d.Digest)
}

// place moves a file of the work to where its digest says.
func (w *work) place(temp, digest string) error {
	path := w.s.blobPath(digest)
	if err := os.Chmod(temp, 0o400); err != nil {
		return w.s.failed("change", temp, err)
	}
	if err := os.Rename(temp, path); err != nil {
		return w.s.failed("rename", path, err)
	}
	return syncFolder(w.s.path(blobsDir))
}

// spool writes a stream to a new file, on the disk when it returns, and says
// what it was.
func (w *work) spool(ctx context.Context, path string, r io.Reader) (digest string, n int64, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", 0, w.s.failed("create", path, err)
	}
	h := sha256.New()
	n, err = copyAll(ctx, &storeWriter{w.s, f}, io.TeeReader(r, h))
	if err == nil {
		err = w.s.failed("write", path, f.Sync())
	}
	if closed := f.Close(); err == nil {
		err = w.s.failed("write", path, closed)
	}
	return digestIn(h), n, err
}

// storeWriter tells errors of the store from those of what is read.
type storeWriter struct {
	s *Store
	f *os.File
}

func (w *storeWriter) Write(b []byte) (int, error) {
	n, err := w.f.Write(b)
	return n, w.s.failed("write", w.f.Name(), err)
}

// copyAll copies until the end or ctx's.
func copyAll(ctx context.Context, w io.Writer, r io.Reader) (n int64, err error) {
	buf := make([]byte, 256<<10)
	for {
		if ctx.Err() != nil {
			return n, context.Cause(ctx)
		}
		k, err := r.Read(buf)
		if k > 0 {
			if _, err := w.Write(buf[:k]); err != nil {
				return n, err
			}
			n += int64(k)
		}
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// addBytes puts a document into the store.
func (w *work) addBytes(ctx context.Context, b []byte) (digest string, err error) {
	d := Descriptor{Digest: digestOf(b), Size: int64(len(b))}
	err = w.addBlob(ctx, d, func(context.Context) (io.ReadCloser, error) { return readCloser(b), nil }, nil)
	return d.Digest, err
}

// errCorrupt says that a file of the store is not what it was.
var errCorrupt = errors.New("it was changed since it came into the store")

// checkBlob reads the blob of the store and compares.
func (s *Store) checkBlob(ctx context.Context, d Descriptor) error {
	r, err := s.openBlob(d)
	if err != nil {
		return err
	}
	defer r.Close()
	if _, err := copyAll(ctx, io.Discard, r); err != nil {
		return err
	}
	return nil
}

// openBlob opens a blob for reading. Where its content isn't the digest's, the
// last read fails with errCorrupt; a wrong size does at once.
func (s *Store) openBlob(d Descriptor) (io.ReadCloser, error) {
	path := s.blobPath(d.Digest)
	f, err := os.Open(path)
	if err != nil {
		return nil, s.failed("open", path, err)
	}
	info, err := f.Stat()
	if err == nil && (!info.Mode().IsRegular() || info.Size() != d.Size) {
		err = s.corrupt(path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &blobReader{s: s, f: f, h: sha256.New(), want: d.Digest}, nil
}

func (s *Store) corrupt(path string) error {
	return fmt.Errorf("%w: image cache: %s: %w", tranca.ErrUnavailable, path, errCorrupt)
}

type blobReader struct {
	s    *Store
	f    *os.File
	h    hash.Hash
	want string
}

func (b *blobReader) Read(p []byte) (int, error) {
	n, err := b.f.Read(p)
	b.h.Write(p[:n])
	if err == io.EOF && digestIn(b.h) != b.want {
		return n, b.s.corrupt(b.f.Name())
	}
	if err != nil && err != io.EOF {
		err = b.s.failed("read", b.f.Name(), err)
	}
	return n, err
}

func (b *blobReader) Close() error { return b.f.Close() }

// readDocument reads a small blob, and checks it.
func (s *Store) readDocument(digest string) ([]byte, error) {
	path := s.blobPath(digest)
	f, err := os.Open(path)
	if err != nil {
		return nil, s.failed("open", path, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MaxDocument+1))
	if err != nil {
		return nil, s.failed("read", path, err)
	}
	if digestOf(b) != digest {
		return nil, s.corrupt(path)
	}
	return b, nil
}

// writeFile puts a small file into its place at once.
func (w *work) writeFile(path string, b []byte) error {
	temp := w.temp()
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return w.s.failed("create", temp, err)
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return w.s.failed("write", path, err)
	}
	return nil
}

func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
