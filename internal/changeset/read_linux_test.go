package changeset

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/require"
)

// world is a host folder, an upper folder made by hand, and a store.
type world struct {
	t           failer
	host, upper string
	store       *Store
	tracker     *Tracker
	shown       Shown
}

// failer is what both kinds of test have.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

const testID tranca.ID = "i0k3v7q2m9x4c8b1z5n6a"

func newWorld(t *testing.T, host map[string]string) *world {
	t.Helper()
	w := newWorldAt(t, t.TempDir(), host)
	t.Cleanup(func() { w.store.Close() })
	return w
}

// newWorldAt makes a world whose store its caller closes.
func newWorldAt(t failer, base string, host map[string]string) *world {
	t.Helper()
	w := &world{t: t, host: filepath.Join(base, "host"), upper: filepath.Join(base, "upper")}
	for _, dir := range []string{w.host, w.upper} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w.make(w.host, host)
	w.shown = Shown{Source: w.host, Target: "/project"}
	var err error
	if w.store, err = OpenStore(filepath.Join(base, "state", "changes")); err != nil {
		t.Fatal(err)
	}
	return w
}

// make makes a tree. A name that ends with a slash is a folder, content that
// begins with "->" a link, "!" a whiteout, and "*" is an opaque folder.
func (w *world) make(root string, tree map[string]string) {
	w.t.Helper()
	names := make([]string, 0, len(tree))
	for name := range tree {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		at, content := filepath.Join(root, name), tree[name]
		w.must(os.MkdirAll(filepath.Dir(at), 0o755))
		switch {
		case strings.HasSuffix(name, "/"):
			w.must(os.MkdirAll(at, 0o755))
			if content == "*" {
				w.must(unix.Setxattr(at, attrOpaque, []byte("y"), 0))
			}
		case strings.HasPrefix(content, "->"):
			w.must(os.Symlink(content[2:], at))
		case content == "!":
			w.must(unix.Mknod(at, unix.S_IFCHR, 0))
		default:
			w.must(os.WriteFile(at, []byte(content), 0o644))
		}
	}
}

