//go:build linux

package image

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"tranca"
	"tranca/internal/archive"
)

// Import takes an image from the disk: an OCI layout in a folder or a tar
// archive, an archive of `docker save`, a folder or a tarball that is a root
// tree. What it is, its content tells. Errors are those of Add, and
// [tranca.ErrNotFound] where nothing is.
func (s *Store) Import(ctx context.Context, from string, o AddOptions) (Info, error) {
	info, err := os.Stat(from)
	if err != nil {
		return Info{}, inputError(from, err)
	}
	switch {
	case info.IsDir():
		return s.importBy(ctx, o, func(w *work) (Source, error) { return w.folderSource(ctx, from, o.Progress) })
	case !info.Mode().IsRegular():
		return Info{}, fmt.Errorf("%w: %s is neither a file nor a folder", tranca.ErrInvalid, from)
	}
	f, err := os.Open(from)
	if err != nil {
		return Info{}, inputError(from, err)
	}
	defer f.Close()
	return s.importBy(ctx, o, func(w *work) (Source, error) {
		return w.archiveSource(ctx, f, filepath.Base(from), info.Size(), o.Progress)
	})
}

// ImportStream is Import of an archive that comes by a stream.
func (s *Store) ImportStream(ctx context.Context, r io.Reader, o AddOptions) (Info, error) {
	return s.importBy(ctx, o, func(w *work) (Source, error) {
		o.Progress.begin("reading", 0)
		name := w.temp()
		digest, n, err := w.spool(ctx, name, io.LimitReader(o.Progress.reader(r), s.bounds.Bytes+1))
		if err != nil {
			return nil, err
		}
		if n > s.bounds.Bytes {
			return nil, fmt.Errorf("%w: more than %d bytes came", tranca.ErrInvalid, s.bounds.Bytes)
		}
		w.files[digest] = name
		f, err := os.Open(name)
		if err != nil {
			return nil, s.failed("open", name, err)
		}
		defer f.Close()
		return w.archiveSource(ctx, f, "a stream", n, o.Progress)
	})
}

// ImportMade is Import of a root tree that fill makes meanwhile, as a tar
// archive; from says of what, for people.
func (s *Store) ImportMade(ctx context.Context, from string, o AddOptions, fill func(ctx context.Context, w io.Writer) error) (Info, error) {
	return s.importBy(ctx, o, func(w *work) (Source, error) {
		return readMade(func(out io.Writer) error { return fill(ctx, out) }, func(r io.Reader) (Source, error) {
			return w.tarballSource(ctx, r, from)
		})
	})
}

// readMade lets a source be read while it is made.
func readMade(fill func(io.Writer) error, read func(io.Reader) (Source, error)) (Source, error) {
	r, w := io.Pipe()
	filled := make(chan error, 1)
	go func() {
		err := fill(w)
		w.CloseWithError(err)
		filled <- err
	}()
	src, err := read(r)
	r.CloseWithError(err) // whoever still writes hears why
	if failed := <-filled; err == nil {
		err = failed
	}
	return src, err
}

func inputError(from string, err error) error {
	class := tranca.ErrInvalid
	switch {
	case errors.Is(err, fs.ErrNotExist):
		class = tranca.ErrNotFound
	case errors.Is(err, fs.ErrPermission):
		class = tranca.ErrRefused
	}
	return fmt.Errorf("%w: %s: %w", class, from, err)
}

// importBy adds an image whose source is made in the folder of the work.
func (s *Store) importBy(ctx context.Context, o AddOptions, open func(*work) (Source, error)) (Info, error) {
	n, err := namedBy(o)
	if err != nil {
		return Info{}, err
	}
	w, err := s.begin(ctx)
	if err != nil {
		return Info{}, err
	}
	digest := ""
	src, err := open(w)
	if err == nil {
		digest, err = w.add(ctx, src, n, o)
		if c, ok := src.(io.Closer); ok {
			err = errors.Join(err, c.Close())
		}
	}
	if err := errors.Join(err, w.end()); err != nil {
		return Info{}, err
	}
	return s.info(ctx, digest)
}

// The files that tell what an archive is.
const (
	layoutFile   = "oci-layout"
	indexFile    = "index.json"
	manifestFile = "manifest.json"
)

