package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"tranca"
)

// plainPrefix begins the name of every folder of the weaker rung.
const plainPrefix = "tranca-sandbox-"

// plainFolder is the folder of one sandbox of the weaker rung. Its lock is held
// for as long as the supervisor lives, so that a later one finds those of the
// dead; programs don't inherit the descriptor.
type plainFolder struct {
	path string
	lock *os.File
}

// newPlainFolder makes a folder in dir that only the given user enters. A sweeper can come between its making and its lock, and takes it
// for a dead one's: then another is made.
func newPlainFolder(dir string, owner int) (*plainFolder, error) {
	const attempts = 16
	for range attempts {
		path, err := os.MkdirTemp(dir, plainPrefix)
		if err != nil {
			return nil, fmt.Errorf("%w: temporary folder: %w", tranca.ErrUnavailable, err)
		}
		lock, err := lockFolder(path)
		if lock == nil && err == nil {
			continue
		}
		if err == nil && owner != os.Geteuid() {
			err = os.Chown(path, owner, owner)
		}
		if err == nil {
			return &plainFolder{path: path, lock: lock}, nil
		}
		if lock != nil {
			lock.Close()
		}
		return nil, errors.Join(fmt.Errorf("%w: temporary folder: %w", tranca.ErrUnavailable, err), os.RemoveAll(path))
	}
	return nil, fmt.Errorf("%w: temporary folder: each new one in %s is taken away by somebody", tranca.ErrUnavailable, dir)
}

// lockFolder returns an open folder with its lock held; nil says that somebody
// else has it, or that it is gone.
func lockFolder(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil, nil
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, nil
		}
		return nil, &os.PathError{Op: "flock", Path: path, Err: err}
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Nlink == 0 {
		f.Close()
		return nil, err
	}
	return f, nil
}

// remove removes the folder, also where its user, who owns it, has renamed it.
// Everything that could write in it must be dead.
func (f *plainFolder) remove() error {
	defer f.lock.Close()
	now, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.lock.Fd()))
	if err != nil || strings.HasSuffix(now, " (deleted)") {
		now = f.path
	}
	return os.RemoveAll(now)
}

// sweepPlainFolders removes the folders in dir that dead supervisors of the
// same user left: theirs, or given to owner. Those that are in use, or somebody
// else's, are left alone. Somebody else's fault is no reason not to run.
func sweepPlainFolders(dir string, owner int) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), plainPrefix) {
			continue
		}
		lock, err := lockFolder(filepath.Join(dir, e.Name()))
		if err != nil || lock == nil {
			continue
		}
		f := &plainFolder{path: lock.Name(), lock: lock}
		var st unix.Stat_t
		if unix.Fstat(int(lock.Fd()), &st) == nil && (int(st.Uid) == owner || int(st.Uid) == os.Geteuid()) {
			_ = f.remove()
		} else {
			lock.Close()
		}
	}
}