// copiedUp marks folders of the upper tree as an overlay does that copied them.
func (w *world) copiedUp(names ...string) {
	for _, name := range names {
		w.must(unix.Setxattr(filepath.Join(w.upper, name), attrOrigin, nil, 0))
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) track() {
	w.t.Helper()
	var err error
	w.tracker, err = Track([]Shown{w.shown})
	w.must(err)
	w.tracker.Settle()
}

// read reads the upper tree and keeps the set.
func (w *world) read(bounds Bounds) *Set {
	w.t.Helper()
	d, err := w.store.Begin(testID)
	w.must(err)
	set, err := w.tracker.Read(context.Background(), Reading{
		ID: testID, Keep: d.Contents(), Final: true, Bounds: bounds,
		Open: func(string) (*os.File, error) { return os.Open(w.upper) },
	})
	if err != nil {
		d.Discard()
		w.t.Fatal(err)
	}
	w.must(d.Commit(set))
	kept, err := w.store.Get(testID)
	w.must(err)
	if diff := cmp.Diff(set.Entries, kept.Entries, cmpopts.EquateEmpty()); diff != "" {
		w.t.Fatalf("what was kept differs from what was read:\n%s", diff)
	}
	return kept
}

// told are the entries in short.
func told(s *Set) []string {
	var all []string
	for i := range s.Entries {
		e := &s.Entries[i]
		line := string(e.Kind) + " " + e.Path
		if e.Type != "" {
			line += " " + string(e.Type)
		}
		if e.Omitted != "" {
			line += " omitted"
		}
		if e.Conflict != "" {
			line += " conflict"
		}
		if e.Protected {
			line += " protected"
		}
		all = append(all, line)
	}
	return all
}

func wantTold(t *testing.T, s *Set, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, told(s)); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

func TestRead(t *testing.T) {
	host := map[string]string{
		"same": "1", "changed": "old", "gone": "x", "dir/a": "a", "dir/b": "b", "tree/x/y": "y",
		"file": "f", "link": "->same", "untouched/z": "z",
	}
	for name, c := range map[string]struct {
		upper map[string]string
		up    []string
		want  []string
	}{
		"nothing":            {},
		"the same content":   {upper: map[string]string{"same": "1"}},
		"a folder that is":   {upper: map[string]string{"dir/": ""}, up: []string{"dir"}},
		"created":            {upper: map[string]string{"new": "n"}, want: []string{"created new file"}},
		"modified":           {upper: map[string]string{"changed": "new"}, want: []string{"modified changed file"}},
		"the same size":      {upper: map[string]string{"changed": "odl"}, want: []string{"modified changed file"}},
		"removed":            {upper: map[string]string{"gone": "!"}, want: []string{"removed gone"}},
		"removed as nothing": {upper: map[string]string{"never": "!"}},
		"removed tree": {
			upper: map[string]string{"tree": "!"},
			want:  []string{"removed tree", "removed tree/x", "removed tree/x/y"},
		},
		"in a folder": {
			upper: map[string]string{"dir/c": "c"}, up: []string{"dir"},
			want: []string{"folder dir directory", "created dir/c file"},
		},
		"opaque": {
			upper: map[string]string{"dir/": "*", "dir/b": "b2", "dir/c": "c"},
			want:  []string{"folder dir directory", "removed dir/a", "modified dir/b file", "created dir/c file"},
		},
		"opaque to the bottom": {
			upper: map[string]string{"tree/": "*", "tree/x/": ""},
			want:  []string{"folder tree directory", "folder tree/x directory", "removed tree/x/y"},
		},
		"folder to file": {
			upper: map[string]string{"dir": "now"},
			want:  []string{"replaced dir file", "removed dir/a", "removed dir/b"},
		},
		"file to folder": {
			upper: map[string]string{"file/in": "1"},
			want:  []string{"replaced file directory", "created file/in file"},
		},
		"links": {
			upper: map[string]string{"link": "->same", "to": "->dir/a", "up": "->../x", "abs": "->/etc/passwd"},
			want:  []string{"created abs symlink omitted", "created to symlink", "created up symlink omitted"},
		},
		"a link in place of a file": {upper: map[string]string{"file": "->same"}, want: []string{"replaced file symlink"}},
		"a .git that is a file": {
			upper: map[string]string{"sub/.git": "gitdir: ../evil"},
			want:  []string{"created sub directory", "created sub/.git file protected"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, host)
			w.track()
			w.make(w.upper, c.upper)
			w.copiedUp(c.up...)
			s := w.read(Bounds{})
			wantTold(t, s, c.want...)
			if why := s.Incomplete(); why != "" {
				t.Errorf("incomplete: %s", why)
			}
		})
	}
}

func TestReadHostile(t *testing.T) {
	w := newWorld(t, map[string]string{"a": "a"})
	w.track()
	names := []string{"new\nline", "esc\x1b[31m", "\xff\xfe", " ", "-rf", strings.Repeat("n", 255)}
	for _, n := range names {
		w.make(w.upper, map[string]string{n: "x"})
	}
	w.must(unix.Mkfifo(filepath.Join(w.upper, "fifo"), 0o666))
	w.must(os.WriteFile(filepath.Join(w.upper, "suid"), []byte("x"), 0o755))
	w.must(unix.Chmod(filepath.Join(w.upper, "suid"), 0o6755))
	w.must(os.Link(filepath.Join(w.upper, "suid"), filepath.Join(w.upper, "hard")))
	l, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	w.must(err)
	defer unix.Close(l)
	w.must(unix.Bind(l, &unix.SockaddrUnix{Name: filepath.Join(w.upper, "sock")}))
	huge := filepath.Join(w.upper, "huge")
	w.must(os.WriteFile(huge, nil, 0o600))
	w.must(os.Truncate(huge, 1<<40))
	s := w.read(Bounds{Bytes: 1 << 20})
	got := map[string]*Entry{}
	for i := range s.Entries {
		got[s.Entries[i].Path] = &s.Entries[i]
	}
	for _, n := range append(names, "suid", "hard") {
		if e := got[n]; e == nil || e.Omitted != "" || e.Kind != Created || e.Mode&^0o777 != 0 {
			t.Errorf("%q: %+v", n, e)
		}
	}
	for _, n := range []string{"fifo", "sock", "huge"} {
		if e := got[n]; e == nil || e.Omitted == "" {
			t.Errorf("%q is not left out: %+v", n, e)
		}
	}
}

