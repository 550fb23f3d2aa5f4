package idrange

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/linux/supervisor"
)

// The range that root takes its blocks from.
const (
	rootFirst = 2_100_000_000
	rootCount = 65_536 * Size
)

const prefix = "ids-"

// Options say where things are. The zero value is right for everything but
// tests.
type Options struct {
	// Folder is the runtime folder that all tranca processes of the user
	// share; see [supervisor.OpenFolder]. Processes with different folders do
	// not see each other's blocks.
	Folder string
	// Etc is the folder of passwd, group, subuid and subgid; empty is /etc.
	Etc string
}

// Missing says why this user has no ids to give away.
type Missing struct {
	What string // what is lacking
	Mend string // one command that mends it; it may be empty
}

// Error says what is lacking.
func (m *Missing) Error() string { return "ids for sandboxes: " + m.What }

// Is makes it a [tranca.ErrUnavailable].
func (m *Missing) Is(target error) bool { return target == tranca.ErrUnavailable }

// Pool is where blocks are taken from. Safe for concurrent use.
type Pool struct {
	uids, gids blocks
	helpers    *helpers // nil for root

	mu  sync.Mutex
	dir *os.File // nil when closed
}

// Block is a block of ids that nobody else has while its lock is held.
type Block struct {
	UID   uint32 // the first user id
	GID   uint32 // the first group id
	Count uint32

	mu    sync.Mutex
	locks []*os.File // nil when released
}

// Open finds the ids that this user may give to sandboxes. For a user other
// than root it tries newuidmap and newgidmap on a process that it makes. Where
// there are none the error is a *[Missing].
func Open(o Options) (*Pool, error) {
	if o.Etc == "" {
		o.Etc = "/etc"
	}
	p := &Pool{}
	var err error
	if os.Geteuid() == 0 {
		err = p.forRoot(o.Etc)
	} else {
		err = p.forUser(o.Etc, os.Geteuid())
		if err == nil {
			p.helpers, err = findHelpers()
		}
	}
	if err != nil {
		return nil, err
	}
	if err := p.openFolder(o.Folder); err != nil {
		return nil, err
	}
	if p.helpers != nil {
		if err := p.try(); err != nil {
			return nil, errors.Join(err, p.Close())
		}
	}
	return p, nil
}

func (p *Pool) openFolder(path string) (err error) {
	p.dir, err = supervisor.OpenFolder(path)
	return err
}

// forRoot cuts what is taken out of the range that is set aside.
func (p *Pool) forRoot(etc string) error {
	var users, groups []span
	for _, f := range []struct {
		name string
		last int // of the fields with ids; 0 for a subordinate file
		into *[]span
	}{
		{"passwd", 2, &users}, {"passwd", 3, &groups}, {"group", 2, &groups},
		{"subuid", 0, &users}, {"subgid", 0, &groups},
	} {
		text, err := readOptional(etc, f.name)
		if err != nil {
			return err
		}
		found := parseIDs(text, f.last)
		if f.last == 0 {
			_, found = parseSub(text, func(string) bool { return false })
		}
		*f.into = append(*f.into, found...)
	}
	all := []span{{rootFirst, rootFirst + rootCount}}
	// One number is one block for users and groups, so both must be free.
	p.uids = cut(all, slices.Concat(users, groups))
	p.gids = p.uids
	if p.uids.len() == 0 {
		return &Missing{
			What: fmt.Sprintf("the ids %d to %d are all taken by the user database", rootFirst, rootFirst+rootCount-1),
			Mend: "free some of them in /etc/subuid and /etc/subgid",
		}
	}
	return nil
}

// forUser takes the user's own subordinate ids.
func (p *Pool) forUser(etc string, uid int) error {
	passwd, err := readOptional(etc, "passwd")
	if err != nil {
		return err
	}
	names := append(namesOf(passwd, uid), strconv.Itoa(uid))
	mine := func(owner string) bool { return slices.Contains(names, owner) }
	for _, f := range []struct {
		name string
		into *blocks
	}{{"subuid", &p.uids}, {"subgid", &p.gids}} {
		text, err := readOptional(etc, f.name)
		if err != nil {
			return err
		}
		own, _ := parseSub(text, mine)
		*f.into = cut(own, nil)
		if f.into.len() == 0 {
			return &Missing{
				What: fmt.Sprintf("%s/%s has no range of %d ids for user %s", etc, f.name, Size, names[0]),
				Mend: fmt.Sprintf("usermod --add-subuids 100000-165535 --add-subgids 100000-165535 %s", names[0]),
			}
		}
	}
	return nil
}

