package client

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"unicode/utf8"

	"tranca"
	"tranca/internal/api"
)

// Files serves the sandbox's files. What it returns is a [tranca.FileResumer]
// and a [tranca.FileWatcher] too, found with [tranca.As]; where the backend of
// the sandbox can't do that, they say [tranca.ErrUnsupported]. It is no
// [tranca.FileLinker]: links come by [Sandbox.Extract].
func (s *Sandbox) Files() tranca.Files { return &files{s} }

type files struct{ s *Sandbox }

var (
	_ tranca.Files       = (*files)(nil)
	_ tranca.FileResumer = (*files)(nil)
	_ tranca.FileWatcher = (*files)(nil)
)

func (f *files) call(pattern string) *call { return newCall(pattern, string(f.s.id)) }

// Stat implements [tranca.Files].
func (f *files) Stat(ctx context.Context, path string) (tranca.FileInfo, error) {
	return f.info(ctx, f.call(api.RouteStat).again().with("path", path))
}

func (f *files) info(ctx context.Context, q *call) (tranca.FileInfo, error) {
	var in api.FileInfo
	if err := f.s.c.do(ctx, q, &in); err != nil {
		return tranca.FileInfo{}, err
	}
	return fileInfo(in)
}

// List implements [tranca.Files].
func (f *files) List(ctx context.Context, path string, depth int) ([]tranca.FileInfo, error) {
	q := f.call(api.RouteFiles).again().with("path", path, "depth", strconv.Itoa(depth))
	var list api.FileList
	if err := f.s.c.do(ctx, q, &list); err != nil {
		return nil, err
	}
	out := make([]tranca.FileInfo, len(list.Files))
	for i, in := range list.Files {
		var err error
		if out[i], err = fileInfo(in); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// MakeDir implements [tranca.Files].
func (f *files) MakeDir(ctx context.Context, path string) (tranca.FileInfo, error) {
	if err := text(path); err != nil {
		return tranca.FileInfo{}, err
	}
	return f.info(ctx, f.call(api.RouteMakeDir).json(api.PathRequest{Path: path}))
}

// Move implements [tranca.Files].
func (f *files) Move(ctx context.Context, from, to string) (tranca.FileInfo, error) {
	for _, path := range []string{from, to} {
		if err := text(path); err != nil {
			return tranca.FileInfo{}, err
		}
	}
	return f.info(ctx, f.call(api.RouteMove).json(api.MoveRequest{From: from, To: to}))
}

// Remove implements [tranca.Files].
func (f *files) Remove(ctx context.Context, path string) error {
	return f.s.c.do(ctx, f.call(api.RouteRemove).again().with("path", path), nil)
}

// text refuses a path that would arrive as another one.
func text(path string) error {
	if !utf8.ValidString(path) {
		return fmt.Errorf("%w: the path %q is no valid UTF-8, and folders are made and moved only by names that are", tranca.ErrInvalid, path)
	}
	return nil
}

// fileInfo reads the JSON form.
func fileInfo(in api.FileInfo) (tranca.FileInfo, error) {
	mode, err := strconv.ParseUint(in.Mode, 8, 32)
	if err != nil {
		return tranca.FileInfo{}, fmt.Errorf("%w: a file with mode %q", tranca.ErrProtocol, in.Mode)
	}
	out := tranca.FileInfo{
		Name: in.Name, Path: in.Path, Type: in.Type, Size: in.Size, Mode: fs.FileMode(mode),
		UID: in.UID, GID: in.GID, Modified: in.Modified, LinkTarget: in.LinkTarget,
	}
	if len(in.PathBase64) > 0 {
		out.Path = string(in.PathBase64)
		out.Name = path.Base(out.Path)
	}
	return out, nil
}
