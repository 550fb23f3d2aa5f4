package host

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/guest/agent"
	"tranca/internal/require"
)

// A host that does not read gets an overflow, and then what came behind it.
func TestWatchOfAFlood(t *testing.T) {
	sb, _, cfg := newSandbox(t, nil)
	w := watchDir(t, sb.Files(), cfg.Workdir, true)
	const files = 15_000
	for i := range files {
		w.write(fmt.Sprint("flood", i%1000, "-", i), "x")
		w.ok(os.Remove(w.at(fmt.Sprint("flood", i%1000, "-", i))))
	}
	got := w.until("overflow")
	if len(got) >= 3*files {
		t.Errorf("%d events held", len(got))
	}
	w.goesOn("end")
}

// goesOn makes files until one is told without an overflow before it.
func (w *watched) goesOn(name string) {
	w.Helper()
	ctx := within(w)
	for round := 0; ; round++ {
		path := fmt.Sprint(name, round)
		w.write(path, "")
		e, err := w.Next(ctx)
		for ; err == nil && e.Kind != tranca.FileOverflow && e.Path != path; e, err = w.Next(ctx) {
		}
		if err != nil {
			w.Fatal(err)
		}
		if e.Path == path {
			return
		}
	}
}

// Deeper than a path can be named: what can't be watched is told as missed.
func TestWatchOfADeepTree(t *testing.T) {
	sb, _, cfg := newSandbox(t, nil)
	w := watchDir(t, sb.Files(), cfg.Workdir, true)
	got := runProgram(t, sb, tranca.Command{Args: []string{"python3", "-Ic", `
import os
os.mkdir("deep"); os.chdir("deep")
for i in range(600):
    os.mkdir("d" * 20); open("f", "w").close(); os.chdir("d" * 20)
`}})
	if got.exit != exited(0) {
		t.Fatal(got)
	}
	w.until("overflow")
	w.goesOn("deep/end")
	w.ok(sb.Files().Remove(within(t), "deep"))
}

// The code swaps a folder for a link to elsewhere all the time. What happens
// there is never told.
func TestWatchFollowsNoLink(t *testing.T) {
	sb, _, cfg := newSandbox(t, nil)
	outside := t.TempDir()
	w := watchDir(t, sb.Files(), cfg.Workdir, true)
	w.ok(os.Symlink(outside, w.at("link")))
	stop := make(chan struct{})
	var hostile sync.WaitGroup
	loop := func(f func(i int)) {
		hostile.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					f(i)
				}
			}
		})
	}
	loop(func(i int) {
		name := fmt.Sprint("d", i%7)
		_ = os.MkdirAll(w.at(name+"/sub"), 0o777)
		_ = unix.Renameat2(unix.AT_FDCWD, w.at(name), unix.AT_FDCWD, w.at("link"), unix.RENAME_EXCHANGE)
		_ = os.Rename(w.at("link"), w.at("moved"))
		_ = os.Symlink(outside, w.at("link"))
		_ = os.RemoveAll(w.at("moved"))
	})
	loop(func(i int) {
		name := filepath.Join(outside, fmt.Sprint("secret", i%50))
		_ = os.MkdirAll(filepath.Join(name, "sub"), 0o777)
		_ = os.WriteFile(filepath.Join(name, "sub/secret"), nil, 0o666)
		_ = os.RemoveAll(name)
	})
	seen := 0
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); seen++ {
		e, err := w.Next(within(t))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(e.Path, "secret") {
			t.Errorf("told of what is elsewhere: %+v", e)
		}
	}
	close(stop)
	hostile.Wait()
	w.ok(os.RemoveAll(w.at("link")))
	w.goesOn("end")
	if seen == 0 {
		t.Error("nothing was told at all")
	}
}

// churn changes a tree at random.
func churn(dir string, r *rand.Rand, n int) {
	name := func() string {
		parts := make([]string, 1+r.IntN(3))
		for i := range parts {
			parts[i] = string(rune('a' + r.IntN(4)))
		}
		return filepath.Join(dir, filepath.Join(parts...))
	}
	for range n {
		switch r.IntN(8) {
		case 0, 1, 2:
			_ = os.MkdirAll(name(), 0o777)
		case 3, 4:
			_ = os.Rename(name(), name())
		case 5:
			_ = unix.Renameat2(unix.AT_FDCWD, name(), unix.AT_FDCWD, name(), unix.RENAME_EXCHANGE)
		case 6:
			_ = os.Remove(name())
		case 7:
			_ = os.RemoveAll(name())
		}
	}
}

// However the code moved its folders about: when it has stopped, each of them is
// watched by its right path, or there was an overflow and then it is.
func TestWatchComesToRest(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			sb, _, cfg := newSandbox(t, nil)
			w := watchDir(t, sb.Files(), cfg.Workdir, true)
			var all sync.WaitGroup
			for i := range 3 {
				all.Go(func() { churn(w.dir, rand.New(rand.NewPCG(seed, uint64(i))), 800) })
			}
			all.Wait()
			for round := 0; !w.probe(round); round++ {
				if round == 50 {
					t.Fatal("it never comes to rest")
				}
				time.Sleep(100 * time.Millisecond)
			}
		})
	}
}

