package engine

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"tranca"
)

// Files serves the files of the session's sandbox. Each call is a use of the
// session, and so is a reader until it is closed; all of them end with it. The
// abilities [tranca.FileResumer], [tranca.FileLinker] and [tranca.FileWatcher]
// are found with [tranca.As] where the backend has them.
func (s *Session) Files() tranca.Files {
	inner := s.box.sb.Files()
	chain := tranca.Files(nil)
	if r, ok := tranca.As[tranca.FileResumer](inner); ok {
		chain = resumer{files{s, inner, chain}, r}
	}
	if l, ok := tranca.As[tranca.FileLinker](inner); ok {
		chain = linker{files{s, inner, chain}, l}
	}
	if w, ok := tranca.As[tranca.FileWatcher](inner); ok {
		chain = watcher{files{s, inner, chain}, w}
	}
	return files{s, inner, chain}
}

// files counts each call as a use of its session. The abilities that the
// backend has stand behind it in a chain of such files.
type files struct {
	s     *Session
	inner tranca.Files
	next  tranca.Files // with a further ability, or nil
}

// Unwrap is for [tranca.As].
func (f files) Unwrap() tranca.Files { return f.next }

// begin begins a call. Its context ends with the session.
func (s *Session) begin(ctx context.Context) (context.Context, func(), error) {
	done, err := s.use()
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := s.tie(ctx)
	return ctx, sync.OnceFunc(func() { cancel(); done() }), nil
}

// in does something in the session's sandbox.
func in[T any](ctx context.Context, s *Session, f func(context.Context) (T, error)) (T, error) {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		var none T
		return none, err
	}
	defer done()
	v, err := f(ctx)
	if err != nil {
		err = s.blame(err)
	}
	return v, err
}

// blame names the end of the session as the reason of an error that it caused.
func (s *Session) blame(err error) error {
	if s.life.Err() == nil {
		return err
	}
	return fmt.Errorf("%w (%w)", s.because(err), err)
}

func (f files) Read(ctx context.Context, path string, offset int64) (io.ReadCloser, error) {
	ctx, done, err := f.s.begin(ctx)
	if err != nil {
		return nil, err
	}
	r, err := f.inner.Read(ctx, path, offset)
	if err != nil {
		done()
		return nil, f.s.blame(err)
	}
	return reader{r, done}, nil
}

// reader keeps its session in use until it is closed.
type reader struct {
	io.ReadCloser
	done func()
}

func (r reader) Close() error {
	defer r.done()
	return r.ReadCloser.Close()
}

func (f files) Write(ctx context.Context, path string, r io.Reader, mode fs.FileMode) (int64, error) {
	return in(ctx, f.s, func(ctx context.Context) (int64, error) { return f.inner.Write(ctx, path, r, mode) })
}

func (f files) Stat(ctx context.Context, path string) (tranca.FileInfo, error) {
	return in(ctx, f.s, func(ctx context.Context) (tranca.FileInfo, error) { return f.inner.Stat(ctx, path) })
}

func (f files) List(ctx context.Context, path string, depth int) ([]tranca.FileInfo, error) {
	return in(ctx, f.s, func(ctx context.Context) ([]tranca.FileInfo, error) { return f.inner.List(ctx, path, depth) })
}

func (f files) MakeDir(ctx context.Context, path string) (tranca.FileInfo, error) {
	return in(ctx, f.s, func(ctx context.Context) (tranca.FileInfo, error) { return f.inner.MakeDir(ctx, path) })
}

func (f files) Move(ctx context.Context, from, to string) (tranca.FileInfo, error) {
	return in(ctx, f.s, func(ctx context.Context) (tranca.FileInfo, error) { return f.inner.Move(ctx, from, to) })
}

func (f files) Remove(ctx context.Context, path string) error {
	_, err := in(ctx, f.s, func(ctx context.Context) (struct{}, error) { return struct{}{}, f.inner.Remove(ctx, path) })
	return err
}

type resumer struct {
	files
	r tranca.FileResumer
}

func (f resumer) WriteFrom(ctx context.Context, path string, r io.Reader, offset int64, mode fs.FileMode) (int64, error) {
	return in(ctx, f.s, func(ctx context.Context) (int64, error) { return f.r.WriteFrom(ctx, path, r, offset, mode) })
}

type linker struct {
	files
	l tranca.FileLinker
}

func (f linker) Symlink(ctx context.Context, target, path string) error {
	_, err := in(ctx, f.s, func(ctx context.Context) (struct{}, error) { return struct{}{}, f.l.Symlink(ctx, target, path) })
	return err
}

type watcher struct {
	files
	w tranca.FileWatcher
}

func (f watcher) Watch(ctx context.Context, path string, recursive bool) (tranca.Watch, error) {
	return in(ctx, f.s, func(ctx context.Context) (tranca.Watch, error) {
		w, err := f.w.Watch(ctx, path, recursive)
		if err != nil {
			return nil, err
		}
		return watch{w, f.s.occupy}, nil
	})
}

// watch keeps its session in use while somebody waits for a change.
type watch struct {
	tranca.Watch
	busy func() func()
}

func (w watch) Next(ctx context.Context) (tranca.FileEvent, error) {
	defer w.busy()()
	return w.Watch.Next(ctx)
}

// Dial connects to a port that a program in the sandbox listens on. The
// connection is a use of the session until it is closed. Errors are those of
// [tranca.PortDialer]; [tranca.ErrUnsupported] where the backend can't.
func (s *Session) Dial(ctx context.Context, port int) (tranca.PortConn, error) {
	d, ok := tranca.As[tranca.PortDialer](s.box.sb)
	if !ok {
		return nil, fmt.Errorf("%w: backend %s reaches no ports", tranca.ErrUnsupported, s.box.plan.backend.Name())
	}
	return in(ctx, s, func(ctx context.Context) (tranca.PortConn, error) {
		c, err := d.Dial(ctx, port)
		if err != nil {
			return nil, err
		}
		return conn{c, sync.OnceFunc(s.occupy())}, nil
	})
}

// conn keeps its session in use until it is closed.
type conn struct {
	tranca.PortConn
	done func()
}

func (c conn) Close() error {
	defer c.done()
	return c.PortConn.Close()
}
