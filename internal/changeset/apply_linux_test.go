package changeset

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/require"
)

// tree returns what a folder holds: type, permission and content of each path.
func tree(t failer, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(at string, d fs.DirEntry, err error) error {
		if err != nil || at == root {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, at)
		switch {
		case d.IsDir():
			all[rel+"/"] = info.Mode().String()
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(at)
			all[rel] = "->" + target
			return err
		case info.Mode().IsRegular():
			b, err := os.ReadFile(at)
			all[rel] = info.Mode().String() + " " + string(b)
			return err
		default:
			all[rel] = info.Mode().String()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// apply applies the set that is kept.
func (w *world) apply(opts ApplyOptions) (*Report, error) {
	w.t.Helper()
	return w.store.Apply(context.Background(), testID, opts)
}

func outcomes(r *Report) map[string]Outcome {
	all := map[string]Outcome{}
	if r != nil {
		for _, s := range r.Steps {
			all[strings.TrimPrefix(s.Path, "/project/")] = s.Outcome
		}
	}
	return all
}

func TestApply(t *testing.T) {
	const file, folder = "-rw-r--r-- ", "drwxr-xr-x"
	for name, c := range map[string]struct {
		host, upper map[string]string
		up          []string
		want        map[string]string
	}{
		"files": {
			host:  map[string]string{"a": "old", "gone": "x", "same": "s"},
			upper: map[string]string{"a": "new", "b": "made", "gone": "!"},
			want:  map[string]string{"a": file + "new", "b": file + "made", "same": file + "s"},
		},
		"folders": {
			host:  map[string]string{"d/x": "x", "e/y": "y", "e/f/z": "z"},
			upper: map[string]string{"d/n/m": "m", "e": "!"}, up: []string{"d"},
			want: map[string]string{"d/": folder, "d/x": file + "x", "d/n/": folder, "d/n/m": file + "m"},
		},
		"folder to file": {
			host:  map[string]string{"d/x/y": "y", "d/z": "z"},
			upper: map[string]string{"d": "now a file"},
			want:  map[string]string{"d": file + "now a file"},
		},
		"folder to link": {
			host:  map[string]string{"d/x": "y", "t": "t"},
			upper: map[string]string{"d": "->t"},
			want:  map[string]string{"d": "->t", "t": file + "t"},
		},
		"file to folder": {
			host:  map[string]string{"f": "f"},
			upper: map[string]string{"f/in/side": "1"},
			want:  map[string]string{"f/": folder, "f/in/": folder, "f/in/side": file + "1"},
		},
		"link to file and back": {
			host:  map[string]string{"l": "->f", "f": "f"},
			upper: map[string]string{"l": "file", "f": "->l"},
			want:  map[string]string{"l": file + "file", "f": "->l"},
		},
		"opaque": {
			host:  map[string]string{"d/x": "x", "d/y": "y"},
			upper: map[string]string{"d/": "*", "d/y": "Y"},
			want:  map[string]string{"d/": folder, "d/y": file + "Y"},
		},
		"names": {
			host:  map[string]string{"k": "k"},
			upper: map[string]string{"a\nb": "1", "\xff": "2", "-rf": "3", "a-b": "4", "a/b": "5"},
			want: map[string]string{"k": file + "k", "a\nb": file + "1", "\xff": file + "2", "-rf": file + "3",
				"a-b": file + "4", "a/": folder, "a/b": file + "5"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.host)
			w.track()
			w.make(w.upper, c.upper)
			w.copiedUp(c.up...)
			w.read(Bounds{})
			before := tree(t, w.host)
			if _, err := w.apply(ApplyOptions{DryRun: true}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, tree(t, w.host)); diff != "" {
				t.Fatalf("a dry run changed the host:\n%s", diff)
			}
			r, err := w.apply(ApplyOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, tree(t, w.host)); diff != "" {
				t.Errorf("the host (-want +got):\n%s", diff)
			}
			if n := r.Count(Written); n != len(r.Steps) {
				t.Errorf("%d of %d written: %+v", n, len(r.Steps), r.Steps)
			}
			again, err := w.apply(ApplyOptions{})
			if err != nil || again.Count(Already) != len(r.Steps) {
				t.Errorf("the second time: %v, %+v", err, again)
			}
		})
	}
}

// TestApplyRefuses changes the host between reading and applying: nothing is
// written then, of no path.
func TestApplyRefuses(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"changed":            func(w *world) { w.make(w.host, map[string]string{"a": "theirs"}) },
		"touched":            func(w *world) { w.must(os.Chmod(filepath.Join(w.host, "a"), 0o600)) },
		"another inode":      func(w *world) { w.replace("a", "a") },
		"removed":            func(w *world) { w.must(os.Remove(filepath.Join(w.host, "a"))) },
		"made":               func(w *world) { w.make(w.host, map[string]string{"new": "theirs"}) },
		"a link":             func(w *world) { w.toLink("a", "b") },
		"a link out":         func(w *world) { w.toLink("a", "/etc/passwd") },
		"folder a link":      func(w *world) { w.toLink("d", "e") },
		"folder gone":        func(w *world) { w.must(os.RemoveAll(filepath.Join(w.host, "d"))) },
		"folder another":     func(w *world) { w.folderAgain("d") },
		"folder a file":      func(w *world) { w.folderAgain("d"); w.replaceFolder("d") },
		"put into a folder":  func(w *world) { w.make(w.host, map[string]string{"rm/more": "1"}) },
		"source gone":        func(w *world) { w.must(os.RemoveAll(w.host)) },
		"source a link":      func(w *world) { w.must(os.Rename(w.host, w.host+"2")); w.must(os.Symlink(w.host+"2", w.host)) },
		"source another":     func(w *world) { w.must(os.Rename(w.host, w.host+"2")); w.must(os.Mkdir(w.host, 0o755)) },
		"above a link":       func(w *world) { w.aboveLink() },
		"removed one edited": func(w *world) { w.make(w.host, map[string]string{"rm/x": "edited"}) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, map[string]string{"a": "a", "b": "b", "d/x": "x", "e/x": "x", "rm/x": "x"})
			w.track()
			w.make(w.upper, map[string]string{"a": "mine", "aa": "new", "new": "new", "d/x": "mine", "rm": "!"})
			w.copiedUp("d")
			w.read(Bounds{})
			change(w)
			before := tree(t, filepath.Dir(w.host))
			r, err := w.apply(ApplyOptions{})
			if !errors.Is(err, tranca.ErrRefused) {
				t.Errorf("error %v", err)
			}
			if r != nil && r.Count(Written) > 0 {
				t.Errorf("written: %+v", r.Steps)
			}
			after := tree(t, filepath.Dir(w.host))
			dropState(before)
			dropState(after)
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("the host was changed:\n%s", diff)
			}
		})
	}
}