// archiveSource finds out what an archive is, and takes it apart.
func (w *work) archiveSource(ctx context.Context, f *os.File, name string, size int64, p Progress) (Source, error) {
	kind, err := kindOfArchive(ctx, f)
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, inputError(name, err)
	}
	p.begin("reading "+name, size)
	if kind == "" {
		return w.tarballSource(ctx, p.reader(f), name)
	}
	members, err := w.members(ctx, p.reader(f))
	if err != nil {
		return nil, err
	}
	if kind == layoutFile {
		return members.layout(name)
	}
	return members.dockerArchive(ctx, name)
}

var errKnown = errors.New("known")

// kindOfArchive tells an image's archive from that of a root tree: the file that
// says what it is, or "". What a root tree holds ends the search.
func kindOfArchive(ctx context.Context, f *os.File) (string, error) {
	z, _, err := decompress(f)
	if err != nil {
		return "", err
	}
	defer z.Close()
	found := map[string]bool{}
	_, err = archive.Each(ctx, z, func(h *tar.Header, _ io.Reader) error {
		name, err := entryName(h.Name)
		if err != nil {
			return err
		}
		switch top, _, _ := strings.Cut(name, "/"); top {
		case "etc", "usr", "bin", "dev", "lib", "proc", "sbin", "var":
			return errKnown
		case layoutFile, indexFile, manifestFile:
			found[name] = true
		}
		return nil
	})
	switch {
	case errors.Is(err, errKnown):
		return "", nil
	case err != nil:
		return "", err
	case found[layoutFile] && found[indexFile]:
		return layoutFile, nil
	case found[manifestFile]:
		return manifestFile, nil
	}
	return "", nil
}

// members are the files of an image's archive.
type members struct {
	w     *work
	files map[string]member
	links map[string]string
}

type member struct {
	path, digest string
	size         int64
}

// The bounds of an image's archive.
const (
	maxMembers    = 20_000
	maxMemberName = 1 << 20 // all together
)

// members writes the files of an archive into the folder of the work. What they
// are called decides nothing there.
func (w *work) members(ctx context.Context, r io.Reader) (*members, error) {
	z, _, err := decompress(r)
	if err != nil {
		return nil, err
	}
	defer z.Close()
	m := &members{w: w, files: map[string]member{}, links: map[string]string{}}
	left, names, count := w.s.bounds.Bytes, 0, 0
	whole, err := archive.Each(ctx, z, func(h *tar.Header, content io.Reader) error {
		name, err := entryName(h.Name)
		if err != nil || name == "" {
			return err
		}
		count++
		if names += len(name) + len(h.Linkname); count > maxMembers || names > maxMemberName {
			return fmt.Errorf("%w: the archive has too many entries for an image's", tranca.ErrInvalid)
		}
		switch h.Typeflag {
		case tar.TypeReg:
			if left -= h.Size; left < 0 {
				return fmt.Errorf("%w: the archive holds more than %d bytes", tranca.ErrInvalid, w.s.bounds.Bytes)
			}
			file := w.temp()
			digest, n, err := w.spool(ctx, file, content)
			if err != nil {
				return err
			}
			m.files[name] = member{file, digest, n}
			w.files[digest] = file
		case tar.TypeSymlink:
			m.links[name] = path.Join(path.Dir(name), h.Linkname)
		case tar.TypeLink:
			m.links[name] = path.Clean(h.Linkname)
		}
		return nil
	})
	if err == nil && !whole {
		err = fmt.Errorf("%w: the archive ends early: it was cut off", tranca.ErrInvalid)
	}
	return m, err
}

// get finds a file of the archive, also by links within it.
func (m *members) get(name string) (member, error) {
	at := path.Clean(name)
	for range maxFollowed {
		if f, ok := m.files[at]; ok {
			return f, nil
		}
		to, ok := m.links[at]
		if !ok {
			break
		}
		at = to
	}
	return member{}, fmt.Errorf("%w: the image's archive has no file %.200q", tranca.ErrInvalid, name)
}

func (m *members) read(name string) ([]byte, error) {
	f, err := m.get(name)
	if err != nil {
		return nil, err
	}
	if f.size > MaxDocument {
		return nil, malformed(name, "it is longer than %d bytes", MaxDocument)
	}
	return os.ReadFile(f.path)
}

// openRegular opens a file of somebody else's folder, and never waits for a FIFO.
func openRegular(root *os.Root, name string) (*os.File, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, inputError(name, err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%w: %s is no file", tranca.ErrInvalid, name)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