func TestReadDevices(t *testing.T) {
	require.Root(t)
	w := newWorld(t, map[string]string{"null": "x"})
	w.track()
	w.must(unix.Mknod(filepath.Join(w.upper, "null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
	w.must(unix.Mknod(filepath.Join(w.upper, "disk"), unix.S_IFBLK|0o666, int(unix.Mkdev(1, 1))))
	wantTold(t, w.read(Bounds{}), "created disk other omitted", "replaced null other omitted")
}

// TestReadLinkOut puts links where folders would be: nothing behind them is
// looked at.
func TestReadLinkOut(t *testing.T) {
	w := newWorld(t, map[string]string{"d/x": "x"})
	w.track()
	out := filepath.Join(filepath.Dir(w.host), "outside")
	w.make(out, map[string]string{"secret": "s"})
	w.make(w.upper, map[string]string{"d": "->" + out})
	w.must(os.Rename(filepath.Join(w.host, "d"), filepath.Join(w.host, "e")))
	w.must(os.Symlink(out, filepath.Join(w.host, "d")))
	s := w.read(Bounds{})
	for _, line := range told(s) {
		if strings.Contains(line, "secret") {
			t.Errorf("something behind a link is told: %q", line)
		}
	}
}

func TestReadUnreadable(t *testing.T) {
	w := newWorld(t, nil)
	w.track()
	w.make(w.upper, map[string]string{"shut/in": "x", "file": "y"})
	w.must(os.Chmod(filepath.Join(w.upper, "shut"), 0))
	w.must(os.Chmod(filepath.Join(w.upper, "file"), 0))
	s := w.read(Bounds{})
	wantTold(t, s, "created file file", "created shut directory", "created shut/in file")
	for i := range s.Entries[:2] {
		if s.Entries[i].Mode != 0 {
			t.Errorf("%s has mode %o", s.Entries[i].Path, s.Entries[i].Mode)
		}
	}
}

func TestReadBounds(t *testing.T) {
	many := map[string]string{}
	for i := range 50 {
		many["f"+strings.Repeat("x", i)] = "1"
	}
	t.Run("entries", func(t *testing.T) {
		w := newWorld(t, nil)
		w.track()
		w.make(w.upper, many)
		if s := w.read(Bounds{Entries: 10}); s.Incomplete() == "" || len(s.Entries) > 10 {
			t.Errorf("%d entries, incomplete %q", len(s.Entries), s.Incomplete())
		}
	})
	t.Run("removed", func(t *testing.T) {
		w := newWorld(t, map[string]string{"keep": ""})
		w.make(filepath.Join(w.host, "d"), many)
		w.track()
		w.make(w.upper, map[string]string{"d": "!"})
		if s := w.read(Bounds{Entries: 10}); s.Incomplete() == "" || len(s.Entries) > 11 {
			t.Errorf("%d entries, incomplete %q", len(s.Entries), s.Incomplete())
		}
	})
	t.Run("depth", func(t *testing.T) {
		w := newWorld(t, nil)
		w.track()
		w.make(w.upper, map[string]string{strings.Repeat("d/", 300): ""})
		if s := w.read(Bounds{}); s.Incomplete() == "" {
			t.Error("a tree that is too deep is complete")
		}
	})
	t.Run("time", func(t *testing.T) {
		w := newWorld(t, nil)
		w.track()
		w.make(w.upper, many)
		if s := w.read(Bounds{Time: time.Nanosecond}); s.Incomplete() == "" {
			t.Error("without time it is complete")
		}
	})
}

func TestReadMeanwhile(t *testing.T) {
	for name, c := range map[string]struct {
		upper map[string]string
		up    []string
		host  func(w *world)
		want  string
	}{
		"changed": {
			upper: map[string]string{"a": "mine"},
			host:  func(w *world) { w.make(w.host, map[string]string{"a": "theirs"}) },
			want:  "modified a file conflict",
		},
		"changed with its time set back": {
			upper: map[string]string{"a": "mine"},
			host: func(w *world) {
				w.make(w.host, map[string]string{"a": "A"})
				w.must(os.Chtimes(filepath.Join(w.host, "a"), time.Time{}, time.Unix(1e9, 0)))
			},
			want: "modified a file conflict",
		},
		"made": {
			upper: map[string]string{"new": "mine"},
			host:  func(w *world) { w.make(w.host, map[string]string{"new": "theirs"}) },
			want:  "modified new file conflict",
		},
		"removed": {
			upper: map[string]string{"a": "mine"}, up: []string{"a"},
			host: func(w *world) { w.must(os.Remove(filepath.Join(w.host, "a"))) },
			want: "created a file conflict",
		},
		"changed what was removed": {
			upper: map[string]string{"a": "!"},
			host:  func(w *world) { w.make(w.host, map[string]string{"a": "theirs"}) },
			want:  "removed a conflict",
		},
		"folder made": {
			upper: map[string]string{"new/": ""},
			host:  func(w *world) { w.make(w.host, map[string]string{"new/": ""}) },
			want:  "folder new directory conflict",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, map[string]string{"a": "a"})
			w.track()
			w.make(w.upper, c.upper)
			w.copiedUp(c.up...)
			c.host(w)
			wantTold(t, w.read(Bounds{}), c.want)
		})
	}
}

func TestReadSourceSwapped(t *testing.T) {
	for name, swap := range map[string]func(w *world){
		"another folder": func(w *world) {
			w.must(os.Rename(w.host, w.host+".old"))
			w.must(os.Mkdir(w.host, 0o755))
		},
		"a link": func(w *world) {
			w.must(os.Rename(w.host, w.host+".old"))
			w.must(os.Symlink(w.host+".old", w.host))
		},
		"gone": func(w *world) { w.must(os.RemoveAll(w.host)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, map[string]string{"a": "a"})
			w.track()
			w.make(w.upper, map[string]string{"b": "b"})
			swap(w)
			s := w.read(Bounds{})
			if s.Incomplete() == "" || len(s.Entries) > 0 {
				t.Errorf("incomplete %q, entries %v", s.Incomplete(), told(s))
			}
		})
	}
}

func TestDenied(t *testing.T) {
	w := newWorld(t, map[string]string{"d/secret": "s", "d/x": "x"})
	w.shown.Deny = []string{"d/secret"}
	w.track()
	w.make(w.upper, map[string]string{"d": "!"})
	wantTold(t, w.read(Bounds{}), "removed d", "removed d/secret omitted", "removed d/x")
}

// TestReadSetID takes a set-id program of the host for one that the host runs.
func TestReadSetID(t *testing.T) {
	w := newWorld(t, map[string]string{"tool": "t"})
	w.must(unix.Chmod(filepath.Join(w.host, "tool"), 0o4755))
	w.track()
	w.make(w.upper, map[string]string{"tool": "evil"})
	wantTold(t, w.read(Bounds{}), "modified tool file protected")
}

// TestReadDescriptors leaves none open.
func TestReadDescriptors(t *testing.T) {
	count := func() int {
		names, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	w := newWorld(t, map[string]string{"d/x": "x", "e/f/g": "g"})
	w.track()
	w.make(w.upper, map[string]string{"d": "!", "e/": "*", "n/m": "1"})
	before := count()
	w.read(Bounds{})
	if now := count(); now != before {
		t.Errorf("%d descriptors before, %d after", before, now)
	}
}
