package hostfiles_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"tranca/internal/hostfiles"
)

// must ends the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, parts ...string) {
	t.Helper()
	name := filepath.Join(parts[:len(parts)-1]...)
	must(t, os.MkdirAll(filepath.Dir(name), 0o755))
	must(t, os.WriteFile(name, []byte(parts[len(parts)-1]), 0o644))
}

func root(dir string) []hostfiles.Root {
	return []hostfiles.Root{{
		Source: dir, Target: "/data",
		HostExecutable: func(name string) bool { return strings.HasSuffix(name, ".envrc") },
	}}
}

// changes tells what a function changes in a folder.
func changes(t *testing.T, dir string, b hostfiles.Bounds, change func()) ([]string, []string) {
	t.Helper()
	s := hostfiles.Take(t.Context(), root(dir), b)
	change()
	found, notes := s.Changes(t.Context())
	var out []string
	for _, c := range found {
		line := fmt.Sprintf("%s %s %d", c.Kind, c.Path, c.Size)
		if c.HostExecutable {
			line += " executable"
		}
		out = append(out, line)
	}
	return out, notes
}

func TestChanges(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	for _, name := range []string{"same", "grown", "touched", "gone", "replaced", "mode", "tree/deep/file", "becomes-dir"} {
		write(t, dir, name, "12345")
	}
	write(t, elsewhere, "secret", "x")
	got, notes := changes(t, dir, hostfiles.Bounds{}, func() {
		write(t, dir, "grown", "1234567")
		same := time.Now().Add(-time.Hour)
		info, err := os.Stat(filepath.Join(dir, "touched"))
		must(t, err)
		write(t, dir, "touched", "54321")
		must(t, os.Chtimes(filepath.Join(dir, "touched"), same, info.ModTime())) // hides nothing
		must(t, os.Remove(filepath.Join(dir, "gone")))
		must(t, os.Remove(filepath.Join(dir, "replaced")))
		must(t, os.Symlink(elsewhere, filepath.Join(dir, "replaced")))
		must(t, os.Chmod(filepath.Join(dir, "mode"), 0o755))
		must(t, os.RemoveAll(filepath.Join(dir, "tree")))
		must(t, os.Remove(filepath.Join(dir, "becomes-dir")))
		must(t, os.Mkdir(filepath.Join(dir, "becomes-dir"), 0o755))
		must(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o644))
		write(t, dir, "new/.envrc", "123")
		write(t, dir, "bad\xffname", "1")
		sparse, err := os.Create(filepath.Join(dir, "sparse"))
		must(t, err)
		must(t, sparse.Truncate(1<<40))
		must(t, sparse.Close())
	})
	want := []string{
		"created /data/bad\xffname 1", "modified /data/becomes-dir 0", "created /data/fifo 0", "removed /data/gone 0",
		"modified /data/grown 7", "modified /data/mode 5", "created /data/new 0", "created /data/new/.envrc 3 executable",
		"modified /data/replaced 0", "created /data/sparse 1099511627776", "modified /data/touched 5",
		"removed /data/tree 0", "removed /data/tree/deep 0", "removed /data/tree/deep/file 0",
	}
	if !slices.Equal(got, want) || len(notes) > 0 {
		t.Errorf("got %s\nnotes %q", strings.Join(got, "\n"), notes)
	}
}

func TestFileAsMount(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "1")
	got, notes := changes(t, file, hostfiles.Bounds{}, func() { write(t, file, "22") })
	if !slices.Equal(got, []string{"modified /data 2"}) || len(notes) > 0 {
		t.Errorf("%q, %q", got, notes)
	}
}

func TestDenied(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "secret/key", "1")
	s := hostfiles.Take(t.Context(), []hostfiles.Root{{Source: dir, Target: "/data", Deny: []string{"secret"}}}, hostfiles.Bounds{})
	write(t, dir, "secret/other", "1")
	if got, notes := s.Changes(t.Context()); len(got) > 0 || len(notes) > 0 {
		t.Errorf("%v, %q", got, notes)
	}
}

