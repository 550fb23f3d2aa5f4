package archive

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"tranca"
)

// The bounds of an extraction where Options gives none.
const (
	DefaultMaxEntries = 100_000
	DefaultMaxBytes   = 64 << 30
)

// maxNames bounds the names of an archive together: they are kept, to tell an
// entry that was there before.
const maxNames = 32 << 20

// Options bounds an extraction.
type Options struct {
	// MaxEntries bounds the entries; 0 is DefaultMaxEntries.
	MaxEntries int
	// MaxBytes bounds the contents of all files together, in bytes; 0 is
	// DefaultMaxBytes.
	MaxBytes int64
	// SkipLinks leaves out links whose targets may lead out of the folder, and
	// names them in the summary, where else they end the extraction.
	SkipLinks bool
}

// Summary is what an extraction made.
type Summary struct {
	// Files, Folders and Links count entries; folders that were there count too.
	Files, Folders, Links int
	// Bytes is the contents of all files together.
	Bytes int64
	// Skipped are links that were left out.
	Skipped Skipped
}

// target is where an archive is extracted to. Names are clean and relative; none
// is followed through a link.
type target interface {
	// kind says what is at a name: "" is nothing. link is a link's target.
	kind(name string) (kind tranca.FileType, link string, err error)
	mkdir(name string) error
	// write makes or replaces a file.
	write(name string, r io.Reader, mode fs.FileMode) error
	// symlink makes a link where nothing is.
	symlink(name, to string) error
	// remove removes a link.
	remove(name string) error
}

// extractor extracts one archive.
type extractor struct {
	to      target
	opts    Options
	made    map[string]tranca.FileType // by the archive
	folders map[string]bool            // known to be folders
	sum     Summary
	entries int
	names   int // the bytes of all names
}

// extract is the one loop of all extractions.
func extract(ctx context.Context, to target, r io.Reader, opts Options) (Summary, error) {
	if opts.MaxEntries == 0 {
		opts.MaxEntries = DefaultMaxEntries
	}
	if opts.MaxBytes == 0 {
		opts.MaxBytes = DefaultMaxBytes
	}
	x := &extractor{
		to: to, opts: opts,
		made: make(map[string]tranca.FileType), folders: map[string]bool{".": true},
	}
	whole, err := Each(ctx, r, x.entry)
	if err == nil && !whole {
		err = fmt.Errorf("%w: the archive ends early: it was cut off, or is none", tranca.ErrInvalid)
	}
	return x.sum, err
}

// Each calls f for each entry of a tar stream, in their order, until f fails.
// What f leaves of an entry's content is passed over. A stream that can't be
// read is [tranca.ErrInvalid], with the name of the last entry; f must check
// all that a header says, names ([CleanName]) included. whole is false where the
// stream ended without the mark that ends an archive.
func Each(ctx context.Context, r io.Reader, f func(h *tar.Header, content io.Reader) error) (whole bool, err error) {
	src := &source{r: &bounded{ctx, r}}
	t := tar.NewReader(src)
	last := ""
	for {
		h, err := t.Next()
		if err == io.EOF {
			return !src.ended, nil
		}
		if err != nil {
			return false, src.explain(last, err)
		}
		last = h.Name
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		if err := f(h, t); err != nil {
			return false, err
		}
	}
}

// source is the archive's stream. It remembers how it ended, which the tar
// reader does not tell: that takes a stream that ends between two entries for
// whole.
type source struct {
	r     io.Reader
	ended bool // a read found the end, and nothing before it
	err   error
}

func (s *source) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	if n == 0 && err == io.EOF {
		s.ended = true
	}
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// explain gives the error of the stream rather than what the tar reader made of
// it.
func (s *source) explain(last string, err error) error {
	if s.err != nil {
		return fmt.Errorf("%w: reading the archive behind entry %.200q: %w", tranca.ErrInvalid, last, s.err)
	}
	return fmt.Errorf("%w: the archive can't be read behind entry %.200q: %w", tranca.ErrInvalid, last, err)
}

