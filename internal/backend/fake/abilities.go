package fake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"tranca"
)

// Alive reports whether the guest agent is alive. Find it with [tranca.As].
func (s *sandbox) Alive() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.closed && !s.failed
}

// WriteFrom is [tranca.FileResumer].
func (f files) WriteFrom(ctx context.Context, name string, r io.Reader, offset int64, mode fs.FileMode) (int64, error) {
	if offset == 0 {
		return f.Write(ctx, name, r, mode)
	}
	d, leave, err := f.enter(ctx)
	if err != nil {
		return 0, err
	}
	n, err := d.open(name, false, 0)
	if errors.Is(err, tranca.ErrNotFound) {
		err = fmt.Errorf("%w: %s is not there to be gone on with", tranca.ErrInvalid, name)
	}
	if err == nil && (offset < 0 || offset > int64(len(n.data))) {
		err = fmt.Errorf("%w: offset %d in a file of %d bytes", tranca.ErrInvalid, offset, len(n.data))
	}
	if err == nil {
		d.bytes -= int64(len(n.data)) - offset
		n.data = n.data[:offset:offset]
	}
	leave()
	if err != nil {
		return 0, err
	}
	return d.fill(ctx, n, r)
}

// Symlink is [tranca.FileLinker].
func (f files) Symlink(ctx context.Context, target, name string) error {
	d, leave, err := f.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	at, err := d.resolve(name, false)
	if err != nil {
		return err
	}
	return d.add(at, &node{kind: tranca.FileSymlink, target: target, mode: 0o777})
}
