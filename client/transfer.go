package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"sync"

	"tranca"
	"tranca/internal/api"
)

// Read implements [tranca.Files]. Where the connection breaks it is made again
// and reading goes on at the same byte. The reader ends with ctx.
func (f *files) Read(ctx context.Context, path string, offset int64) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	d := &download{f: f, ctx: ctx, cancel: cancel, path: path, at: offset}
	if err := d.open(); err != nil {
		cancel(nil)
		return nil, err
	}
	return d, nil
}

// download reads a file over as many connections as it needs. It keeps to the
// rules of [io.ReadCloser]: only Close may come from another goroutine.
type download struct {
	f      *files
	ctx    context.Context
	cancel context.CancelCauseFunc
	path   string
	at     int64
	tries  int

	mu   sync.Mutex
	body io.ReadCloser
	err  error
}

func (d *download) open() error {
	q := d.f.call(api.RouteRead).again().with("path", d.path, "offset", strconv.FormatInt(d.at, 10))
	q.accept = api.TypeBytes
	resp, err := d.f.s.c.send(d.ctx, q) //nolint:bodyclose // Close closes it, or again
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.body = resp.Body
	return nil
}

// Read implements [io.Reader].
func (d *download) Read(p []byte) (int, error) {
	if d.err != nil || len(p) == 0 {
		return 0, d.err
	}
	for {
		n, err := d.body.Read(p)
		d.at += int64(n)
		if n > 0 {
			d.tries = 0
			return n, nil
		}
		if err == nil {
			continue
		}
		if err == io.EOF {
			d.err = io.EOF
			return 0, io.EOF
		}
		if d.err = d.again(d.f.s.c.broken(d.ctx, err)); d.err != nil {
			return 0, d.err
		}
	}
}

// again goes on after a connection that broke, or returns why not.
func (d *download) again(why error) error {
	d.body.Close()
	for passing(why) {
		if d.tries++; d.tries == maxTries {
			return why
		}
		if err := sleep(d.ctx, firstPause<<(2*d.tries)); err != nil {
			return err
		}
		if why = d.open(); why == nil {
			return nil
		}
	}
	return why
}

// Close implements [io.Closer].
func (d *download) Close() error {
	d.cancel(fmt.Errorf("%w: the reader", tranca.ErrClosed))
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.body.Close()
}

// Write implements [tranca.Files]. Where the connection breaks and r is an
// [io.Seeker], it goes on behind what the file then holds.
func (f *files) Write(ctx context.Context, path string, r io.Reader, mode fs.FileMode) (int64, error) {
	return f.upload(ctx, path, r, -1, mode)
}

// WriteFrom implements [tranca.FileResumer]; as with Write, it goes on by
// itself where r is an [io.Seeker].
func (f *files) WriteFrom(ctx context.Context, path string, r io.Reader, offset int64, mode fs.FileMode) (int64, error) {
	if offset < 0 {
		return 0, fmt.Errorf("%w: an offset of %d", tranca.ErrInvalid, offset)
	}
	return f.upload(ctx, path, r, offset, mode)
}

// upload writes r, from an offset of the file on, or, where that is negative,
// as the whole file.
func (f *files) upload(ctx context.Context, path string, r io.Reader, offset int64, mode fs.FileMode) (int64, error) {
	first := max(offset, 0)
	written, err := f.put(ctx, path, r, offset, mode)
	seeker, ok := r.(io.ReadSeeker)
	if !ok || !passing(err) {
		return written, err
	}
	start, seekErr := seeker.Seek(0, io.SeekCurrent)
	if seekErr != nil {
		return written, err
	}
	start -= written // where r was when it began
	for try := 1; passing(err) && try < maxTries; try++ {
		if serr := sleep(ctx, firstPause<<(2*try)); serr != nil {
			return written, serr
		}
		held, serr := f.Stat(ctx, path)
		if serr != nil || held.Size < first {
			return written, errors.Join(err, serr)
		}
		// What r has given and the file does not hold was lost on the way.
		done := min(held.Size-first, written)
		if _, serr := seeker.Seek(start+done, io.SeekStart); serr != nil {
			return done, errors.Join(err, serr)
		}
		var more int64
		if more, err = f.put(ctx, path, r, first+done, mode); more > 0 {
			try = 1
		}
		written = done + more
	}
	return written, err
}

// put is one request. Where the connection broke it returns how much it took
// from r.
func (f *files) put(ctx context.Context, path string, r io.Reader, offset int64, mode fs.FileMode) (int64, error) {
	q := f.call(api.RouteWrite).with("path", path, "mode", fmt.Sprintf("%04o", mode.Perm()))
	if offset >= 0 {
		q.query.Set("offset", strconv.FormatInt(offset, 10))
	}
	written, taken, err := f.send(ctx, q, r, api.TypeBytes)
	switch {
	case err != nil:
		return taken, err
	case written != taken:
		return written, fmt.Errorf("%w: the server says that it wrote %d bytes of %d", tranca.ErrProtocol, written, taken)
	}
	return written, nil
}

// send sends a stream and returns how many bytes the server says it wrote, and
// how many were taken from r.
func (f *files) send(ctx context.Context, q *call, r io.Reader, kind string) (written, taken int64, err error) {
	in := &source{r: r}
	q.contentType, q.patience = kind, forever
	q.body = func() (io.Reader, int64) { return in, -1 }
	var out api.WriteAnswer
	err = f.s.c.do(ctx, q, &out)
	// The transport may still be within a Read of r, which is the caller's.
	taken, failed := in.stop()
	if failed != nil && ctx.Err() == nil {
		err = failed
	}
	return out.Written, taken, err
}

// source counts what is taken from a reader, and takes nothing after stop.
type source struct {
	mu      sync.Mutex
	r       io.Reader
	taken   int64
	err     error
	stopped bool
}

// Read implements [io.Reader].
func (s *source) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return 0, io.ErrClosedPipe
	}
	n, err := s.r.Read(p)
	s.taken += int64(n)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// stop returns how much was taken, and the reader's own error. It waits for a
// Read that is under way.
func (s *source) stop() (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	return s.taken, s.err
}

// Archive returns a folder, with all below it, as a tar, or a file as a tar of
// one. The reader ends with ctx; one whose connection breaks fails.
func (s *Sandbox) Archive(ctx context.Context, path string) (io.ReadCloser, error) {
	q := newCall(api.RouteArchiveOut, string(s.id)).again().with("path", path)
	q.accept = api.TypeTar
	resp, err := s.c.send(ctx, q) //nolint:bodyclose // whoever reads the archive closes it
	if err != nil {
		return nil, err
	}
	return &archive{resp.Body, s.c, ctx}, nil
}

// archive gives errors of the connection their class.
type archive struct {
	io.ReadCloser
	c   *Client
	ctx context.Context
}

// Read implements [io.Reader].
func (a *archive) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = a.c.broken(a.ctx, err)
	}
	return n, err
}

// Extract unpacks a tar into a folder, which is made where there is none, and
// returns how many bytes the files in it have. Entries that lead out of the folder
// are refused with [tranca.ErrRefused] or [tranca.ErrInvalid]; those before
// them stay.
func (s *Sandbox) Extract(ctx context.Context, path string, r io.Reader) (int64, error) {
	f := &files{s}
	written, _, err := f.send(ctx, newCall(api.RouteArchiveIn, string(s.id)).with("path", path), r, api.TypeTar)
	return written, err
}
