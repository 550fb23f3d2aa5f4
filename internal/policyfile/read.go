package policyfile

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/policy"
)

// maxSize is the size of the largest file that is read.
const maxSize = 1 << 20

// Read reads the policy file at an absolute path. It is a regular file of at
// most 1 MiB, no link, and nobody but root and the caller can change it or a
// folder above it; nor does it lie in a writable mount of its own policy.
// Errors are as those of [Find].
func Read(path string) (tranca.Policy, error) {
	path = filepath.Clean(path)
	if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		return tranca.Policy{}, fmt.Errorf("%w: policy %q: want an absolute path", tranca.ErrInvalid, path)
	}
	w, err := enter(filepath.Dir(path))
	if err != nil {
		return tranca.Policy{}, err
	}
	defer w.dir.Close()
	data, st, err := w.read(filepath.Base(path))
	if err != nil {
		return tranca.Policy{}, err
	}
	p, err := policy.Parse(path, data)
	if err != nil {
		return tranca.Policy{}, err
	}
	real := filepath.Join(w.path, filepath.Base(path))
	if err := refuseReachable(p, []string{path, real}, w.folders, st); err != nil {
		return tranca.Policy{}, err
	}
	return p, nil
}

// read opens, checks and reads the file in the folder where the walk stands.
func (w *walk) read(name string) ([]byte, *unix.Stat_t, error) {
	path := filepath.Join(w.path, name)
	// O_NONBLOCK: opening a FIFO must not wait for its other end.
	fd, err := unix.Openat(int(w.dir.Fd()), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err == unix.ELOOP {
		return nil, nil, fmt.Errorf("%w: policy %s is a symbolic link: name the file that it leads to", tranca.ErrRefused, path)
	}
	if err != nil {
		return nil, nil, openError(path, err)
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, nil, pathError(path, err)
	}
	if err := trustFile(path, &st); err != nil {
		return nil, nil, err
	}
	// One byte more than is allowed, so that a file that grew is seen.
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return nil, nil, pathError(path, err)
	}
	if len(data) > maxSize {
		return nil, nil, tooLarge(path, int64(len(data)))
	}
	return data, &st, nil
}

// openError says what to do about a file that can't be opened.
func openError(path string, err error) error {
	switch err {
	case unix.EACCES, unix.EPERM:
		return fmt.Errorf("%w: policy %s can't be read, and is not skipped: %w; chmod u+r %s, or run as its owner", tranca.ErrRefused, path, err, shellQuote(path))
	case unix.ENXIO: // a socket, or a device that isn't there
		return notRegular(path, "a socket or device")
	}
	return pathError(path, err)
}

func notRegular(path, what string) error {
	return fmt.Errorf("%w: policy %s is %s: want a regular file", tranca.ErrInvalid, path, what)
}

func tooLarge(path string, size int64) error {
	return fmt.Errorf("%w: policy %s has %d bytes or more: at most %d", tranca.ErrInvalid, path, size, maxSize)
}

// trustFile refuses what is no regular file, or not only ours.
func trustFile(path string, st *unix.Stat_t) error {
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		return notRegular(path, "a folder")
	case unix.S_IFIFO:
		return notRegular(path, "a FIFO")
	default:
		return notRegular(path, "a device or socket")
	}
	switch {
	case !trustedOwner(st.Uid):
		return foreignOwner("policy", path, st.Uid)
	case st.Mode&0o022 != 0:
		return othersWrite("policy", path, st.Mode)
	case st.Size > maxSize:
		return tooLarge(path, st.Size)
	}
	return nil
}

// refuseReachable refuses a policy that its own code could rewrite: its file
// lies in a writable mount, by whatever name, or has a second name that may.
func refuseReachable(p tranca.Policy, names []string, folders map[inode]bool, st *unix.Stat_t) error {
	writable := false
	for _, m := range p.Mounts {
		if !m.Writable {
			continue
		}
		writable = true
		if holds(m.Source, names, folders, inode{st.Dev, st.Ino}) {
			return fmt.Errorf("%w: policy %s lies in %s, which it mounts writable, so the code could widen it: move the policy elsewhere",
				tranca.ErrRefused, names[0], m.Source)
		}
	}
	if writable && st.Nlink > 1 {
		return fmt.Errorf("%w: policy %s has %d names (hard links), and one of them may lie in a writable mount: copy it to a file of its own",
			tranca.ErrRefused, names[0], st.Nlink)
	}
	return nil
}

// holds reports whether the policy file is at or below a mount's source, by
// its path, or by its inode where the source is another name for the same
// place. A source that can't be looked at is left to the backend to refuse.
func holds(source string, names []string, folders map[inode]bool, file inode) bool {
	for _, name := range names {
		if name == source || strings.HasPrefix(name, strings.TrimSuffix(source, "/")+"/") {
			return true
		}
	}
	var st unix.Stat_t
	if unix.Stat(source, &st) != nil {
		return false
	}
	at := inode{st.Dev, st.Ino}
	return folders[at] || at == file
}
