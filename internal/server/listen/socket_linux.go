package listen

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
)

// maxPath is the longest path that a socket can have, without its NUL.
const maxPath = len(unix.RawSockaddrUnix{}.Path) - 1

// Socket is the server's unix socket. Close removes its file.
type Socket struct {
	net.Listener
	path string
	file unix.Stat_t // the file that is ours
	lock *os.File

	closing sync.Once
	closed  error
}

// Unix listens at path. The folder is made where it is missing, for this user
// alone; one that others may use is refused. The error wraps
// [tranca.ErrInvalid], [tranca.ErrRefused], or [tranca.ErrExists] where another
// server, or any other program, listens there.
func Unix(path string) (*Socket, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("%w: socket: %w", tranca.ErrInvalid, err)
	}
	dir := filepath.Dir(path)
	if most := maxPath - len("/.tranca-") - 8; len(path) > maxPath || len(dir) > most {
		return nil, fmt.Errorf("%w: the socket's path has %d bytes, and its folder's %d: want at most %d and %d: %s",
			tranca.ErrInvalid, len(path), len(dir), maxPath, most, path)
	}
	if err := prepareFolder(dir); err != nil {
		return nil, err
	}
	lock, err := takeLock(path)
	if err != nil {
		return nil, err
	}
	s := &Socket{path: path, lock: lock}
	if err := s.bind(dir); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return s, nil
}

// prepareFolder makes the folder or looks at the one that is there.
func prepareFolder(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: the socket's folder: %w", tranca.ErrInvalid, err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("%w: the socket's folder: %w", tranca.ErrInvalid, err)
	}
	owner := int(info.Sys().(*syscall.Stat_t).Uid)
	switch {
	case !info.IsDir():
		return fmt.Errorf("%w: %s, where the socket should be, is no folder (%s)", tranca.ErrRefused, dir, info.Mode().Type())
	case owner != os.Geteuid():
		return fmt.Errorf("%w: the socket's folder %s belongs to user %d, who could replace the socket; --socket names another place", tranca.ErrRefused, dir, owner)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%w: others may use the socket's folder %s (mode %04o): chmod 700 %s, or name another place by --socket", tranca.ErrRefused, dir, info.Mode().Perm(), dir)
	}
	return nil
}

// takeLock makes this process the one server at path, until the file is
// closed. The file stays: removing it would race with the next server.
func takeLock(path string) (*os.File, error) {
	name := path + ".lock"
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w: the socket's lock: %w", tranca.ErrRefused, err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		f.Close()
		return nil, fmt.Errorf("%w: a server listens at %s already; --socket names another place for this one", tranca.ErrExists, path)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%w: the socket's lock %s: %w", tranca.ErrRefused, name, err)
	}
	return f, nil
}

// bind makes the socket under a name that nobody knows and moves it to its
// own, so that nobody connects before its mode is right, and nothing that came
// there meanwhile is replaced.
func (s *Socket) bind(dir string) error {
	if err := s.clear(); err != nil {
		return err
	}
	hidden := filepath.Join(dir, ".tranca-"+strings.ToLower(rand.Text())[:8])
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: hidden, Net: "unix"})
	if err != nil {
		return fmt.Errorf("%w: %w", tranca.ErrRefused, err)
	}
	l.SetUnlinkOnClose(false)
	err = os.Chmod(hidden, 0o600)
	if err == nil {
		err = unix.Lstat(hidden, &s.file)
	}
	if err == nil {
		err = unix.Renameat2(unix.AT_FDCWD, hidden, unix.AT_FDCWD, s.path, unix.RENAME_NOREPLACE)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%w: the socket %s: %w", tranca.ErrRefused, s.path, err), l.Close(), os.Remove(hidden))
	}
	s.Listener = unixListener{l}
	return nil
}

// clear removes the socket that a dead server has left. The lock is ours, so
// no server of this program has it; any other program may.
func (s *Socket) clear() error {
	var st unix.Stat_t
	err := unix.Lstat(s.path, &st)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %w", tranca.ErrRefused, s.path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK || int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%w: %s is there, and is no socket of this user: move it away, or name another place by --socket", tranca.ErrExists, s.path)
	}
	c, err := net.DialTimeout("unix", s.path, time.Second)
	if err == nil {
		c.Close()
	}
	if !errors.Is(err, unix.ECONNREFUSED) {
		return fmt.Errorf("%w: another program listens at %s; --socket names another place for this server", tranca.ErrExists, s.path)
	}
	if err := os.Remove(s.path); err != nil {
		return fmt.Errorf("%w: the socket of a dead server: %w", tranca.ErrRefused, err)
	}
	return nil
}

// Path returns where the socket is.
func (s *Socket) Path() string { return s.path }

// Check returns an error that wraps [tranca.ErrGone] when the file at the
// socket's path is not the one that was made.
func (s *Socket) Check() error {
	var st unix.Stat_t
	err := unix.Lstat(s.path, &st)
	switch {
	case errors.Is(err, unix.ENOENT):
		return fmt.Errorf("%w: somebody removed the socket %s: nobody can connect any more", tranca.ErrGone, s.path)
	case err != nil:
		return fmt.Errorf("%w: the socket: %w", tranca.ErrGone, err)
	case st.Dev != s.file.Dev || st.Ino != s.file.Ino || st.Mode != s.file.Mode || st.Uid != s.file.Uid:
		return fmt.Errorf("%w: somebody replaced the socket %s: what connects there does not reach this server", tranca.ErrGone, s.path)
	}
	return nil
}

// Close removes the file, if it is still ours, and stops listening. The file
// goes first, because its number may be given to another one as soon as nobody
// listens; the lock goes last, so that the next server finds nothing of this
// one. Idempotent.
func (s *Socket) Close() error {
	s.closing.Do(func() {
		if s.Check() == nil {
			s.closed = os.Remove(s.path)
		}
		s.closed = errors.Join(s.closed, s.Listener.Close(), s.lock.Close())
	})
	return s.closed
}
