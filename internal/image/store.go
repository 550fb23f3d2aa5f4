//go:build linux

package image

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
)

// Options say where the store is. The zero value is right for everything but
// tests.
type Options struct {
	// Dir is the store's folder; empty is [DefaultDir].
	Dir    string
	Bounds Bounds
}

// Store keeps images. Its folder is made by the first image that comes in. Safe
// for concurrent use, also by several processes.
type Store struct {
	dir    string
	err    error // why there is no place for a store
	bounds Bounds

	mu    sync.Mutex
	ready bool // the folder was looked at
}

// New returns the store of a folder. It touches nothing yet.
func New(o Options) *Store {
	s := &Store{dir: o.Dir, bounds: o.Bounds.withDefaults()}
	if s.dir == "" {
		s.dir, s.err = DefaultDir()
	}
	return s
}

// DefaultDir is where the store of this user is: "tranca" in XDG_CACHE_HOME,
// else /var/cache/tranca for root, else "tranca" in the user's folder .cache.
// Without a home the error wraps [tranca.ErrUnavailable].
func DefaultDir() (string, error) {
	if dir := os.Getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "tranca"), nil
	}
	if os.Geteuid() == 0 {
		return "/var/cache/tranca", nil
	}
	home := os.Getenv("HOME")
	if !filepath.IsAbs(home) {
		return "", fmt.Errorf("%w: there is no place for images, since HOME is no absolute path: set XDG_CACHE_HOME to a folder of your own", tranca.ErrUnavailable)
	}
	return filepath.Join(home, ".cache", "tranca"), nil
}

// The folders of a store. All hold what comes into its place by a rename.
const (
	blobsDir = "blobs"
	refsDir  = "refs"
	treesDir = "trees"
	tempDir  = "tmp"
	lockFile = "lock"
)

// Dir returns the store's folder, or why there is no place for one.
func (s *Store) Dir() (string, error) { return s.dir, s.err }

func (s *Store) path(parts ...string) string {
	return filepath.Join(append([]string{s.dir}, parts...)...)
}

// look makes sure that nobody else can put anything into the store. Where there
// is none yet the error is [fs.ErrNotExist].
func (s *Store) look() error {
	if s.err != nil {
		return s.err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ready {
		return nil
	}
	var st unix.Stat_t
	if err := unix.Lstat(s.dir, &st); err != nil {
		return s.failed("look at", s.dir, err)
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return s.distrust("it is no folder")
	case int(st.Uid) != os.Geteuid() && st.Uid != 0:
		return s.distrust(fmt.Sprintf("it belongs to user %d", st.Uid))
	case st.Mode&0o022 != 0:
		return s.distrust("others can write to it: chmod go-w " + s.dir)
	}
	s.ready = true
	return nil
}

func (s *Store) distrust(why string) error {
	return fmt.Errorf("%w: the image cache %s can't be trusted: %s", tranca.ErrRefused, s.dir, why)
}

// prepare makes the store's folders. Only their owner looks into them: private
// images stay private.
func (s *Store) prepare() error {
	if s.err != nil {
		return s.err
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return s.failed("make", s.dir, err)
	}
	if err := s.look(); err != nil {
		return err
	}
	for _, name := range []string{blobsDir, refsDir, treesDir, tempDir} {
		if err := os.Mkdir(s.path(name), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return s.failed("make", s.path(name), err)
		}
	}
	return nil
}

// failed says what could not be done in the store, and what to do about it.
func (s *Store) failed(what, path string, err error) error {
	mend := ""
	class := tranca.ErrUnavailable
	var errno syscall.Errno
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("image cache %s: %s %s: %w", s.dir, what, filepath.Base(path), fs.ErrNotExist)
	case errors.As(err, &errno) && (errno == syscall.ENOSPC || errno == syscall.EDQUOT):
		class, mend = tranca.ErrNoSpace, ": it is full; free space with `tranca image prune --all`, or set XDG_CACHE_HOME to a folder on a larger disk"
	case errors.As(err, &errno) && errno == syscall.EROFS:
		mend = ": it is read-only; set XDG_CACHE_HOME to a folder that can be written"
	case errors.Is(err, fs.ErrPermission):
		class, mend = tranca.ErrRefused, ": this user may not; set XDG_CACHE_HOME to a folder of your own"
	}
	return fmt.Errorf("%w: image cache %s%s (%s %s: %w)", class, s.dir, mend, what, filepath.Base(path), err)
}

// work is an import that is under way. What it makes lies in a folder of its
// own until it is whole; that folder is locked, so that another process can tell
// it from one whose owner was killed.
type work struct {
	s    *Store
	held *lock
	dir  string
	fd   int
	n    int // names given out
	// files are blobs that already lie in the folder, by their digests.
	files map[string]string
}

// begin begins to add to the store. Nothing is pruned until it has ended.
func (s *Store) begin(ctx context.Context) (*work, error) {
	if err := s.prepare(); err != nil {
		return nil, err
	}
	held, err := s.lock(ctx, wholeStore, shared)
	if err != nil {
		return nil, err
	}
	s.sweep()
	dir := s.path(tempDir, strings.ToLower(rand.Text()[:16]))
	if err := os.Mkdir(dir, 0o700); err != nil {
		held.release()
		return nil, s.failed("make", dir, err)
	}
	fd, err := lockFolder(dir)
	if err != nil {
		held.release()
		return nil, errors.Join(s.failed("lock", dir, err), os.RemoveAll(dir))
	}
	return &work{s: s, held: held, dir: dir, fd: fd, files: map[string]string{}}, nil
}

// lockFolder locks a folder of work for as long as its descriptor is open.
func lockFolder(dir string) (int, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// end removes what was not put into its place.
func (w *work) end() error {
	err := os.RemoveAll(w.dir)
	unix.Close(w.fd)
	w.held.release()
	return w.s.failed("remove", w.dir, err)
}

// temp returns a name in the folder of the work.
func (w *work) temp() string {
	w.n++
	return filepath.Join(w.dir, fmt.Sprint(w.n))
}

// sweep removes what killed processes left. A folder between its making and its
// lock may be taken for one: the grace keeps it.
func (s *Store) sweep() {
	const grace = 10 * time.Second
	list, err := os.ReadDir(s.path(tempDir))
	if err != nil {
		return
	}
	for _, e := range list {
		info, err := e.Info()
		if err != nil || time.Since(info.ModTime()) < grace {
			continue
		}
		dir := s.path(tempDir, e.Name())
		fd, err := lockFolder(dir)
		if err != nil {
			continue
		}
		_ = os.RemoveAll(dir)
		unix.Close(fd)
	}
}
