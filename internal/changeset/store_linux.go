package changeset

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
)

// The bounds of a store. What is beyond them is removed when the next set is
// begun, the oldest first.
const (
	// mostSets is how many are kept.
	mostSets = 200
	// draftFor is how long a draft without contents may be under way.
	draftFor = time.Minute
)

// The names in a store. A set is a folder of the name of its id.
const (
	draftPrefix  = "new-"
	listName     = "list"
	contentsName = "contents"
	appliedName  = "applied"
	tempName     = "temp"
)

// DefaultFolder returns where this user's sets are: tranca/changes in
// XDG_STATE_HOME, in .local/state of the home folder or, for root without one,
// in /var/lib. getenv is [os.Getenv].
func DefaultFolder(getenv func(string) string) (string, error) {
	if dir := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "tranca", "changes"), nil
	}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "tranca", "changes"), nil
	}
	if os.Geteuid() == 0 {
		return "/var/lib/tranca/changes", nil
	}
	return "", fmt.Errorf("%w: there is no place for changes: neither XDG_STATE_HOME nor HOME is set to an absolute path", tranca.ErrUnavailable)
}

// Store keeps sets in one folder of the user. Several processes may use it at
// once. Safe for concurrent use.
type Store struct {
	path string
	dir  *os.File
}

// OpenStore opens the store at a path, and makes it where it is missing. A
// folder that others own or can look into is refused. Close it.
func OpenStore(path string) (*Store, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("%w: folder for changes: %w", tranca.ErrUnavailable, err)
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: folder for changes %s: it is a link, or no folder: %w", tranca.ErrUnavailable, path, err)
	}
	dir := os.NewFile(uintptr(fd), path)
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	switch {
	case err != nil:
	case int(st.Uid) != os.Geteuid():
		err = fmt.Errorf("it belongs to user %d", st.Uid)
	case st.Mode&0o077 != 0:
		err = fmt.Errorf("others can reach into it: chmod 700 %s", path)
	}
	if err != nil {
		dir.Close()
		return nil, fmt.Errorf("%w: folder for changes %s: %w", tranca.ErrUnavailable, path, err)
	}
	return &Store{path: path, dir: dir}, nil
}

// Close frees what the store holds.
func (s *Store) Close() error { return s.dir.Close() }

func (s *Store) fd() int { return int(s.dir.Fd()) }

// Draft is a set that is being made.
type Draft struct {
	s        *Store
	id       tranca.ID
	dir      int
	contents *os.File
}

// Begin begins a set, and removes sets that are too old. Commit or Discard it.
func (s *Store) Begin(id tranca.ID) (*Draft, error) {
	if !validID(id) {
		return nil, fmt.Errorf("%w: id %.40q", tranca.ErrInvalid, id)
	}
	s.tidy()
	name := draftPrefix + string(id)
	if err := unix.Mkdirat(s.fd(), name, 0o700); err != nil {
		return nil, s.failed("make "+name, err)
	}
	d := &Draft{s: s, id: id, dir: -1}
	var err error
	if d.dir, err = openInside(s.fd(), name, unix.O_PATH|unix.O_DIRECTORY); err != nil {
		d.Discard()
		return nil, s.failed("open "+name, err)
	}
	fd, err := unix.Openat(d.dir, contentsName, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err == nil {
		d.contents = os.NewFile(uintptr(fd), contentsName)
		err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	}
	if err != nil {
		d.Discard()
		return nil, s.failed("make contents", err)
	}
	return d, nil
}

func (s *Store) failed(what string, err error) error {
	return fmt.Errorf("%w: changes in %s: %s: %w", tranca.ErrUnavailable, s.path, what, err)
}

// Contents is the file for the contents; it stays the draft's.
func (d *Draft) Contents() *os.File { return d.contents }

// Commit keeps the set. The draft is over, whatever comes back.
func (d *Draft) Commit(set *Set) error {
	err := d.write(set)
	if err == nil {
		err = unix.Renameat2(d.s.fd(), draftPrefix+string(d.id), d.s.fd(), string(d.id), unix.RENAME_NOREPLACE)
	}
	if err != nil {
		d.Discard()
		return d.s.failed("keep "+string(d.id), err)
	}
	d.close()
	return nil
}

func (d *Draft) write(set *Set) error {
	f, err := createAt(d.dir, listName)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	return errors.Join(encode(w, set), w.Flush(), f.Close())
}

func createAt(dir int, name string) (*os.File, error) {
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, &os.PathError{Op: "create", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// Discard forgets the draft.
func (d *Draft) Discard() {
	d.s.remove(draftPrefix + string(d.id))
	d.close()
}

func (d *Draft) close() {
	if d.contents != nil {
		d.contents.Close()
	}
	if d.dir >= 0 {
		unix.Close(d.dir)
	}
}

// remove removes a folder of the store with the files that a set has. Nothing
// else is ever there.
func (s *Store) remove(name string) {
	for _, file := range []string{listName, contentsName, appliedName, tempName} {
		_ = unix.Unlinkat(s.fd(), name+"/"+file, 0)
	}
	_ = unix.Unlinkat(s.fd(), name, unix.AT_REMOVEDIR) // what stays is tried again
}

// tidy removes sets that are too old or too many, and drafts of processes that
// died.
func (s *Store) tidy() {
	names, _, err := list(s.fd(), 1<<20)
	if err != nil {
		return
	}
	type kept struct {
		name string
		at   int64
	}
	var sets []kept
	for _, name := range names {
		st, err := statAt(s.fd(), name)
		if err != nil || st == nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
			continue
		}
		if strings.HasPrefix(name, draftPrefix) {
			s.tidyDraft(name, time.Unix(0, st.Mtim.Nano()))
			continue
		}
		if validID(tranca.ID(name)) {
			sets = append(sets, kept{name, st.Mtim.Nano()})
		}
	}
	slices.SortFunc(sets, func(a, b kept) int { return int(min(max(b.at-a.at, -1), 1)) })
	for i, k := range sets {
		if i >= mostSets || time.Since(time.Unix(0, k.at)) > KeptFor {
			_ = s.removeUnused(k.name) // what stays is tried again
		}
	}
}

func (s *Store) tidyDraft(name string, made time.Time) {
	if st, err := statAt(s.fd(), name+"/"+contentsName); err == nil && st == nil {
		if time.Since(made) > draftFor {
			s.remove(name)
		}
		return
	}
	_ = s.removeUnused(name)
}

// removeUnused removes what nobody has locked.
func (s *Store) removeUnused(name string) error {
	f, err := s.lock(name)
	if err != nil {
		return err
	}
	defer f.Close()
	s.remove(name)
	return nil
}

// lock opens the contents of a set for one user at a time.
func (s *Store) lock(name string) (*os.File, error) {
	fd, err := openInside(s.fd(), name+"/"+contentsName, unix.O_RDONLY)
	if err != nil {
		return nil, s.failed("lock "+name, err)
	}
	f := os.NewFile(uintptr(fd), contentsName)
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("%w: the changes %s are being used by another tranca", tranca.ErrBusy, name)
	}
	return f, nil
}

// List returns the sets that are kept, the newest first. One that can't be read
// is passed over.
func (s *Store) List(ctx context.Context) ([]Info, error) {
	names, _, err := list(s.fd(), 1<<20)
	if err != nil {
		return nil, s.failed("list", err)
	}
	var all []Info
	for _, name := range names {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !validID(tranca.ID(name)) {
			continue
		}
		if info, err := s.info(name); err == nil {
			all = append(all, info)
		}
	}
	slices.SortFunc(all, func(a, b Info) int { return b.Created.Compare(a.Created) })
	return all, nil
}

func (s *Store) info(name string) (Info, error) {
	f, err := s.openFile(name, listName)
	if err != nil {
		return Info{}, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxLine)
	head, changes, err := decodeHead(lines)
	if err != nil {
		return Info{}, err
	}
	return Info{ID: head.ID, Created: head.Created, Mounts: head.Mounts, Changes: changes, Applied: s.applied(name)}, nil
}

func (s *Store) openFile(name, file string) (*os.File, error) {
	fd, err := openInside(s.fd(), name+"/"+file, fileFlags)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), file), nil
}

