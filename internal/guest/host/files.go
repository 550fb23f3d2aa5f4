package host

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"math"
	"strings"
	"time"

	"tranca"
	"tranca/internal/guest/message"
	"tranca/internal/guest/wire"
)

// maxListedBytes bounds the names and paths that a listing keeps on the host.
const maxListedBytes = 32 << 20

// files is the sandbox's [tranca.Files].
type files struct{ sb *sandbox }

func checkPath(path string) error {
	switch {
	case path == "":
		return fmt.Errorf("%w: an empty path", tranca.ErrInvalid)
	case strings.IndexByte(path, 0) >= 0:
		return fmt.Errorf("%w: a NUL in path %.100q", tranca.ErrInvalid, path)
	case len(path) >= message.MaxPath:
		return fmt.Errorf("%w: a path of %d bytes; less than %d fit", tranca.ErrInvalid, len(path), message.MaxPath)
	}
	return nil
}

func (f files) Stat(ctx context.Context, path string) (tranca.FileInfo, error) {
	return f.entry(ctx, path, message.MethodStat, &message.PathRequest{Path: path})
}

func (f files) MakeDir(ctx context.Context, path string) (tranca.FileInfo, error) {
	return f.entry(ctx, path, message.MethodMakeDir, &message.PathRequest{Path: path})
}

func (f files) Move(ctx context.Context, from, to string) (tranca.FileInfo, error) {
	if err := checkPath(to); err != nil {
		return tranca.FileInfo{}, err
	}
	return f.entry(ctx, from, message.MethodMove, &message.MoveRequest{Source: from, Destination: to})
}

func (f files) Remove(ctx context.Context, path string) error {
	if err := checkPath(path); err != nil {
		return err
	}
	return f.sb.unary(ctx, removeTimeout, message.MethodRemove, &message.PathRequest{Path: path}, &message.Empty{})
}

// entry asks a question whose answer is one entry.
func (f files) entry(ctx context.Context, path, method string, req appender) (tranca.FileInfo, error) {
	if err := checkPath(path); err != nil {
		return tranca.FileInfo{}, err
	}
	var answer message.EntryResponse
	if err := f.sb.unary(ctx, answerTimeout, method, req, &answer); err != nil {
		return tranca.FileInfo{}, err
	}
	return f.info(&answer.Entry)
}

// info checks an entry of the guest. A name is one that can stand in a folder,
// so that nobody who joins it to a path is led elsewhere.
func (f files) info(e *message.EntryInfo) (tranca.FileInfo, error) {
	root := e.Name == "/" && e.Path == "/"
	if !root && (e.Name == "" || e.Name == "." || e.Name == ".." || strings.ContainsAny(e.Name, "/\x00")) {
		return tranca.FileInfo{}, f.sb.breach("an entry whose name is none")
	}
	if e.Size < 0 || strings.IndexByte(e.Path, 0) >= 0 || e.ModifiedTime.Nanos < 0 || e.ModifiedTime.Nanos >= 1e9 {
		return tranca.FileInfo{}, f.sb.breach("an entry with a size, path or time out of bounds")
	}
	info := tranca.FileInfo{
		Name: e.Name, Path: e.Path, Size: e.Size, Type: tranca.FileOther,
		Mode: fs.FileMode(e.Mode) & fs.ModePerm, UID: e.UID, GID: e.GID,
		Modified: modified(e.ModifiedTime),
	}
	switch e.Type {
	case message.FileTypeFile:
		info.Type = tranca.FileRegular
	case message.FileTypeDirectory:
		info.Type = tranca.FileDirectory
	case message.FileTypeSymlink:
		info.Type = tranca.FileSymlink
		info.LinkTarget = e.SymlinkTarget
	}
	return info, nil
}

// modified keeps a time within the years that every encoding can write. Code
// can give its files any.
func modified(t message.Timestamp) time.Time {
	const first, last = -62135596800, 253402300799 // the years 1 to 9999
	return time.Unix(min(max(t.Seconds, first), last), int64(t.Nanos)).UTC()
}