// dropState forgets the store's own files.
func dropState(all map[string]string) {
	for name := range all {
		if strings.HasPrefix(name, "state/") {
			delete(all, name)
		}
	}
}

func (w *world) replace(name, content string) {
	other := filepath.Join(w.host, "other")
	w.make(w.host, map[string]string{"other": content})
	w.must(os.Rename(other, filepath.Join(w.host, name)))
}

func (w *world) toLink(name, target string) {
	w.must(os.RemoveAll(filepath.Join(w.host, name)))
	w.must(os.Symlink(target, filepath.Join(w.host, name)))
}

func (w *world) folderAgain(name string) {
	at := filepath.Join(w.host, name)
	w.must(os.Rename(at, at+"2"))
	w.make(at, map[string]string{"x": "x"})
}

func (w *world) replaceFolder(name string) {
	w.must(os.RemoveAll(filepath.Join(w.host, name)))
	w.make(w.host, map[string]string{name: "file"})
}

// cleanup is testing.T's, which tests of properties don't have.
func (w *world) cleanup(f func()) { w.t.(*testing.T).Cleanup(f) }

// aboveLink makes the folder above the source a link to where it was.
func (w *world) aboveLink() {
	above := filepath.Dir(w.host)
	w.cleanup(func() { _ = os.Remove(above); _ = os.Rename(above+"2", above) })
	w.must(os.Rename(above, above+"2"))
	w.must(os.Symlink(above+"2", above))
}