// probe makes a file in each folder and reports whether each is told by the
// right path, with no overflow before. Some may be told twice.
func (w *watched) probe(round int) bool {
	w.Helper()
	want, made := map[string]bool{}, map[string]bool{}
	name := fmt.Sprint("probe", round)
	w.ok(filepath.WalkDir(w.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			rel, _ := filepath.Rel(w.dir, filepath.Join(path, name))
			want[rel], made[rel] = true, true
			return os.WriteFile(filepath.Join(path, name), nil, 0o666)
		}
		return err
	}))
	ctx := within(w)
	for len(want) > 0 {
		e, err := w.Next(ctx)
		if err != nil {
			w.Fatalf("neither told nor missed: %v (%v)", want, err)
		}
		if e.Kind == tranca.FileOverflow {
			return false
		}
		if filepath.Base(e.Path) == name && !made[e.Path] {
			w.Errorf("told of %q, where no folder is", e.Path)
		}
		delete(want, e.Path)
	}
	return true
}

func TestWatchOfTooManyFolders(t *testing.T) {
	sb, _, cfg := newSandbox(t, nil)
	for i := range 8200 {
		if err := os.Mkdir(filepath.Join(cfg.Workdir, fmt.Sprint(i)), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := (files{sb}).Watch(within(t), ".", true); !errors.Is(err, tranca.ErrBusy) || !strings.Contains(err.Error(), "8192 folders") {
		t.Errorf("got %v", err)
	}
	// Alone it can be watched, and it can grow beyond the bound while it is.
	w := watchDir(t, sb.Files(), cfg.Workdir, false)
	w.write("end", "")
	w.expect("created end")
	w.ok(w.Close())
	for i := range 20 {
		w.ok(os.Remove(w.at(fmt.Sprint(i))))
	}
	w = watchDir(t, sb.Files(), cfg.Workdir, true)
	for i := range 30 {
		w.mkdir(fmt.Sprint("n", i))
	}
	w.until("overflow")
	w.until("overflow") // as long as a folder is not watched
	for i := 20; i < 100; i++ {
		w.ok(os.Remove(w.at(fmt.Sprint(i))))
	}
	w.goesOn("n29/end") // it has room again
}

func TestWatchOfAHugeFolder(t *testing.T) {
	sb, _, cfg := newSandbox(t, nil)
	// Links, for a new inode takes ten times as long on a disk. A file has a
	// bounded number of them.
	var first string
	for i := range 100_000 {
		name := filepath.Join(cfg.Workdir, fmt.Sprint(i))
		var err error
		if i%30_000 == 0 {
			first = name
			err = os.WriteFile(name, nil, 0o600)
		} else {
			err = unix.Link(first, name)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, recursive := range []bool{false, true} {
		w := watchDir(t, sb.Files(), cfg.Workdir, recursive)
		w.write("500", "x")
		w.expect("written 500")
		w.ok(w.Close())
	}
}

func TestManyWatches(t *testing.T) {
	sb, _, _ := newSandbox(t, nil)
	var open []tranca.Watch
	for {
		w, err := files{sb}.Watch(within(t), ".", true)
		if err != nil {
			if !errors.Is(err, tranca.ErrBusy) || len(open) == 0 || len(open) > 32 {
				t.Errorf("after %d: %v", len(open), err)
			}
			break
		}
		open = append(open, w)
	}
	for _, w := range open {
		w.Close()
	}
	for range 100 { // the agent hears of it a little later
		if w, err := (files{sb}).Watch(within(t), ".", true); err == nil {
			w.Close()
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Error("no room again after all were closed")
}

// What the code's user can't look into is not watched, until he can.
func TestWatchHasTheUsersRights(t *testing.T) {
	require.Root(t)
	const nobody = 65534
	sb, _, cfg := newSandbox(t, func(cfg *agent.Config) {
		cfg.FSUID, cfg.FSGID = nobody, nobody
		for _, dir := range []string{cfg.Workdir, filepath.Dir(cfg.Workdir)} {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.MkdirAll(filepath.Join(cfg.Workdir, "closed/sub"), 0o700); err != nil {
			t.Fatal(err)
		}
	})
	for _, path := range []string{"closed", "closed/sub"} {
		if _, err := (files{sb}).Watch(within(t), path, true); !errors.Is(err, tranca.ErrRefused) {
			t.Errorf("%s: %v", path, err)
		}
	}
	w := watchDir(t, sb.Files(), cfg.Workdir, true)
	w.write("closed/sub/secret", "")
	w.write("one", "")
	w.expect("created one")
	w.ok(os.Chmod(w.at("closed/sub"), 0o755))
	w.ok(os.Chmod(w.at("closed"), 0o755))
	w.until("created closed/sub/secret")
	w.write("closed/sub/two", "")
	w.until("created closed/sub/two")
}
