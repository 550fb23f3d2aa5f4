package ownfile

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"tranca"
)

// File is a file that was read.
type File struct {
	Data []byte
	// Path is what was asked for, cleaned; Real is where the links in its
	// folders lead.
	Path, Real string
	// Inode is the file's, and Links how many names it has.
	Inode Inode
	Links uint64
	// Folders are all that lie above the file.
	Folders map[Inode]bool
}

// Read reads the file at an absolute path. It is a regular file of at most so
// many bytes, no link, and nobody but root and the caller can change it or a
// folder above it. what says in errors what it is, in one word: "policy".
// Errors wrap [tranca.ErrNotFound], [tranca.ErrInvalid] or [tranca.ErrRefused].
func Read(what, path string, most int64) (*File, error) {
	path = filepath.Clean(path)
	if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		return nil, fmt.Errorf("%w: %s %q: want an absolute path", tranca.ErrInvalid, what, path)
	}
	w, err := enter(what, filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer w.dir.Close()
	data, st, err := w.read(filepath.Base(path), most)
	if err != nil {
		return nil, err
	}
	return &File{
		Data: data, Path: path, Real: filepath.Join(w.path, filepath.Base(path)),
		Inode: Inode{st.Dev, st.Ino}, Folders: w.folders,
		Links: uint64(st.Nlink), //nolint:unconvert // it has 32 bits on arm64
	}, nil
}

// read opens, checks and reads the file in the folder where the walk stands.
func (w *walk) read(name string, most int64) ([]byte, *unix.Stat_t, error) {
	path := filepath.Join(w.path, name)
	// O_NONBLOCK: opening a FIFO must not wait for its other end.
	fd, err := unix.Openat(int(w.dir.Fd()), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err == unix.ELOOP {
		return nil, nil, fmt.Errorf("%w: %s %s is a symbolic link: name the file that it leads to", tranca.ErrRefused, w.what, path)
	}
	if err != nil {
		return nil, nil, w.openError(path, err)
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, nil, w.pathError(path, err)
	}
	if err := w.trustFile(path, &st, most); err != nil {
		return nil, nil, err
	}
	// One byte more than is allowed, so that a file that grew is seen.
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, nil, w.pathError(path, err)
	}
	if int64(len(data)) > most {
		return nil, nil, w.tooLarge(path, int64(len(data)), most)
	}
	return data, &st, nil
}

// openError says what to do about a file that can't be opened.
func (w *walk) openError(path string, err error) error {
	switch err {
	case unix.EACCES, unix.EPERM:
		return fmt.Errorf("%w: %s %s can't be read, and is not skipped: %w; chmod u+r %s, or run as its owner", tranca.ErrRefused, w.what, path, err, Quote(path))
	case unix.ENXIO: // a socket, or a device that isn't there
		return w.notRegular(path, "a socket or device")
	}
	return w.pathError(path, err)
}

func (w *walk) notRegular(path, kind string) error {
	return fmt.Errorf("%w: %s %s is %s: want a regular file", tranca.ErrInvalid, w.what, path, kind)
}

func (w *walk) tooLarge(path string, size, most int64) error {
	return fmt.Errorf("%w: %s %s has %d bytes or more: at most %d", tranca.ErrInvalid, w.what, path, size, most)
}

// trustFile refuses what is no regular file, or not only ours.
func (w *walk) trustFile(path string, st *unix.Stat_t, most int64) error {
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		return w.notRegular(path, "a folder")
	case unix.S_IFIFO:
		return w.notRegular(path, "a FIFO")
	default:
		return w.notRegular(path, "a device or socket")
	}
	switch {
	case !trustedOwner(st.Uid):
		return w.foreignOwner(w.what, path, st.Uid)
	case st.Mode&0o022 != 0:
		return w.othersWrite(w.what, path, st.Mode)
	case st.Size > most:
		return w.tooLarge(path, st.Size, most)
	}
	return nil
}

// Quote makes a path fit for a command that a person may paste.
func Quote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+@:", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
