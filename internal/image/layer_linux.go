package image

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/archive"
)

// Whiteouts are names in a layer that take away what lower layers have.
const (
	whiteout       = ".wh."
	whiteoutOpaque = ".wh..wh..opq"
	whiteoutMeta   = ".wh..wh."
)

const maxNoted = 20

// unpacker puts layers one upon the other.
type unpacker struct {
	*tree
	bounds Bounds
	tally  Tally
	// made are the names that the layer at hand has made, and the folders above
	// them, which its own whiteouts don't touch; nil in the first layer, under
	// which nothing is.
	made     map[string]bool
	madeSize int
	times    map[string]time.Time // of folders
	timeSize int
	buf      []byte
}

// The bounds of the names that are kept, in bytes: of what one layer made, and
// of the folders whose times are set at the end. Those beyond have the time of
// their making.
const (
	maxMade  = 256 << 20
	maxTimes = 64 << 20
)

func newUnpacker(dir string, bounds Bounds) (*unpacker, error) {
	t, err := openTree(dir)
	if err != nil {
		return nil, err
	}
	return &unpacker{
		tree: t, bounds: bounds, times: map[string]time.Time{}, buf: make([]byte, 256<<10),
	}, nil
}

// layer puts the next layer upon what is there.
func (u *unpacker) layer(ctx context.Context, r io.Reader, first bool) error {
	u.made, u.madeSize = nil, 0
	if !first {
		u.made = map[string]bool{}
	}
	_, err := archive.Each(ctx, r, func(h *tar.Header, content io.Reader) error {
		return u.entry(ctx, h, content)
	})
	return err
}

func (u *unpacker) entry(ctx context.Context, h *tar.Header, content io.Reader) error {
	if u.tally.Entries++; u.tally.Entries > u.bounds.Entries {
		return fmt.Errorf("%w: the image has more than %d entries", tranca.ErrInvalid, u.bounds.Entries)
	}
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	u.settle()
	name, err := entryName(h.Name)
	if err != nil || name == "" {
		return err
	}
	up, base := split(name)
	above, err := u.makeFolder(up)
	if err != nil {
		return err
	}
	if strings.HasPrefix(base, whiteout) {
		return asEntryError(name, u.whiteout(above, base))
	}
	if err := checkPlace(above, base); err != nil {
		return err
	}
	made, err := u.put(ctx, above, base, h, content)
	if err != nil || !made {
		return asEntryError(name, err)
	}
	return u.remember(path.Join(above.name, base))
}

// entryName returns a clean, relative name; "" is the root itself. A name that
// begins with a slash is taken as one in the tree, as Docker does; one with ".."
// is refused.
func entryName(name string) (string, error) {
	clean, err := archive.CleanName("./" + strings.TrimLeft(name, "/"))
	if clean == "." {
		return "", err
	}
	return clean, err
}

func (u *unpacker) remember(name string) error {
	for u.made != nil && name != "" && !u.made[name] {
		if u.madeSize += len(name) + 64; u.madeSize > maxMade {
			return fmt.Errorf("%w: the names of one layer take more than %d bytes", tranca.ErrInvalid, maxMade)
		}
		u.made[name] = true
		name, _ = split(name)
	}
	return nil
}

// put makes one entry. made is false where it was left out.
func (u *unpacker) put(ctx context.Context, above *folder, base string, h *tar.Header, content io.Reader) (made bool, err error) {
	switch h.Typeflag {
	case tar.TypeDir:
		return true, u.putFolder(above, base, h)
	case tar.TypeReg, tar.TypeGNUSparse, tar.TypeCont:
		return true, u.putFile(ctx, above, base, h, content)
	case tar.TypeSymlink:
		return true, u.putSymlink(above, base, h)
	case tar.TypeLink:
		return true, u.putLink(above, base, h)
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		u.tally.LeftOut++
		if len(u.tally.Some) < maxNoted {
			u.tally.Some = append(u.tally.Some, path.Join(above.name, base))
		}
		// What a lower layer has there is gone all the same.
		return false, u.remove(above.fd, base)
	}
	return false, fmt.Errorf("%w: it is of the unknown type %q", tranca.ErrInvalid, h.Typeflag)
}

func (u *unpacker) putFolder(above *folder, base string, h *tar.Header) error {
	err := unix.Mkdirat(above.fd, base, 0o755)
	if err == unix.EEXIST {
		var isDir bool
		if isDir, err = isFolder(above.fd, base); err == nil && !isDir {
			if err = u.remove(above.fd, base); err == nil {
				err = unix.Mkdirat(above.fd, base, 0o755)
			}
		}
	}
	if err == nil && u.chmod {
		err = unix.Fchmodat(above.fd, base, 0o755, 0)
	}
	if name := path.Join(above.name, base); err == nil && u.timeSize < maxTimes {
		u.times[name] = h.ModTime
		u.timeSize += len(name) + 64
	}
	return err
}

// create makes a new file and opens it for writing, in the place of whatever
// was there. It is never opened through a link.
func (u *unpacker) create(above *folder, base string, mode uint32) (int, error) {
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(above.fd, base, flags, mode)
	if err != unix.EEXIST {
		return fd, err
	}
	if err := u.remove(above.fd, base); err != nil {
		return -1, err
	}
	return unix.Openat(above.fd, base, flags, mode)
}