func TestApplyLeavesOut(t *testing.T) {
	w := newWorld(t, map[string]string{"a": "a", ".git/hooks/old": "o", "d/.envrc": "e", "d/x": "x", "d/s/t": "t"})
	w.shown.Protected = func(name string) bool {
		return strings.HasPrefix(name, ".git/hooks") || filepath.Base(name) == ".envrc" || strings.HasPrefix(name, ".vscode")
	}
	w.track()
	w.make(w.upper, map[string]string{
		"a": "new", ".git/hooks/pre-commit": "evil", ".vscode/tasks.json": "evil", "out": "->../../etc",
		"d": "!", "up/er": "->../a", "sub/.git": "gitdir: x",
	})
	w.copiedUp(".git", ".git/hooks")
	w.must(unix.Mkfifo(filepath.Join(w.upper, "fifo"), 0o600))
	w.read(Bounds{})
	r, err := w.apply(ApplyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Outcome{
		"a": Written, ".git/hooks/pre-commit": LeftOut, ".vscode": LeftOut, ".vscode/tasks.json": LeftOut,
		"out": LeftOut, "fifo": LeftOut, "d": LeftOut, "d/.envrc": LeftOut, "d/x": Written, "d/s": Written,
		"d/s/t": Written, "up": Written, "up/er": Written, "sub": Written, "sub/.git": LeftOut,
	}
	if diff := cmp.Diff(want, outcomes(r)); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	have := tree(t, w.host)
	for _, name := range []string{".git/hooks/pre-commit", ".vscode/", "out", "fifo", "sub/.git"} {
		if _, there := have[name]; there {
			t.Errorf("%s was written", name)
		}
	}
	if have["d/.envrc"] == "" || have["d/x"] != "" {
		t.Errorf("the host has %v", have)
	}
	// Named, it is written.
	r, err = w.apply(ApplyOptions{IncludeProtected: []string{"/project/.vscode/tasks.json", ".git/hooks", "d"}})
	if err != nil {
		t.Fatal(err)
	}
	have = tree(t, w.host)
	if have[".vscode/tasks.json"] == "" || have[".git/hooks/pre-commit"] == "" || have["d/"] != "" {
		t.Errorf("after they were named: %+v\n%v", r.Steps, have)
	}
	if have["sub/.git"] != "" || have["out"] != "" {
		t.Errorf("what was not named was written: %v", have)
	}
}

func TestApplyOnly(t *testing.T) {
	w := newWorld(t, map[string]string{"a": "a", "b": "b"})
	w.track()
	w.make(w.upper, map[string]string{"a": "A", "b": "B", "n/m/o": "1", "n/p": "2"})
	w.read(Bounds{})
	w.make(w.host, map[string]string{"b": "theirs"}) // not asked for, so in nobody's way
	if _, err := w.apply(ApplyOptions{Only: []string{"/project/a", "n/m"}}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a": "-rw-r--r-- A", "b": "-rw-r--r-- theirs", "n/": "drwxr-xr-x", "n/m/": "drwxr-xr-x", "n/m/o": "-rw-r--r-- 1"}
	if diff := cmp.Diff(want, tree(t, w.host)); diff != "" {
		t.Errorf("the host (-want +got):\n%s", diff)
	}
	if _, err := w.apply(ApplyOptions{Only: []string{"nothing"}}); !errors.Is(err, tranca.ErrNotFound) {
		t.Errorf("a path that did not change: %v", err)
	}
}

func TestApplyModes(t *testing.T) {
	w := newWorld(t, map[string]string{"run": "x", "d/x": "x", "shut/x": "x"})
	w.track()
	w.make(w.upper, map[string]string{"run": "x", "d/n": "n", "shut/y": "y", "made/in": "1", "evil": "e"})
	w.copiedUp("d", "shut")
	for name, mode := range map[string]uint32{"run": 0o755, "d": 0o700, "shut": 0o555, "made": 0o555, "evil": 0o6777} {
		w.must(unix.Chmod(filepath.Join(w.upper, name), mode))
	}
	w.read(Bounds{})
	if _, err := w.apply(ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	got := tree(t, w.host)
	t.Cleanup(func() { // so that the test's folder can be removed
		for _, name := range []string{"shut", "made"} {
			w.must(errors.Join(os.Chmod(filepath.Join(w.host, name), 0o755), os.Chmod(filepath.Join(w.upper, name), 0o755)))
		}
	})
	want := map[string]string{
		"run": "-rwxr-xr-x x", "d/": "drwx------", "d/x": "-rw-r--r-- x", "d/n": "-rw-r--r-- n",
		"shut/": "dr-xr-xr-x", "shut/x": "-rw-r--r-- x", "shut/y": "-rw-r--r-- y",
		"made/": "dr-xr-xr-x", "made/in": "-rw-r--r-- 1", "evil": "-rwxrwxrwx e",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the host (-want +got):\n%s", diff)
	}
}

// TestApplyOwner gives what root writes to who owns what was there, or the
// folder.
func TestApplyOwner(t *testing.T) {
	require.Root(t)
	w := newWorld(t, map[string]string{"a": "a", "d/x": "x"})
	w.must(os.Chown(w.host, 1234, 1235))
	w.must(os.Chown(filepath.Join(w.host, "a"), 4321, 4322))
	w.must(unix.Setxattr(filepath.Join(w.host, "a"), "user.note", []byte("kept"), 0))
	w.must(unix.Setxattr(filepath.Join(w.host, "a"), "security.capability", append([]byte{0, 0, 0, 2}, make([]byte, 16)...), 0))
	w.track()
	w.make(w.upper, map[string]string{"a": "A", "n/f": "f", "l": "->a"})
	w.read(Bounds{})
	if _, err := w.apply(ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][2]uint32{"a": {4321, 4322}, "n": {1234, 1235}, "n/f": {1234, 1235}, "l": {1234, 1235}} {
		var st unix.Stat_t
		w.must(unix.Lstat(filepath.Join(w.host, name), &st))
		if st.Uid != want[0] || st.Gid != want[1] {
			t.Errorf("%s belongs to %d:%d, want %v", name, st.Uid, st.Gid, want)
		}
	}
	var buf [64]byte
	if n, err := unix.Getxattr(filepath.Join(w.host, "a"), "user.note", buf[:]); err != nil || string(buf[:n]) != "kept" {
		t.Errorf("its attribute: %q, %v", buf[:n], err)
	}
	if _, err := unix.Getxattr(filepath.Join(w.host, "a"), "security.capability", buf[:]); err == nil {
		t.Error("what code wrote has the capabilities of what was there")
	}
}

// TestApplyBreaksOff lets writing fail half way. The report says what is there,
// and applying again goes on.
func TestApplyBreaksOff(t *testing.T) {
	w := newWorld(t, map[string]string{"a": "a", "b": "b"})
	w.track()
	w.make(w.upper, map[string]string{"a": "A", "b": "B", "c": "C"})
	set := w.read(Bounds{})
	// What is kept of b is damaged.
	contents := filepath.Join(w.store.path, string(testID), contentsName)
	whole, err := os.ReadFile(contents)
	w.must(err)
	damaged := slices.Clone(whole)
	i := slices.IndexFunc(set.Entries, func(e Entry) bool { return e.Path == "b" })
	damaged[set.Entries[i].Offset] = 'X'
	w.must(os.WriteFile(contents, damaged, 0o600))
	r, err := w.apply(ApplyOptions{})
	if err == nil {
		t.Fatal("damaged content was applied")
	}
	if diff := cmp.Diff(map[string]Outcome{"a": Written, "b": NotWritten, "c": NotWritten}, outcomes(r)); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	want := map[string]string{"a": "-rw-r--r-- A", "b": "-rw-r--r-- b"}
	if diff := cmp.Diff(want, tree(t, w.host)); diff != "" {
		t.Errorf("the host (-want +got):\n%s", diff)
	}
	w.must(os.WriteFile(contents, whole, 0o600))
	r, err = w.apply(ApplyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]Outcome{"a": Already, "b": Written, "c": Written}, outcomes(r)); diff != "" {
		t.Errorf("outcomes of the second (-want +got):\n%s", diff)
	}
}

// TestApplyIncomplete does not apply a part as if it were the whole.
func TestApplyIncomplete(t *testing.T) {
	w := newWorld(t, nil)
	w.track()
	w.make(w.upper, map[string]string{"a": "1", "b": "2", "c": "3"})
	w.read(Bounds{Entries: 2})
	if _, err := w.apply(ApplyOptions{}); !errors.Is(err, tranca.ErrRefused) {
		t.Errorf("error %v", err)
	}
	if got := tree(t, w.host); len(got) > 0 {
		t.Errorf("the host has %v", got)
	}
}

func TestApplyTwiceAtOnce(t *testing.T) {
	w := newWorld(t, nil)
	w.track()
	w.make(w.upper, map[string]string{"a": "1"})
	w.read(Bounds{})
	lock, err := w.store.lock(string(testID))
	w.must(err)
	defer lock.Close()
	if _, err := w.apply(ApplyOptions{}); !errors.Is(err, tranca.ErrBusy) {
		t.Errorf("error %v", err)
	}
	if err := w.store.Drop(testID); !errors.Is(err, tranca.ErrBusy) {
		t.Errorf("drop: %v", err)
	}
}