// entry takes one entry.
func (x *extractor) entry(h *tar.Header, r io.Reader) error {
	if x.entries++; x.entries > x.opts.MaxEntries {
		return refuse(h.Name, "more than %d entries", x.opts.MaxEntries)
	}
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil // a comment: what else it could set isn't applied
	}
	kind, err := kindOf(h)
	if err != nil {
		return err
	}
	name, err := clean(h.Name)
	if err != nil {
		return err
	}
	if name == "." {
		if kind != tranca.FileDirectory {
			return refuse(h.Name, "it stands for the folder itself and is none")
		}
		return nil
	}
	if x.names += len(name); x.names > maxNames {
		return refuse(h.Name, "the names take more than %d bytes", maxNames)
	}
	if was, twice := x.made[name]; twice && was != kind {
		return refuse(h.Name, "it was a %s before and is a %s now", was, kind)
	}
	if err := x.above(name); err != nil {
		return err
	}
	x.made[name] = kind
	switch kind {
	case tranca.FileDirectory:
		x.sum.Folders++
		return x.folder(name)
	case tranca.FileSymlink:
		return x.link(name, h.Linkname)
	}
	return x.file(name, h, r)
}

// kindOf says what an entry is, if it is something that can be extracted.
func kindOf(h *tar.Header) (tranca.FileType, error) {
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return "", refuse(h.Name, "a sparse file: make the archive without them")
		}
	}
	switch h.Typeflag {
	case tar.TypeReg:
		if strings.HasSuffix(h.Name, "/") {
			return "", refuse(h.Name, "a file with the name of a folder")
		}
		return tranca.FileRegular, nil
	case tar.TypeDir:
		return tranca.FileDirectory, nil
	case tar.TypeSymlink:
		return tranca.FileSymlink, nil
	case tar.TypeLink:
		return "", refuse(h.Name, "a hard link: make the archive with copies (tar --hard-dereference)")
	case tar.TypeGNUSparse:
		return "", refuse(h.Name, "a sparse file: make the archive without them")
	}
	return "", refuse(h.Name, "it is neither file, folder nor symbolic link (type %q)", h.Typeflag)
}

// above makes sure that each folder above a name is one, and makes it where
// nothing is.
func (x *extractor) above(name string) error {
	for _, up := range parents(name) {
		if x.folders[up] {
			continue
		}
		if was, known := x.made[up]; known && was != tranca.FileDirectory {
			return refuse(name, "%.200q above it is a %s of this archive", up, was)
		}
		if err := x.folder(up); err != nil {
			return fmt.Errorf("%w (above entry %.200q)", err, name)
		}
		x.made[up] = tranca.FileDirectory
	}
	return nil
}

func (x *extractor) folder(name string) error {
	if x.folders[name] {
		return nil
	}
	kind, _, err := x.to.kind(name)
	switch {
	case err != nil:
		return failed(name, err)
	case kind == "":
		err = x.to.mkdir(name)
	case kind != tranca.FileDirectory:
		return refuse(name, "a %s is there already, where a folder should be", kind)
	}
	if err != nil {
		return failed(name, err)
	}
	x.folders[name] = true
	return nil
}

func (x *extractor) file(name string, h *tar.Header, r io.Reader) error {
	if h.Size > x.opts.MaxBytes-x.sum.Bytes {
		return refuse(name, "more than %d bytes in all files together", x.opts.MaxBytes)
	}
	kind, _, err := x.to.kind(name)
	if err != nil {
		return failed(name, err)
	}
	if kind != "" && kind != tranca.FileRegular {
		return refuse(name, "a %s is there already, where a file should be", kind)
	}
	content := &io.LimitedReader{R: r, N: h.Size}
	if err := x.to.write(name, content, fs.FileMode(h.Mode)&fs.ModePerm); err != nil {
		return failed(name, err)
	}
	x.sum.Files++
	x.sum.Bytes += h.Size
	return nil
}

func (x *extractor) link(name, to string) error {
	if why := leadsOut(name, to); why != "" {
		if x.opts.SkipLinks {
			x.sum.Skipped.add(name)
			return nil
		}
		return refuse(name, "a link to %.200q: %s", to, why)
	}
	kind, was, err := x.to.kind(name)
	switch {
	case err != nil:
		return failed(name, err)
	case kind != "" && kind != tranca.FileSymlink:
		return refuse(name, "a %s is there already, where a link should be", kind)
	case kind == tranca.FileSymlink && was == to:
		x.sum.Links++
		return nil
	case kind == tranca.FileSymlink:
		if err := x.to.remove(name); err != nil {
			return failed(name, err)
		}
	}
	if err := x.to.symlink(name, to); err != nil {
		return failed(name, err)
	}
	x.sum.Links++
	return nil
}

// failed says at which entry something failed.
func failed(name string, err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return refuse(name, "the archive ends in the middle of it")
	}
	return fmt.Errorf("extracting %.200q: %w", name, err)
}