func readOptional(dir, name string) (string, error) {
	b, err := os.ReadFile(dir + "/" + name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("ids for sandboxes: %w", err)
	}
	return string(b), nil
}

// Close gives the pool up. Blocks that were taken stay taken until they are
// released. It may be called twice.
func (p *Pool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dir != nil {
		p.dir.Close()
		p.dir = nil
	}
	return nil
}

// folder returns a descriptor of the runtime folder that stays valid.
func (p *Pool) folder() (*os.File, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dir == nil {
		return nil, fmt.Errorf("ids for sandboxes: %w", tranca.ErrClosed)
	}
	return p.dir, nil
}

// Acquire takes a free block. It fails with [tranca.ErrBusy] when all are
// taken.
func (p *Pool) Acquire() (*Block, error) {
	dir, err := p.folder()
	if err != nil {
		return nil, err
	}
	n := min(p.uids.len(), p.gids.len())
	start := rand.Uint64N(n)
	for i := range n {
		k := (start + i) % n
		b, err := p.take(dir, p.uids.at(k), p.gids.at(k))
		if err != nil {
			return nil, fmt.Errorf("ids for sandboxes: %w", err)
		}
		if b != nil {
			return b, nil
		}
	}
	return nil, fmt.Errorf("ids for sandboxes: all %d blocks are taken: %w", n, tranca.ErrBusy)
}

// take tries one block; nil says that it is taken.
func (p *Pool) take(dir *os.File, uids, gids uint64) (*Block, error) {
	b := &Block{UID: uint32(uids * Size), GID: uint32(gids * Size), Count: Size}
	numbers := []uint64{uids}
	if gids != uids {
		numbers = append(numbers, gids)
	}
	for _, n := range numbers {
		name := prefix + strconv.FormatUint(n, 10)
		lock, err := lockFile(dir, name, unix.O_CREAT)
		if err != nil || lock == nil {
			return nil, errors.Join(err, b.Release())
		}
		b.locks = append(b.locks, lock)
	}
	return b, nil
}

// lockFile takes the lock of a file; nil says that somebody has it.
func lockFile(dir *os.File, name string, flags int) (*os.File, error) {
	// Read-only: a lock asks for no more, and a process in the sandbox that
	// is given the descriptor can do nothing else with it.
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|flags, 0o600)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir.Name() + "/" + name, Err: err}
	}
	f := os.NewFile(uintptr(fd), dir.Name()+"/"+name)
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, nil
		}
		return nil, &os.PathError{Op: "flock", Path: f.Name(), Err: err}
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Nlink == 0 {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Locks are the open files that keep the block taken. The first process of
// the sandbox inherits them and keeps them open: then the block stays taken
// until it is dead too, also when the supervisor dies first. They can't be
// written, and stay the block's own.
func (b *Block) Locks() []*os.File {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.locks)
}

// Release gives the block back. Every process with its ids must be dead. It
// may be called twice.
func (b *Block) Release() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var failed []error
	for _, lock := range b.locks {
		// The name goes while the lock is held, so that nobody can take it by
		// a file that is about to go.
		failed = append(failed, os.Remove(lock.Name()))
		lock.Close()
	}
	b.locks = nil
	return errors.Join(failed...)
}

// Sweep removes the lock files of blocks that nobody holds: what a killed
// process leaves. They do no harm but for the space that they take.
func (p *Pool) Sweep() error {
	dir, err := p.folder()
	if err != nil {
		return err
	}
	names, err := readNames(dir)
	if err != nil {
		return fmt.Errorf("ids for sandboxes: %w", err)
	}
	var failed []error
	for _, name := range names {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		lock, err := lockFile(dir, name, 0)
		if err == nil && lock != nil {
			err = unix.Unlinkat(int(dir.Fd()), name, 0)
			lock.Close()
		}
		if err != nil && !errors.Is(err, unix.ENOENT) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

func readNames(dir *os.File) ([]string, error) {
	fd, err := unix.Openat(int(dir.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), dir.Name())
	defer f.Close()
	return f.Readdirnames(-1)
}