// Get reads a set. Errors wrap [tranca.ErrNotFound] or [tranca.ErrInvalid].
func (s *Store) Get(id tranca.ID) (*Set, error) {
	if !validID(id) {
		return nil, fmt.Errorf("%w: %.40q is no id of a sandbox", tranca.ErrInvalid, id)
	}
	f, err := s.openFile(string(id), listName)
	if errors.Is(err, unix.ENOENT) {
		return nil, fmt.Errorf("%w: no changes of %s are kept; those that are: tranca diff", tranca.ErrNotFound, id)
	}
	if err != nil {
		return nil, s.failed("open "+string(id), err)
	}
	defer f.Close()
	set, err := decode(f)
	if err != nil {
		return nil, err
	}
	if set.ID != id {
		return nil, invalid("it is that of %s", set.ID)
	}
	return set, nil
}

// Drop forgets a set.
func (s *Store) Drop(id tranca.ID) error {
	if _, err := s.Get(id); errors.Is(err, tranca.ErrNotFound) || !validID(id) {
		return err
	}
	return s.removeUnused(string(id))
}

type appliedMark struct {
	At time.Time `json:"at"`
}

// applied is when all of a set was applied, or zero.
func (s *Store) applied(name string) time.Time {
	f, err := s.openFile(name, appliedName)
	if err != nil {
		return time.Time{}
	}
	defer f.Close()
	var m appliedMark
	if json.NewDecoder(f).Decode(&m) != nil {
		return time.Time{}
	}
	return m.At
}

func (s *Store) markApplied(id tranca.ID) error {
	dir, err := openInside(s.fd(), string(id), unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	_ = unix.Unlinkat(dir, appliedName, 0)
	f, err := createAt(dir, appliedName)
	if err != nil {
		return err
	}
	return errors.Join(json.NewEncoder(f).Encode(appliedMark{time.Now().UTC()}), f.Close())
}

// tempFor returns the name by which files of a set are written before they get
// their own. It is made when code is dead that could have guessed it, and kept,
// so that what a killed application left is found by the next one: again says
// that there was one.
func (s *Store) tempFor(id tranca.ID) (name string, again bool, err error) {
	dir, err := openInside(s.fd(), string(id), unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return "", false, err
	}
	defer unix.Close(dir)
	if f, err := s.openFile(string(id), tempName); err == nil {
		defer f.Close()
		if json.NewDecoder(f).Decode(&name) == nil && strings.HasPrefix(name, ".tranca-") && filepath.Base(name) == name {
			return name, true, nil
		}
	}
	name = ".tranca-" + strings.ToLower(rand.Text())
	_ = unix.Unlinkat(dir, tempName, 0)
	f, err := createAt(dir, tempName)
	if err != nil {
		return "", false, err
	}
	return name, false, errors.Join(json.NewEncoder(f).Encode(name), f.Close())
}
