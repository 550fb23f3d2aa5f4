package supervisor

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tranca"
)

// The test binary runs itself as other supervisors.
const helperEnv = "SUPERVISOR_TEST_HELPER"

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(helperEnv) {
	case "":
		os.Exit(m.Run())
	case "live":
		err = helpLive()
	case "sweep":
		err = helpSweep()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// helpLive is a supervisor that lives until it is killed.
func helpLive() error {
	s, err := Open(os.Args[1])
	if err != nil {
		return err
	}
	if err := s.Note("thing", s.ID()); err != nil {
		return err
	}
	fmt.Println(s.ID())
	time.Sleep(time.Minute)
	return nil
}

// helpSweep sweeps again and again, and prints each one that it has swept.
func helpSweep() error {
	s, err := Open(os.Args[1])
	if err != nil {
		return err
	}
	fmt.Println("ready")
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		err := s.Sweep(func(r Remains) error {
			time.Sleep(time.Millisecond) // somebody else could come in between
			fmt.Println(r.ID)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return s.Close()
}

func helper(t *testing.T, mode, dir string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", dir)
	cmd.Env = append(os.Environ(), helperEnv+"="+mode)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatalf("helper %s said nothing", mode)
	}
	return cmd, lines
}

func open(t *testing.T, dir string) *Supervisor {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func dead(t *testing.T, s *Supervisor) []string {
	t.Helper()
	ids, err := s.Dead()
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func TestKilledSupervisorIsDead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	s := open(t, dir)
	cmd, lines := helper(t, "live", dir)
	id := lines.Text()
	if !ValidID(id) || id == s.ID() {
		t.Fatalf("id %q beside %q", id, s.ID())
	}
	if ids := dead(t, s); len(ids) > 0 {
		t.Fatalf("%v are taken for dead", ids)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if ids := dead(t, s); !slices.Equal(ids, []string{id}) {
		t.Fatalf("dead are %v, want %s", ids, id)
	}
	failed := errors.New("not yet")
	if err := s.Sweep(func(Remains) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("Sweep hides the error: %v", err)
	}
	var swept []Remains
	sweep := func() {
		if err := s.Sweep(func(r Remains) error { swept = append(swept, r); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	sweep()
	sweep() // now it is forgotten
	want := []Remains{{ID: id, Notes: []Note{{"thing", id}}}}
	if d := cmp.Diff(want, swept); d != "" {
		t.Error(d)
	}
}

// The lock must not live on in a program that the dead supervisor had started.
func TestLockIsNotInherited(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	first, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command("/proc/self/exe", filepath.Join(t.TempDir(), "other"))
	child.Env = append(os.Environ(), helperEnv+"=live")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	})
	if err := first.Note("thing", ""); err != nil {
		t.Fatal(err)
	}
	first.lock.Close() // as at its death
	if ids := dead(t, open(t, dir)); !slices.Equal(ids, []string{first.ID()}) {
		t.Errorf("dead are %v, want %s", ids, first.ID())
	}
}

// Many sweep at once while supervisors die: each dead one is swept once.
func TestEachIsSweptOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	var sweepers []*bufio.Scanner
	for range 4 {
		_, lines := helper(t, "sweep", dir)
		sweepers = append(sweepers, lines)
	}
	want := map[string]int{}
	for range 8 {
		cmd, lines := helper(t, "live", dir)
		want[lines.Text()] = 1
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	got := map[string]int{}
	for _, lines := range sweepers {
		for lines.Scan() {
			got[lines.Text()]++
		}
	}
	// One that died after the last sweep is still there.
	s := open(t, dir)
	if err := s.Sweep(func(r Remains) error { got[r.ID]++; return nil }); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if names, err := s.names(); err != nil || len(names) > 0 {
		t.Errorf("left: %v %v", names, err)
	}
}

// Supervisors come while others sweep: none loses its lock file.
func TestOpenBesideSweeps(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				s, err := Open(dir)
				if err != nil {
					t.Error(err)
					return
				}
				err = s.Sweep(func(r Remains) error {
					return fmt.Errorf("%s lives", r.ID)
				})
				if err := errors.Join(err, s.Note("alive", ""), s.Close()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestClosed(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "run"))
	if err := s.Note("Bad Kind", "x"); !errors.Is(err, tranca.ErrInvalid) {
		t.Errorf("a bad kind: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Note("kind", "x"); !errors.Is(err, tranca.ErrClosed) {
		t.Errorf("note after Close: %v", err)
	}
}

func TestFolderIsChecked(t *testing.T) {
	tmp := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	mkdir := func(name string, mode os.FileMode) string {
		dir := filepath.Join(tmp, name)
		must(os.Mkdir(dir, 0o700))
		must(os.Chmod(dir, mode))
		return dir
	}
	good := mkdir("good", 0o700)
	link := filepath.Join(tmp, "link")
	must(os.Symlink(good, link))
	file := filepath.Join(tmp, "file")
	must(os.WriteFile(file, nil, 0o600))
	open777 := mkdir("open", 0o777)
	for name, c := range map[string]struct{ dir, want string }{
		"a link":          {link, "not a folder"},
		"a file":          {file, "not a folder"},
		"others can read": {mkdir("wide", 0o750), "0750"},
		"parent is open":  {filepath.Join(open777, "run"), "sticky"},
	} {
		_, err := Open(c.dir)
		if !errors.Is(err, tranca.ErrUnavailable) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	sticky := mkdir("sticky", 0o777|os.ModeSticky)
	for _, dir := range []string{good, filepath.Join(sticky, "run")} {
		open(t, dir)
	}
}

func TestDefaultFolder(t *testing.T) {
	runtime := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	t.Setenv("TMPDIR", "/tmp")
	want := filepath.Join(runtime, "tranca")
	if os.Geteuid() == 0 {
		want = "/run/tranca"
	}
	if got := DefaultFolder(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	t.Setenv("XDG_RUNTIME_DIR", "relative")
	if os.Geteuid() != 0 {
		want = fmt.Sprintf("/tmp/tranca-%d", os.Geteuid())
	}
	if got := DefaultFolder(); got != want {
		t.Errorf("with a relative XDG_RUNTIME_DIR: got %s, want %s", got, want)
	}
}

func TestValidID(t *testing.T) {
	for id, want := range map[string]bool{
		newID(): true, "": false, "0123456789abcdeF": false, "../456789abcdef01": false,
		"0123456789abcde": false, "0123456789abcdef0": false,
	} {
		if ValidID(id) != want {
			t.Errorf("%q: want %v", id, want)
		}
	}
}

func FuzzNotes(f *testing.F) {
	f.Add("cgroup \"/sys/fs/cgroup/x\"\nmount \"a\\nb\"\ntorn \"li", "cgroup", "a\"b\n\x00")
	f.Fuzz(func(t *testing.T, text, kind, value string) {
		for _, n := range parseNotes(text) {
			line, err := formatNote(n)
			if err != nil || !strings.Contains(text, line) {
				t.Errorf("%+v from %q is %q, %v", n, text, line, err)
			}
		}
		line, err := formatNote(Note{kind, value})
		if err != nil {
			return
		}
		if got := parseNotes(line); len(got) != 1 || got[0] != (Note{kind, value}) {
			t.Errorf("%q was read as %+v", line, got)
		}
	})
}
