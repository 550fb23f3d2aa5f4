package idrange

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/require"
)

// The test binary runs itself as other processes that take blocks.
const helperEnv = "IDRANGE_TEST_HELPER"

func TestMain(m *testing.M) {
	help := helpTake
	switch os.Getenv(helperEnv) {
	case "":
		os.Exit(m.Run())
	case "nobody":
		help = helpAsNobody
	}
	if err := help(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// helpTake takes blocks and gives them back until it is killed. Five are held
// at any time.
func helpTake(folder, etc string) error {
	w, err := openWitness(etc)
	if err != nil {
		return err
	}
	p, err := openPool(folder, etc)
	if err != nil {
		return err
	}
	var held []*Block
	for {
		if len(held) == 5 {
			if err := w.release(held[0]); err != nil {
				return err
			}
			held = held[1:]
		}
		b, err := w.acquire(p)
		if err != nil {
			return err
		}
		fmt.Println(b.UID)
		held = append(held, b)
	}
}

// witness finds out by other means than the pool's that two hold one block: by
// record locks of the process, which a dying process gives up when it closes
// its files. The locks of the blocks hang on the open files themselves, which
// the kernel lets go after that.
type witness struct{ *os.File }

func openWitness(etc string) (witness, error) {
	f, err := os.OpenFile(filepath.Join(etc, "witness"), os.O_RDWR|os.O_CREATE, 0o600)
	return witness{f}, err
}

func (w witness) lock(b *Block, kind int16) error {
	for i, first := range []uint32{b.UID, b.GID} {
		l := unix.Flock_t{Type: kind, Start: int64(i)<<32 + int64(first), Len: Size}
		if err := unix.FcntlFlock(w.Fd(), unix.F_SETLK, &l); err != nil {
			return fmt.Errorf("ids from %d are held twice: %w", first, err)
		}
	}
	return nil
}

func (w witness) acquire(p *Pool) (*Block, error) {
	b, err := p.Acquire()
	if err != nil {
		return nil, err
	}
	return b, w.lock(b, unix.F_WRLCK)
}

func (w witness) release(b *Block) error {
	return errors.Join(w.lock(b, unix.F_UNLCK), b.Release())
}

// openPool opens a pool of 64 blocks from files of the test; it takes no
// newuidmap.
func openPool(folder, etc string) (*Pool, error) {
	p := &Pool{}
	if err := p.forUser(etc, 4242); err != nil {
		return nil, err
	}
	return p, p.openFolder(folder)
}

func files(t *testing.T, content map[string]string) string {
	t.Helper()
	etc := t.TempDir()
	for name, text := range content {
		if err := os.WriteFile(filepath.Join(etc, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return etc
}

// 64 blocks, of which the groups are eight blocks further on: so number N is
// used as users by one block and as groups by another.
func smallEtc(t *testing.T) string {
	t.Helper()
	return files(t, map[string]string{
		"passwd": "me:x:4242:4242::/:\n",
		"subuid": "me:100000:512\n",
		"subgid": "4242:100064:512\n",
	})
}

func pool(t *testing.T) (*Pool, string, string) {
	t.Helper()
	folder, etc := filepath.Join(t.TempDir(), "run"), smallEtc(t)
	p, err := openPool(folder, etc)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p, folder, etc
}

func acquire(t *testing.T, p *Pool) *Block {
	t.Helper()
	b, err := p.Acquire()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAcquireUntilAllAreTaken(t *testing.T) {
	p, _, _ := pool(t)
	users, groups := map[uint32]bool{}, map[uint32]bool{}
	var all []*Block
	for {
		b, err := p.Acquire()
		if errors.Is(err, tranca.ErrBusy) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if b.Count != Size || b.UID < 100000 || b.UID+b.Count > 100512 || b.GID < 100064 || b.GID+b.Count > 100576 {
			t.Fatalf("block %d %d %d is not within the ranges", b.UID, b.GID, b.Count)
		}
		for id := b.UID; id < b.UID+b.Count; id++ {
			if users[id] {
				t.Fatalf("user %d was given away twice", id)
			}
			users[id] = true
		}
		for id := b.GID; id < b.GID+b.Count; id++ {
			if groups[id] {
				t.Fatalf("group %d was given away twice", id)
			}
			groups[id] = true
		}
		all = append(all, b)
	}
	// A number that is taken for users blocks the same one for groups, so each
	// block can be in the way of two others.
	if len(all) < 64/3 {
		t.Errorf("only %d of 64 blocks", len(all))
	}
	for _, b := range all {
		for range 2 {
			if err := b.Release(); err != nil {
				t.Fatal(err)
			}
		}
	}
	acquire(t, p)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Acquire(); !errors.Is(err, tranca.ErrClosed) {
		t.Errorf("Acquire after Close: %v", err)
	}
}

func TestReleaseLeavesNoFile(t *testing.T) {
	p, folder, _ := pool(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				b, err := p.Acquire()
				if err != nil {
					t.Error(err)
					return
				}
				if err := b.Release(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

// A sandbox that outlives its supervisor keeps its block.
func TestLocksKeepBlock(t *testing.T) {
	p, _, _ := pool(t)
	b := acquire(t, p)
	locks := b.Locks()
	if len(locks) != 2 {
		t.Fatalf("%d locks, want one for users and one for groups", len(locks))
	}
	for _, l := range locks {
		if _, err := l.WriteString("x"); err == nil {
			t.Error("a lock file that a sandbox holds can be written")
		}
	}
	dup, err := unix.Dup(int(locks[0].Fd()))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range locks { // as when the supervisor dies
		l.Close()
	}
	if err := p.Sweep(); err != nil {
		t.Fatal(err)
	}
	taken, err := p.take(p.dir, uint64(b.UID)/Size, uint64(b.GID)/Size)
	if err != nil || taken != nil {
		t.Errorf("the block of a living sandbox was given away: %v %v", taken, err)
	}
	unix.Close(dup)
	taken, err = p.take(p.dir, uint64(b.UID)/Size, uint64(b.GID)/Size)
	if err != nil || taken == nil {
		t.Errorf("the block of a dead sandbox is not free: %v", err)
	}
}

// Processes take and release blocks and are killed at any moment. No block is
// held by two at once, and all come back.
func TestProcessesUnderKill(t *testing.T) {
	p, folder, etc := pool(t)
	w, err := openWitness(etc)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	end := time.Now().Add(2 * time.Second)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for time.Now().Before(end) {
				runTaker(t, folder, etc)
			}
		})
	}
	for time.Now().Before(end) && !t.Failed() {
		b, err := w.acquire(p)
		if err == nil {
			err = w.release(b)
		}
		if err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
	if err := p.Sweep(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

// runTaker runs one process, and kills it while it takes blocks.
func runTaker(t *testing.T, folder, etc string) {
	cmd := exec.Command("/proc/self/exe", folder, etc)
	cmd.Env = append(os.Environ(), helperEnv+"=take")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Error(err)
		return
	}
	if err := cmd.Start(); err != nil {
		t.Error(err)
		return
	}
	lines, n := bufio.NewScanner(out), 0
	for n < 200 && lines.Scan() {
		n++
	}
	if n < 200 {
		t.Errorf("the process ended by itself after %d blocks", n)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

func TestRootKeepsClear(t *testing.T) {
	etc := files(t, map[string]string{
		"passwd": "a:x:2100000000:2100000008::/:\n",
		"group":  "g:x:2100000016:\n",
		"subuid": "b:2100000024:16\n",
		"subgid": "c:2100000048:524240\n",
	})
	p := &Pool{}
	if err := p.forRoot(etc); err != nil {
		t.Fatal(err)
	}
	var free []uint64
	for i := range p.uids.len() {
		free = append(free, p.uids.at(i)*Size)
	}
	if len(free) != 1 || free[0] != 2100000040 {
		t.Errorf("free are %v, want 2100000040 alone", free)
	}
	if err := os.WriteFile(filepath.Join(etc, "subuid"), []byte("b:2000000000:147483647\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var lack *Missing
	if err := (&Pool{}).forRoot(etc); !errors.As(err, &lack) || !errors.Is(err, tranca.ErrUnavailable) {
		t.Errorf("no id left: %v", err)
	}
}

func TestRootRange(t *testing.T) {
	p := &Pool{}
	if err := p.forRoot(files(t, nil)); err != nil {
		t.Fatal(err)
	}
	first, last := p.uids.at(0)*Size, p.uids.at(p.uids.len()-1)*Size+Size-1
	if first != 2_100_000_000 || last != 2_100_524_287 || p.uids.len() != 65536 {
		t.Errorf("%d blocks from %d to %d", p.uids.len(), first, last)
	}
}

func TestUserWithoutRanges(t *testing.T) {
	for name, content := range map[string]map[string]string{
		"no files":          nil,
		"others' ranges":    {"subuid": "you:100000:65536\n", "subgid": "you:100000:65536\n"},
		"no groups":         {"passwd": "me:x:4242:1::/:\n", "subuid": "me:100000:65536\n"},
		"less than a block": {"subuid": "4242:100001:14\n", "subgid": "4242:100000:65536\n"},
	} {
		var lack *Missing
		err := (&Pool{}).forUser(files(t, content), 4242)
		if !errors.As(err, &lack) || !strings.HasPrefix(lack.Mend, "usermod --add-subuids") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// As whoever runs the test: root maps by itself, a user with ranges through
// newuidmap, a user without is told so.
func TestMap(t *testing.T) {
	p, err := Open(Options{Folder: filepath.Join(t.TempDir(), "run")})
	if os.Geteuid() != 0 {
		require.Check(t, "subids", err == nil, fmt.Sprint(err))
	}
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	b := acquire(t, p)
	pid, end, err := newUserNamespace()
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	ctx := context.Background()
	if err := p.Map(ctx, pid, []Line{{0, b.UID, 1}, {1000, b.UID + 1, 1}}, []Line{{0, b.GID, 2}}); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"uid_map": fmt.Sprintf("0 %d 1 1000 %d 1", b.UID, b.UID+1),
		"gid_map": fmt.Sprintf("0 %d 2", b.GID),
	} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
		if got := strings.Join(strings.Fields(string(text)), " "); err != nil || got != want {
			t.Errorf("%s is %q, want %q; %v", file, got, want, err)
		}
	}
	if err := p.Map(ctx, pid, []Line{{0, b.UID, 1}}, []Line{{0, b.GID, 1}}); err == nil {
		t.Error("a second map was taken")
	}
	if err := p.Map(ctx, 0, nil, nil); !errors.Is(err, tranca.ErrInvalid) {
		t.Errorf("no process: %v", err)
	}
}

// A user without ranges of his own gets a refusal that says what to do.
func TestOpenWithoutRanges(t *testing.T) {
	require.Part(t, "no-subids")
	_, err := Open(Options{Folder: filepath.Join(t.TempDir(), "run")})
	var lack *Missing
	if !errors.As(err, &lack) || lack.What == "" || lack.Mend == "" {
		t.Errorf("got %v", err)
	}
}