func TestBounds(t *testing.T) {
	dir := t.TempDir()
	for i := range 50 {
		write(t, dir, fmt.Sprintf("file-%02d", i), "1")
	}
	got, notes := changes(t, dir, hostfiles.Bounds{Entries: 20}, func() { write(t, dir, "new", "1") })
	if len(got) > 0 || len(notes) != 1 || !strings.Contains(notes[0], "/data is not complete: there are more than 20 entries") {
		t.Errorf("cut looks claim %q, %q", got, notes)
	}
	got, notes = changes(t, dir, hostfiles.Bounds{Changes: 5}, func() {
		for i := range 30 {
			write(t, dir, fmt.Sprintf("added-%02d", i), "1")
		}
		write(t, dir, "zz.envrc", "1")
	})
	if len(got) != 5 || !strings.Contains(got[4], "zz.envrc") || len(notes) != 1 || !strings.Contains(notes[0], "31 paths changed") {
		t.Errorf("%q, %q", got, notes)
	}
}

func TestTime(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "file", "1")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := hostfiles.Take(ctx, root(dir), hostfiles.Bounds{})
	if got, notes := s.Changes(t.Context()); len(got) > 0 || len(notes) != 1 || !strings.Contains(notes[0], "too long") {
		t.Errorf("%v, %q", got, notes)
	}
}

func TestSources(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "real/file", "1")
	link := filepath.Join(dir, "link")
	must(t, os.Symlink(filepath.Join(dir, "real"), link))
	for _, source := range []string{link, filepath.Join(link, "file"), filepath.Join(dir, "missing")} {
		got, notes := changes(t, source, hostfiles.Bounds{}, func() {})
		if len(got) > 0 || len(notes) != 1 {
			t.Errorf("%s: %q, %q", source, got, notes)
		}
	}
}

func TestDeep(t *testing.T) {
	dir := t.TempDir()
	at, err := os.OpenRoot(dir)
	must(t, err)
	for range 400 { // deeper than a path can name
		must(t, at.Mkdir("dddddddddd", 0o755))
		next, err := at.OpenRoot("dddddddddd")
		must(t, err)
		must(t, at.Close())
		at = next
	}
	must(t, at.Close())
	_, notes := changes(t, dir, hostfiles.Bounds{}, func() {})
	if len(notes) != 1 || !strings.Contains(notes[0], "nested") {
		t.Errorf("%q", notes)
	}
}

// TestSwapped swaps a folder and a link to a canary while looks go on: what is
// behind the link may never be told.
func TestSwapped(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	write(t, outside, "canary", "1")
	write(t, dir, "swap/inside", "1")
	must(t, os.Symlink(outside, filepath.Join(dir, "other")))
	stop := make(chan struct{})
	var swapping sync.WaitGroup
	swapping.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, filepath.Join(dir, "swap"), unix.AT_FDCWD, filepath.Join(dir, "other"), unix.RENAME_EXCHANGE)
			}
		}
	})
	defer swapping.Wait()
	defer close(stop)
	for range 5000 {
		s := hostfiles.Take(t.Context(), root(dir), hostfiles.Bounds{})
		got, _ := s.Changes(t.Context())
		for _, c := range got {
			if strings.Contains(c.Path, "canary") {
				t.Fatalf("the look went through the link: %+v", c)
			}
		}
	}
}

// TestModel changes a tree at random and holds the findings against the
// changes that were made.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		must(t, err)
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-c]/[a-e]`), 1, 10, rapid.ID).Draw(rt, "names")
		before := map[string]bool{}
		for _, n := range names {
			if rapid.Bool().Draw(rt, "there") {
				write(t, dir, n, "old")
				before[n] = true
			}
		}
		for _, d := range []string{"a", "b", "c"} {
			must(t, os.MkdirAll(filepath.Join(dir, d), 0o755))
		}
		var want []string
		got, notes := changes(t, dir, hostfiles.Bounds{}, func() {
			for _, n := range names {
				switch {
				case rapid.Bool().Draw(rt, "untouched"):
				case !before[n]:
					write(t, dir, n, "new")
					want = append(want, "created /data/"+n+" 3")
				case rapid.Bool().Draw(rt, "removed"):
					must(t, os.Remove(filepath.Join(dir, n)))
					want = append(want, "removed /data/"+n+" 0")
				default:
					write(t, dir, n, "longer")
					want = append(want, "modified /data/"+n+" 6")
				}
			}
		})
		byPath := func(a, b string) int { return strings.Compare(strings.Fields(a)[1], strings.Fields(b)[1]) }
		slices.SortFunc(want, byPath)
		if !slices.Equal(got, want) || len(notes) > 0 {
			rt.Fatalf("got %q, want %q, notes %q", got, want, notes)
		}
	})
}