func (f files) List(ctx context.Context, path string, depth int) ([]tranca.FileInfo, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	if depth < 1 {
		return nil, fmt.Errorf("%w: listing to a depth of %d: at least 1", tranca.ErrInvalid, depth)
	}
	req := message.ListDirRequest{Path: path, Depth: uint32(min(depth, math.MaxInt32))}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	call, err := f.sb.sess.Open(ctx, message.MethodListDir, 0, req.Append(nil), true)
	if err != nil {
		return nil, f.sb.explain(ctx, err)
	}
	defer call.Close()
	var all []tranca.FileInfo
	for size := 0; ; {
		var page message.ListDirResponse
		err := f.next(ctx, call.Stream, &page)
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		for i := range page.Entries {
			e := &page.Entries[i]
			info, err := f.info(e)
			if err != nil {
				return nil, err
			}
			size += len(e.Name) + len(e.Path) + len(e.SymlinkTarget)
			all = append(all, info)
		}
		if len(page.Entries) == 0 || len(all) > message.MaxListed {
			return nil, f.sb.breach("a listing with an empty page or too many entries")
		}
		if size > maxListedBytes {
			return nil, fmt.Errorf("%w: the names in this folder take more than %d bytes: list a folder in it, or with less depth",
				tranca.ErrInvalid, maxListedBytes)
		}
	}
}

// next takes the next message of an answer in parts.
func (f files) next(ctx context.Context, st *wire.Stream, m unmarshaler) error {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout, errNoAnswer)
	defer cancel()
	return f.sb.answer(ctx, st, m)
}

func (f files) Read(ctx context.Context, path string, offset int64) (io.ReadCloser, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	if offset < 0 {
		return nil, fmt.Errorf("%w: reading from offset %d", tranca.ErrInvalid, offset)
	}
	req := message.ReadRequest{Path: path, Offset: offset}
	call, err := f.sb.sess.Open(ctx, message.MethodRead, 0, req.Append(nil), true)
	if err != nil {
		return nil, f.sb.explain(ctx, err)
	}
	var first message.ReadResponse
	if err := f.next(ctx, call.Stream, &first); err != nil || first.Entry == nil {
		call.Close()
		if err == nil || err == io.EOF {
			err = f.sb.breach("a file without its entry")
		}
		return nil, err
	}
	return &reader{ctx: ctx, files: f, call: call}, nil
}

// reader is a file that is being read.
type reader struct {
	ctx   context.Context
	files files
	call  *wire.Call
	buf   *wire.Buf // holds rest
	rest  []byte
	err   error
}

func (r *reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for len(r.rest) == 0 {
		r.buf.Free()
		r.buf = nil
		if r.err == nil {
			r.err = r.fill()
		}
		if r.err != nil {
			return 0, r.err
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// fill takes the next piece.
func (r *reader) fill() error {
	ctx, cancel := context.WithTimeoutCause(r.ctx, answerTimeout, errNoAnswer)
	defer cancel()
	b, err := r.call.Recv(ctx)
	if err == io.EOF {
		return io.EOF
	}
	if err == wire.ErrClosed {
		return fmt.Errorf("%w: the reader", tranca.ErrClosed)
	}
	if err != nil {
		return r.files.sb.explain(ctx, err)
	}
	var m message.ReadResponse
	if err := m.Unmarshal(b.Bytes()); err != nil || m.Entry != nil {
		b.Free()
		return r.files.sb.breach("a piece of a file that is none")
	}
	r.buf, r.rest = b, m.Data
	return nil
}

// Close gives the file up. Not to be called beside Read.
func (r *reader) Close() error {
	r.call.Close()
	r.buf.Free()
	r.buf, r.rest = nil, nil
	r.err = fmt.Errorf("%w: the reader", tranca.ErrClosed)
	return nil
}
