package ownfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"tranca"
)

// maxLinks is how many symbolic links a path may lead through, as the
// kernel's own bound.
const maxLinks = 40

// Inode names a file whatever its path is.
type Inode struct{ Dev, Ino uint64 }

// walk goes from the root to the folder of a file, one name at a time, so
// that what was checked is what is used. It follows links in folders, such as
// /home -> /var/home, when the link itself can be trusted.
type walk struct {
	what  string   // the file is: "policy"
	dir   *os.File // where it stands
	path  string   // and how that is called
	links int
	// folders are all that lie above the file.
	folders map[Inode]bool
}

// enter walks to the folder of an absolute path. The caller closes w.dir.
func enter(what, dir string) (*walk, error) {
	w := &walk{what: what, folders: map[Inode]bool{}}
	if err := w.root(); err != nil {
		return nil, err
	}
	if err := w.descend(dir); err != nil {
		w.dir.Close()
		return nil, err
	}
	return w, nil
}

func (w *walk) root() error {
	fd, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%w: open /: %w", tranca.ErrRefused, err)
	}
	return w.stand(fd, "/")
}

// stand moves to an open folder after checking who may write to it.
func (w *walk) stand(fd int, path string) error {
	next := os.NewFile(uintptr(fd), path)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		next.Close()
		return fmt.Errorf("%w: stat %s: %w", tranca.ErrRefused, path, err)
	}
	if err := w.trustFolder(path, &st); err != nil {
		next.Close()
		return err
	}
	if w.dir != nil {
		w.dir.Close()
	}
	w.dir, w.path = next, path
	w.folders[Inode{st.Dev, st.Ino}] = true
	return nil
}

// descend goes down a path, which may be absolute.
func (w *walk) descend(path string) error {
	if filepath.IsAbs(path) {
		if err := w.root(); err != nil {
			return err
		}
	}
	for name := range strings.SplitSeq(path, "/") {
		if name == "" || name == "." {
			continue
		}
		if err := w.step(name); err != nil {
			return err
		}
	}
	return nil
}

// step goes into one folder, or where a link of that name leads.
func (w *walk) step(name string) error {
	path := filepath.Join(w.path, name)
	fd, err := unix.Openat(int(w.dir.Fd()), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return w.pathError(path, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return w.pathError(path, err)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return w.stand(fd, path)
	case unix.S_IFLNK:
		defer unix.Close(fd)
		return w.follow(fd, path, &st)
	}
	unix.Close(fd)
	return w.pathError(path, unix.ENOTDIR)
}

func (w *walk) follow(fd int, path string, st *unix.Stat_t) error {
	if w.links++; w.links > maxLinks {
		return w.pathError(path, unix.ELOOP)
	}
	if !trustedOwner(st.Uid) {
		return w.foreignOwner("link", path, st.Uid)
	}
	target := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", target)
	if err != nil {
		return w.pathError(path, err)
	}
	return w.descend(string(target[:n]))
}

// trustFolder refuses a folder in which others could replace what lies below.
// In one with the sticky bit, such as /tmp, they can't replace what is ours.
func (w *walk) trustFolder(path string, st *unix.Stat_t) error {
	if !trustedOwner(st.Uid) {
		return w.foreignOwner("folder", path, st.Uid)
	}
	if st.Mode&0o022 != 0 && st.Mode&unix.S_ISVTX == 0 {
		return w.othersWrite("folder", path, st.Mode)
	}
	return nil
}

// trustedOwner reports whether a user may decide what the file says.
func trustedOwner(uid uint32) bool { return uid == 0 || int(uid) == os.Geteuid() }

func (w *walk) foreignOwner(what, path string, uid uint32) error {
	return fmt.Errorf("%w: the %s %s belongs to user %d, who could change the %s; it must be yours or root's: chown %d %s",
		tranca.ErrRefused, what, path, uid, w.what, os.Geteuid(), Quote(path))
}

func (w *walk) othersWrite(what, path string, mode uint32) error {
	who := "g"
	switch {
	case mode&0o022 == 0o022:
		who = "go"
	case mode&0o002 != 0:
		who = "o"
	}
	return fmt.Errorf("%w: others can write to the %s %s, and so change the %s: chmod %s-w %s",
		tranca.ErrRefused, what, path, w.what, who, Quote(path))
}

// pathError gives an error of the system its class.
func (w *walk) pathError(path string, err error) error {
	class := tranca.ErrRefused
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		class = tranca.ErrNotFound
	case errors.Is(err, unix.ENAMETOOLONG), errors.Is(err, unix.EINVAL):
		class = tranca.ErrInvalid
	}
	return fmt.Errorf("%w: %s %s: %w", class, w.what, path, err)
}