func (u *unpacker) putFile(ctx context.Context, above *folder, base string, h *tar.Header, content io.Reader) error {
	if h.Size > u.bounds.Bytes-u.tally.Bytes {
		return fmt.Errorf("%w: the image's files take more than %d bytes", tranca.ErrInvalid, u.bounds.Bytes)
	}
	u.tally.Bytes += h.Size
	mode := uint32(0o644)
	if h.Mode&0o111 != 0 {
		mode = 0o755
	}
	if h.Mode&0o6000 != 0 {
		u.tally.SetID++
	}
	fd, err := u.create(above, base, mode)
	if err != nil {
		return err
	}
	err = u.write(ctx, fd, content, h.Size)
	if err == nil && u.chmod {
		err = unix.Fchmod(fd, mode)
	}
	if err == nil {
		err = setTime(above.fd, base, h.ModTime)
	}
	if closed := unix.Close(fd); err == nil {
		err = closed
	}
	return err
}

func (u *unpacker) write(ctx context.Context, fd int, r io.Reader, size int64) error {
	for size > 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := io.ReadFull(r, u.buf[:min(size, int64(len(u.buf)))])
		if err != nil {
			if err == io.EOF || err == io.ErrUnexpectedEOF {
				err = fmt.Errorf("%w: the archive ends in the middle of it", tranca.ErrInvalid)
			}
			return err
		}
		size -= int64(n)
		for b := u.buf[:n]; len(b) > 0; {
			k, err := unix.Write(fd, b)
			if err == unix.EINTR {
				continue
			}
			if err != nil {
				return err
			}
			b = b[k:]
		}
	}
	return nil
}

func (u *unpacker) putSymlink(above *folder, base string, h *tar.Header) error {
	to := h.Linkname
	if to == "" || len(to) > maxTreePath || strings.IndexByte(to, 0) >= 0 {
		return fmt.Errorf("%w: a link without a target, or with one that Linux has not", tranca.ErrInvalid)
	}
	err := unix.Symlinkat(to, above.fd, base)
	if err == unix.EEXIST {
		if err := u.remove(above.fd, base); err != nil {
			return err
		}
		err = unix.Symlinkat(to, above.fd, base)
	}
	if err != nil {
		return err
	}
	return setTime(above.fd, base, h.ModTime)
}

// putLink gives a file of the tree a second name. The kernel finds the file by
// its folder in the tree, and a link at its end is not followed.
func (u *unpacker) putLink(above *folder, base string, h *tar.Header) error {
	name, err := entryName(h.Linkname)
	if err != nil {
		return err
	}
	up, old := split(name)
	from, err := u.folder(up)
	if err != nil {
		return err
	}
	var st, was unix.Stat_t
	if err := unix.Fstatat(from.fd, old, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return fmt.Errorf("a hard link to %.200q: %w", h.Linkname, err)
	}
	if kind := st.Mode & unix.S_IFMT; kind != unix.S_IFREG && kind != unix.S_IFLNK {
		return fmt.Errorf("%w: a hard link to %.200q, which is no file", tranca.ErrInvalid, h.Linkname)
	}
	if unix.Fstatat(above.fd, base, &was, unix.AT_SYMLINK_NOFOLLOW) == nil {
		if was.Ino == st.Ino {
			return nil // it is one already; removing it might remove the only one
		}
		if err := u.remove(above.fd, base); err != nil {
			return err
		}
	}
	return unix.Linkat(from.fd, old, above.fd, base, 0)
}

// whiteout takes away what lower layers have at a name, or in a whole folder.
func (u *unpacker) whiteout(above *folder, base string) error {
	if u.made == nil {
		return nil
	}
	keep := func(name string) bool { return u.made[name] }
	switch {
	case base == whiteoutOpaque:
		fd, err := unix.Openat(above.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		u.forget()
		return u.empty(fd, above.name, keep)
	case strings.HasPrefix(base, whiteoutMeta):
		return nil // an old union file system's own
	}
	base = strings.TrimPrefix(base, whiteout)
	if base == "" || base == "." || base == ".." {
		return fmt.Errorf("%w: a whiteout of nothing", tranca.ErrInvalid)
	}
	return u.removeBut(above.fd, base, path.Join(above.name, base), keep)
}

// finish gives folders their times, which changed with what was put into them.
func (u *unpacker) finish() error {
	for name, at := range u.times {
		up, base := split(name)
		above, err := u.folder(up)
		if err == nil {
			err = setTime(above.fd, base, at)
		}
		if err != nil && err != unix.ENOENT && err != unix.ENOTDIR && err != unix.ELOOP {
			return err
		}
	}
	return nil
}

// maxTime is as late as every file system can say.
const maxTime = 1 << 32

// setTime sets the time of last change. Programs compare it: Python takes its
// compiled files for old without it.
func setTime(dir int, base string, at time.Time) error {
	sec := min(max(at.Unix(), 0), maxTime)
	ts := []unix.Timespec{{Sec: sec, Nsec: int64(at.Nanosecond())}, {Sec: sec, Nsec: int64(at.Nanosecond())}}
	return unix.UtimesNanoAt(dir, base, ts, unix.AT_SYMLINK_NOFOLLOW)
}
