package supervisor

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"tranca"
)

const (
	prefix = "s-"
	// maxNotes bounds what is read of a dead supervisor's notes.
	maxNotes = 1 << 20
	// attempts to make a lock file that no sweeper takes away at once.
	attempts = 16
)

// Supervisor is the identity of this process. Safe for concurrent use.
type Supervisor struct {
	id  string
	dir *os.File

	mu   sync.Mutex
	lock *os.File // nil when closed
}

// Open gives this process a new identity in a runtime folder; see
// [OpenFolder]. Several in one process are several supervisors.
func Open(dir string) (*Supervisor, error) {
	folder, err := OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	for range attempts {
		id := newID()
		lock, err := create(folder, prefix+id)
		if err == nil {
			return &Supervisor{id: id, dir: folder, lock: lock}, nil
		}
		if !errors.Is(err, errTaken) {
			folder.Close()
			return nil, fmt.Errorf("runtime folder %s: lock file: %w", folder.Name(), err)
		}
	}
	folder.Close()
	return nil, fmt.Errorf("runtime folder %s: each new lock file is taken away by somebody: %w",
		folder.Name(), tranca.ErrUnavailable)
}

func newID() string {
	var b [idBytes]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// ID is 16 hexadecimal digits, unique among all supervisors of the host.
func (s *Supervisor) ID() string { return s.id }

// Folder is the path of the runtime folder.
func (s *Supervisor) Folder() string { return s.dir.Name() }

// Note writes down something that may outlive this process. It must be called
// before the thing is made. The note survives a kill -9 of the process, not a
// crash of the host: what notes speak of doesn't survive that either.
func (s *Supervisor) Note(kind, value string) error {
	line, err := formatNote(Note{Kind: kind, Value: value})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock == nil {
		return fmt.Errorf("supervisor %s: note: %w", s.id, tranca.ErrClosed)
	}
	// One write with O_APPEND, so that a note is there whole or not at all.
	if _, err := s.lock.WriteString(line); err != nil {
		return fmt.Errorf("supervisor %s: note: %w", s.id, err)
	}
	return nil
}

// Close gives the identity up. What notes speak of must be gone by then, for
// nobody will look for it again. It may be called twice.
func (s *Supervisor) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock == nil {
		return nil
	}
	// The name goes first, while the lock is held: nobody can take us for dead.
	err := unix.Unlinkat(int(s.dir.Fd()), prefix+s.id, 0)
	s.lock.Close()
	s.lock = nil
	s.dir.Close()
	if err != nil {
		return fmt.Errorf("supervisor %s: remove lock file: %w", s.id, err)
	}
	return nil
}

// Dead lists the supervisors of this folder that no longer live and left
// notes. The list can be out of date at once; to act on it use Sweep.
func (s *Supervisor) Dead() ([]string, error) {
	var dead []string
	err := s.Sweep(func(r Remains) error {
		dead = append(dead, r.ID)
		return errKeep
	})
	return dead, err
}

// errKeep says that a dead supervisor was looked at only.
var errKeep = errors.New("keep")

// Sweep calls clean for each dead supervisor of this folder that left notes;
// one without had made nothing, and is forgotten. Meanwhile nobody
// else can sweep the same one. It is forgotten when clean returns nil, else it
// is there again for the next Sweep; Sweep goes on with the others and returns
// all errors joined.
func (s *Supervisor) Sweep(clean func(Remains) error) error {
	names, err := s.names()
	if err != nil {
		return err
	}
	var failed []error
	for _, name := range names {
		if err := s.sweepOne(name, clean); err != nil && !errors.Is(err, errKeep) {
			failed = append(failed, fmt.Errorf("sweep of dead supervisor %s: %w", name[len(prefix):], err))
		}
	}
	return errors.Join(failed...)
}

func (s *Supervisor) sweepOne(name string, clean func(Remains) error) error {
	lock, err := take(s.dir, name)
	if errors.Is(err, errTaken) {
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	text, err := io.ReadAll(io.LimitReader(lock, maxNotes))
	if err != nil {
		return err
	}
	// One without notes has made nothing; mostly it has just been born, and
	// takes another ID now.
	if notes := parseNotes(string(text)); len(notes) > 0 {
		if err := clean(Remains{ID: name[len(prefix):], Notes: notes}); err != nil {
			return err
		}
	}
	return unix.Unlinkat(int(s.dir.Fd()), name, 0)
}

// names lists the lock files of all supervisors but this one.
func (s *Supervisor) names() ([]string, error) {
	// A descriptor of its own: the read position is shared otherwise.
	fd, err := unix.Openat(int(s.dir.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("runtime folder %s: %w", s.dir.Name(), err)
	}
	dir := os.NewFile(uintptr(fd), s.dir.Name())
	defer dir.Close()
	all, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("runtime folder: %w", err)
	}
	var names []string
	for _, name := range all {
		if id, ok := strings.CutPrefix(name, prefix); ok && ValidID(id) && id != s.id {
			names = append(names, name)
		}
	}
	return names, nil
}
