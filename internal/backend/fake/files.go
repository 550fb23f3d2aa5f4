package fake

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"tranca"
)

// files serves the disk.
type files struct{ s *sandbox }

const maxList = 100_000

// enter locks the disk, unless the sandbox or the caller has gone.
func (f files) enter(ctx context.Context) (*disk, func(), error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	f.s.mu.Lock()
	gone := f.s.closed || f.s.failed
	f.s.mu.Unlock()
	if gone {
		return nil, nil, fmt.Errorf("%w: sandbox %s", tranca.ErrGone, f.s.ID())
	}
	f.s.disk.mu.Lock()
	return f.s.disk, f.s.disk.mu.Unlock, nil
}

func (f files) Read(ctx context.Context, name string, offset int64) (io.ReadCloser, error) {
	d, leave, err := f.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	if offset < 0 {
		return nil, fmt.Errorf("%w: offset %d", tranca.ErrInvalid, offset)
	}
	n, err := d.open(name, false, 0)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(n.data[min(offset, int64(len(n.data))):])), nil
}

func (f files) Write(ctx context.Context, name string, r io.Reader, mode fs.FileMode) (int64, error) {
	d, leave, err := f.enter(ctx)
	if err != nil {
		return 0, err
	}
	n, err := d.open(name, true, mode)
	leave()
	if err != nil {
		return 0, err
	}
	return d.fill(ctx, n, r)
}

// fill appends what r gives to a file.
func (d *disk) fill(ctx context.Context, n *node, r io.Reader) (int64, error) {
	var total int64
	b := make([]byte, 64<<10)
	for {
		got, readErr := r.Read(b)
		wrote, tooLarge, err := d.grow(n, b[:got])
		total += int64(wrote)
		switch {
		case err != nil:
			return total, err
		case tooLarge:
			return total, fmt.Errorf("%w: the bound on one file", tranca.ErrNoSpace)
		case readErr == io.EOF:
			return total, nil
		case readErr != nil:
			return total, readErr
		case ctx.Err() != nil:
			return total, ctx.Err()
		}
	}
}

func (d *disk) info(at string) tranca.FileInfo {
	n := d.nodes[at]
	info := tranca.FileInfo{
		Name: path.Base(at), Path: at, Type: n.kind, Mode: n.mode, UID: 1000, GID: 1000,
		Modified: n.time, LinkTarget: n.target,
	}
	if n.kind == tranca.FileRegular {
		info.Size = int64(len(n.data))
	}
	return info
}

func (d *disk) stat(name string) (tranca.FileInfo, error) {
	at, err := d.resolve(name, false)
	if err != nil {
		return tranca.FileInfo{}, err
	}
	if d.nodes[at] == nil {
		return tranca.FileInfo{}, fmt.Errorf("%w: %s", tranca.ErrNotFound, at)
	}
	return d.info(at), nil
}

func (f files) Stat(ctx context.Context, name string) (tranca.FileInfo, error) {
	d, leave, err := f.enter(ctx)
	if err != nil {
		return tranca.FileInfo{}, err
	}
	defer leave()
	return d.stat(name)
}

func (f files) List(ctx context.Context, name string, depth int) ([]tranca.FileInfo, error) {
	d, leave, err := f.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	if depth < 1 {
		return nil, fmt.Errorf("%w: depth %d", tranca.ErrInvalid, depth)
	}
	at, err := d.resolve(name, true)
	if err != nil {
		return nil, err
	}
	switch n := d.nodes[at]; {
	case n == nil:
		return nil, fmt.Errorf("%w: %s", tranca.ErrNotFound, at)
	case n.kind != tranca.FileDirectory:
		return nil, fmt.Errorf("%w: %s is no folder", tranca.ErrInvalid, at)
	}
	var all []tranca.FileInfo
	for _, sub := range d.below(at)[1:] {
		if strings.Count(strings.TrimPrefix(sub, strings.TrimSuffix(at, "/")), "/") > depth {
			continue
		}
		if len(all) == maxList {
			return nil, fmt.Errorf("%w: %s has more than %d entries", tranca.ErrInvalid, at, maxList)
		}
		all = append(all, d.info(sub))
	}
	return all, nil
}

func (f files) MakeDir(ctx context.Context, name string) (tranca.FileInfo, error) {
	d, leave, err := f.enter(ctx)
	if err != nil {
		return tranca.FileInfo{}, err
	}
	defer leave()
	at, err := d.resolve(name, true)
	if err != nil {
		return tranca.FileInfo{}, err
	}
	if d.nodes[at] != nil {
		return tranca.FileInfo{}, fmt.Errorf("%w: %s", tranca.ErrExists, at)
	}
	if err := d.makeAll(at); err != nil {
		return tranca.FileInfo{}, err
	}
	return d.info(at), nil
}

// makeAll makes a folder and its parents.
func (d *disk) makeAll(at string) error {
	if n := d.nodes[at]; n != nil {
		return nil
	}
	if err := d.makeAll(path.Dir(at)); err != nil {
		return err
	}
	return d.add(at, &node{kind: tranca.FileDirectory, mode: 0o755})
}

func (f files) Move(ctx context.Context, from, to string) (tranca.FileInfo, error) {
	d, leave, err := f.enter(ctx)
	if err != nil {
		return tranca.FileInfo{}, err
	}
	defer leave()
	src, err := d.resolve(from, false)
	if err != nil {
		return tranca.FileInfo{}, err
	}
	dst, err := d.resolve(to, false)
	if err != nil {
		return tranca.FileInfo{}, err
	}
	old := d.nodes[dst]
	switch {
	case d.nodes[src] == nil:
		return tranca.FileInfo{}, fmt.Errorf("%w: %s", tranca.ErrNotFound, src)
	case strings.HasPrefix(dst+"/", src+"/"):
		return tranca.FileInfo{}, fmt.Errorf("%w: %s is in %s", tranca.ErrInvalid, dst, src)
	case old != nil && old.kind == tranca.FileDirectory && len(d.below(dst)) > 1:
		return tranca.FileInfo{}, fmt.Errorf("%w: %s", tranca.ErrExists, dst)
	}
	if err := d.makeAll(path.Dir(dst)); err != nil {
		return tranca.FileInfo{}, err
	}
	if old != nil {
		d.remove(dst)
	}
	for _, sub := range d.below(src) {
		d.nodes[dst+strings.TrimPrefix(sub, src)] = d.nodes[sub]
		delete(d.nodes, sub)
	}
	return d.info(dst), nil
}

func (f files) Remove(ctx context.Context, name string) error {
	d, leave, err := f.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	at, err := d.resolve(name, false)
	if err != nil {
		return err
	}
	if at == "/" {
		return fmt.Errorf("%w: the root can't be removed", tranca.ErrRefused)
	}
	d.remove(at)
	return nil
}
