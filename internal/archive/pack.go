package archive

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"strings"
	"time"

	"tranca"
)

// maxSkipped bounds the names of what was left out.
const maxSkipped = 1000

// Skipped is what an archive does not hold: devices, FIFOs, sockets, files that
// can't be read, and those that went while it was made.
type Skipped struct {
	// Names are relative to the archive's folder; the first 1,000.
	Names []string
	// Count counts all of them.
	Count int
}

func (s *Skipped) add(name string) {
	if len(s.Names) < maxSkipped {
		s.Names = append(s.Names, name)
	}
	s.Count++
}

// Pack writes a tar archive of a folder or file of a sandbox. Names are relative
// to the folder; an archive of one file has its last name. Links are written as
// they are and never followed, so their targets are hostile.
//
// A file that changes meanwhile is in the archive as it was at some moment, or
// cut to the length that it had, or is an error that wraps [tranca.ErrBusy].
// Other errors are those of files and of w; what breaks the rules of
// [tranca.Files] is [tranca.ErrProtocol]. After an error what was written is no
// whole archive. A folder with more entries than [tranca.Files] lists is
// ErrInvalid.
func Pack(ctx context.Context, files tranca.Files, path string, w io.Writer) (Skipped, error) {
	p := &packer{ctx: ctx, w: tar.NewWriter(w), open: func(name string) (io.ReadCloser, error) {
		return files.Read(ctx, name, 0)
	}}
	top, err := files.Stat(ctx, path)
	if err != nil {
		return p.skipped, err
	}
	switch top.Type {
	case tranca.FileDirectory:
		err = p.folder(files, path)
	case tranca.FileRegular, tranca.FileSymlink:
		if !below(top.Name) || strings.Contains(top.Name, "/") {
			return p.skipped, lie(top.Name, "is no name")
		}
		err = p.entry(path, top.Name, top)
	default:
		err = fmt.Errorf("%w: %q is no file, folder or link", tranca.ErrInvalid, path)
	}
	return p.end(err)
}

func lie(name, what string) error {
	return fmt.Errorf("%w: an entry %.200q that %s", tranca.ErrProtocol, name, what)
}

// packer writes an archive.
type packer struct {
	ctx     context.Context
	w       *tar.Writer
	open    func(path string) (io.ReadCloser, error)
	skipped Skipped
	small   []byte
}

func (p *packer) end(err error) (Skipped, error) {
	if err == nil {
		err = p.w.Close()
	}
	return p.skipped, err
}

// folder writes what a folder holds. The listing is checked: each entry lies
// below a folder that was listed before, once, under the name that it has.
func (p *packer) folder(files tranca.Files, path string) error {
	list, err := files.List(p.ctx, path, math.MaxInt32)
	if err != nil || len(list) == 0 {
		return err
	}
	base, ok := strings.CutSuffix(list[0].Path, "/"+list[0].Name)
	if !ok {
		return lie(list[0].Path, "is not in the folder")
	}
	kinds := make(map[string]tranca.FileType, len(list))
	for _, info := range list {
		name, ok := strings.CutPrefix(info.Path, base+"/")
		if !ok || !below(name) || name[strings.LastIndexByte(name, '/')+1:] != info.Name {
			return lie(info.Path, "is not in the folder, or has another name")
		}
		if up := strings.LastIndexByte(name, '/'); up >= 0 && kinds[name[:up]] != tranca.FileDirectory {
			return lie(name, "is below no folder")
		}
		if _, twice := kinds[name]; twice {
			return lie(name, "is listed twice")
		}
		kinds[name] = info.Type
		if err := p.entry(strings.TrimRight(path, "/")+"/"+name, name, info); err != nil {
			return err
		}
	}
	return nil
}

// entry writes one entry.
func (p *packer) entry(path, name string, info tranca.FileInfo) error {
	if err := p.ctx.Err(); err != nil {
		return context.Cause(p.ctx)
	}
	h := &tar.Header{
		Name: name, Mode: int64(info.Mode & fs.ModePerm), ModTime: info.Modified.Round(time.Second),
		Format: tar.FormatPAX,
	}
	switch info.Type {
	case tranca.FileDirectory:
		h.Typeflag = tar.TypeDir
		h.Name += "/"
		return p.w.WriteHeader(h)
	case tranca.FileSymlink:
		if info.LinkTarget == "" || len(info.LinkTarget) > maxPath || strings.IndexByte(info.LinkTarget, 0) >= 0 {
			return lie(name, "is a link with a target that none can have")
		}
		h.Typeflag, h.Linkname = tar.TypeSymlink, info.LinkTarget
		return p.w.WriteHeader(h)
	case tranca.FileRegular:
		h.Typeflag = tar.TypeReg
		return p.regular(path, h, info.Size)
	}
	p.skipped.add(name)
	return nil
}

// smallFile is how much of a file is read before its length is written: that of
// a smaller one is then what it is, whatever it was said to be.
const smallFile = 256 << 10

// regular writes a file.
func (p *packer) regular(path string, h *tar.Header, said int64) error {
	if said < 0 {
		return lie(h.Name, "has a negative length")
	}
	r, err := p.open(path)
	if gone(err) {
		p.skipped.add(h.Name) // it went, or is something else now
		return nil
	}
	if err != nil {
		return fmt.Errorf("packing %.200q: %w", h.Name, err)
	}
	defer r.Close()
	if p.small == nil {
		p.small = make([]byte, smallFile)
	}
	n, err := io.ReadFull(r, p.small)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		h.Size = int64(n)
		return p.write(h, p.small[:n], nil)
	}
	if err != nil {
		return fmt.Errorf("packing %.200q: %w", h.Name, err)
	}
	if said < smallFile {
		return fmt.Errorf("%w: %.200q grew while it was packed: stop what writes to it, or pack again", tranca.ErrBusy, h.Name)
	}
	h.Size = said
	return p.write(h, p.small, r)
}

// write writes a header, a file's first bytes and the rest up to its length.
func (p *packer) write(h *tar.Header, first []byte, rest io.Reader) error {
	if err := p.w.WriteHeader(h); err != nil {
		return err
	}
	if _, err := p.w.Write(first); err != nil {
		return err
	}
	left := h.Size - int64(len(first))
	if rest == nil || left == 0 {
		return nil
	}
	n, err := io.CopyBuffer(p.w, io.LimitReader(&bounded{p.ctx, rest}, left), p.small)
	if err != nil {
		return fmt.Errorf("packing %.200q: %w", h.Name, err)
	}
	if n != left {
		return fmt.Errorf("%w: %.200q shrank while it was packed: stop what writes to it, or pack again", tranca.ErrBusy, h.Name)
	}
	return nil
}

// gone reports whether a file can't be packed because it is not there any more,
// is something else by now, or is nobody's to read.
func gone(err error) bool {
	return errors.Is(err, tranca.ErrNotFound) || errors.Is(err, tranca.ErrInvalid) ||
		errors.Is(err, tranca.ErrRefused)
}

// bounded is a reader that stops at the end of a context.
type bounded struct {
	ctx context.Context
	r   io.Reader
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.ctx.Err() != nil {
		return 0, context.Cause(b.ctx)
	}
	return b.r.Read(p)
}
