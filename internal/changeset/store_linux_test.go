package changeset

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tranca"
)

func TestDefaultFolder(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want string
	}{
		{map[string]string{"XDG_STATE_HOME": "/x", "HOME": "/h"}, "/x/tranca/changes"},
		{map[string]string{"XDG_STATE_HOME": "x", "HOME": "/h"}, "/h/.local/state/tranca/changes"},
	} {
		got, err := DefaultFolder(func(name string) string { return c.env[name] })
		if err != nil || got != c.want {
			t.Errorf("%v: %q, %v", c.env, got, err)
		}
	}
}

func TestOpenStoreRefuses(t *testing.T) {
	base := t.TempDir()
	wide, link := filepath.Join(base, "wide"), filepath.Join(base, "link")
	if err := errors.Join(os.Mkdir(wide, 0o755), os.Symlink(base, link), os.WriteFile(filepath.Join(base, "file"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{wide, link, filepath.Join(base, "file")} {
		if s, err := OpenStore(path); !errors.Is(err, tranca.ErrUnavailable) {
			t.Errorf("%s: %v, %v", path, s, err)
		}
	}
}

func TestStore(t *testing.T) {
	w := newWorld(t, map[string]string{"a": "a"})
	w.track()
	w.make(w.upper, map[string]string{"a": "A", "b": "B"})
	w.read(Bounds{})
	list, err := w.store.List(context.Background())
	if err != nil || len(list) != 1 || list[0].ID != testID || list[0].Changes != 2 || !list[0].Applied.IsZero() {
		t.Fatalf("%v, %+v", err, list)
	}
	if _, err := w.apply(ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	if list, _ = w.store.List(context.Background()); list[0].Applied.IsZero() {
		t.Error("it does not say that it was applied")
	}
	if _, err := w.store.Begin(testID); err != nil {
		t.Errorf("a draft of the same id: %v", err)
	}
	if err := w.store.Drop(testID); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Get(testID); !errors.Is(err, tranca.ErrNotFound) {
		t.Errorf("after it was dropped: %v", err)
	}
	for _, id := range []tranca.ID{"", "..", "../x", "A", "a/b", "new-x"} {
		if _, err := w.store.Get(id); !errors.Is(err, tranca.ErrInvalid) {
			t.Errorf("%q: %v", id, err)
		}
		if d, err := w.store.Begin(id); !errors.Is(err, tranca.ErrInvalid) {
			t.Errorf("%q: %v, %v", id, d, err)
		}
	}
}

// TestStoreTidies removes what is too old, and what a dead process left, but
// nothing that is in use.
func TestStoreTidies(t *testing.T) {
	w := newWorld(t, nil)
	w.track()
	w.make(w.upper, map[string]string{"b": "B"})
	w.read(Bounds{})
	used, err := w.store.Begin("iused")
	w.must(err)
	defer used.Discard()
	dead, err := w.store.Begin("idead")
	w.must(err)
	dead.close() // as the kernel does for one that is killed
	old := time.Now().Add(-KeptFor - time.Hour)
	w.must(os.Chtimes(filepath.Join(w.store.path, string(testID)), old, old))
	d, err := w.store.Begin("inext")
	w.must(err)
	d.Discard()
	names, err := os.ReadDir(w.store.path)
	w.must(err)
	var left []string
	for _, n := range names {
		left = append(left, n.Name())
	}
	if got := strings.Join(left, " "); got != "new-iused" {
		t.Errorf("left: %s", got)
	}
}

func TestDiff(t *testing.T) {
	w := newWorld(t, map[string]string{
		"a.txt": "one\ntwo\nthree\n", "bin": "\x00", "gone": "x\n", "link": "->a.txt", "theirs": "x", "f": "f",
	})
	w.shown.Protected = func(name string) bool { return name == ".envrc" }
	w.track()
	w.make(w.upper, map[string]string{
		"a.txt": "one\n2\nthree\n", "bin": "\x01", "gone": "!", "link": "->bin", "new\nname": "n\n", ".envrc": "e\n",
		"out": "->/etc", "theirs": "mine", "f/x": "x\n", "large": strings.Repeat("x", maxText+1),
	})
	w.must(os.Chmod(filepath.Join(w.upper, "a.txt"), 0o755))
	w.read(Bounds{Bytes: 8 << 20})
	w.make(w.host, map[string]string{"theirs": "changed"})
	got := map[string]FileDiff{}
	err := w.store.Diff(context.Background(), testID, nil, func(d *FileDiff) error {
		got[strings.TrimPrefix(d.Path, "/project/")] = *d
		return nil
	})
	w.must(err)
	a := got["a.txt"]
	if a.Text != "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n" || a.Added != 1 || a.Dropped != 1 || a.Note != "mode 0755, was 0644" {
		t.Errorf("a.txt: %+v", a)
	}
	for name, want := range map[string]string{
		"bin": "binary or large, 1 bytes", "link": "symlink, to bin", "out": "symlink, to /etc",
		"f": "directory in place of a file", "large": "binary or large, 1048577 bytes", "theirs": "no lines: the host has changed it",
	} {
		if got[name].Note != want {
			t.Errorf("%s: note %q, want %q", name, got[name].Note, want)
		}
	}
	if d := got["new\nname"]; !strings.HasPrefix(d.Text, "--- /dev/null\n+++ b/\"new\\nname\"\n@@ ") {
		t.Errorf("a name with a newline: %q", d.Text)
	}
	if d := got["gone"]; !strings.Contains(d.Text, "+++ /dev/null\n") || d.Dropped != 1 {
		t.Errorf("removed: %+v", d)
	}
	if got["theirs"].Conflict == "" || got["out"].LeftOut == "" || got[".envrc"].LeftOut == "" {
		t.Errorf("what can't be applied is not said: %+v", got)
	}
}
