package supervisor

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// errTaken says that somebody else holds the lock, or that the file is gone.
var errTaken = errors.New("lock is held by another process")

// create makes a new lock file and holds its lock. A sweeper can come between
// the two; then it is errTaken.
func create(dir *os.File, name string) (*os.File, error) {
	return lockFile(dir, name, unix.O_RDWR|unix.O_APPEND|unix.O_CREAT|unix.O_EXCL)
}

// take gets the lock of a file that exists, if nobody holds it.
func take(dir *os.File, name string) (*os.File, error) {
	return lockFile(dir, name, unix.O_RDONLY)
}

func lockFile(dir *os.File, name string, flags int) (*os.File, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	switch {
	case errors.Is(err, unix.EEXIST), errors.Is(err, unix.ENOENT):
		return nil, errTaken
	case err != nil:
		return nil, err
	}
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		unix.Close(fd)
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errTaken
		}
		return nil, err
	}
	// Whoever had the lock before us may have removed the name: then the lock
	// means nothing, and the next one would lock another file.
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return nil, err
	}
	if st.Nlink == 0 {
		unix.Close(fd)
		return nil, errTaken
	}
	return os.NewFile(uintptr(fd), filepath.Join(dir.Name(), name)), nil
}
