package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tranca"
	"tranca/internal/guest/agent"
	"tranca/internal/guest/message"
)

// watched is a folder that is changed and watched by a test.
type watched struct {
	testing.TB
	dir string
	tranca.Watch
}

func watchDir(t testing.TB, f tranca.Files, dir string, recursive bool) *watched {
	t.Helper()
	w, ok := tranca.As[tranca.FileWatcher](f)
	if !ok {
		t.Fatal("no watch of folders")
	}
	watch, err := w.Watch(within(t), dir, recursive)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		watch.Close()
		// What was under way has been read when the answer to this comes. A
		// sandbox that is closed before that ends with an error of the socket.
		_, _ = f.Stat(context.Background(), "/")
	})
	return &watched{t, dir, watch}
}

func (w *watched) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *watched) at(name string) string { return filepath.Join(w.dir, name) }

func (w *watched) mkdir(name string)  { w.Helper(); w.ok(os.MkdirAll(w.at(name), 0o777)) }
func (w *watched) mv(from, to string) { w.Helper(); w.ok(os.Rename(w.at(from), w.at(to))) }
func (w *watched) write(name, text string) {
	w.Helper()
	w.ok(os.WriteFile(w.at(name), []byte(text), 0o666))
}

// until returns the events up to one that is told as kind and path.
func (w *watched) until(last string) []string {
	w.Helper()
	var got []string
	ctx := within(w)
	for {
		e, err := w.Next(ctx)
		if err != nil {
			w.Fatalf("waiting for %q after %q: %v", last, got[max(0, len(got)-20):], err)
		}
		text := strings.TrimSpace(string(e.Kind) + " " + e.Path)
		if got = append(got, text); text == last {
			return got
		}
	}
}

func (w *watched) expect(want ...string) {
	w.Helper()
	got := w.until(want[len(want)-1])
	if !slices.Equal(got, want) {
		w.Errorf("got %q, want %q", got, want)
	}
}

// has looks whether events came in this order, with others between.
func has(got []string, want ...string) bool {
	for _, g := range got {
		if len(want) > 0 && g == want[0] {
			want = want[1:]
		}
	}
	return len(want) == 0
}

func TestWatchKinds(t *testing.T) {
	for _, recursive := range []bool{false, true} {
		t.Run(fmt.Sprint(recursive), func(t *testing.T) {
			sb, _, cfg := newSandbox(t, nil)
			w := watchDir(t, sb.Files(), cfg.Workdir, recursive)
			w.write("new\nline\xff", "")
			w.expect("created new\nline\xff")
			w.write("f", "x")
			w.expect("created f", "written f")
			w.ok(os.Chmod(w.at("f"), 0o600))
			w.expect("chmod f")
			w.mv("f", "g")
			w.expect("renamed f", "created g")
			w.ok(os.Symlink("g", w.at("link")))
			w.expect("created link")
			w.mkdir("d")
			w.expect("created d")
			w.ok(os.Remove(w.at("d")))
			w.expect("removed d")
			w.ok(os.Remove(w.at("g")))
			w.until("removed g") // of a file that is open nowhere, its count of links changes too
			w.ok(w.Close())
			if _, err := w.Next(within(t)); !errors.Is(err, tranca.ErrClosed) {
				t.Errorf("after close: %v", err)
			}
		})
	}
}

func TestWatchIsNotRecursiveUnlessAsked(t *testing.T) {
	sb, _, cfg := newSandbox(t, nil)
	if err := os.Mkdir(filepath.Join(cfg.Workdir, "d"), 0o777); err != nil {
		t.Fatal(err)
	}
	w := watchDir(t, sb.Files(), ".", false)
	w.dir = cfg.Workdir
	w.write("d/deep", "x")
	w.mkdir("e/f/g")
	w.write("end", "")
	w.expect("created e", "created end")
}

// Folders that appear later are watched too, and what is in them by then is
// told.
func TestWatchTree(t *testing.T) {
	sb, _, cfg := newSandbox(t, nil)
	if err := os.MkdirAll(filepath.Join(cfg.Workdir, "a/b"), 0o777); err != nil {
		t.Fatal(err)
	}
	w := watchDir(t, sb.Files(), cfg.Workdir, true)
	w.write("a/b/f", "x")
	w.expect("created a/b/f", "written a/b/f")
	w.mkdir("n/e/w")
	w.write("n/e/w/1", "")
	w.until("created n/e/w/1")
	w.write("n/e/w/2", "")
	w.until("created n/e/w/2")

	// A whole tree that comes from elsewhere at once.
	outside := t.TempDir()
	w.ok(os.MkdirAll(filepath.Join(outside, "t/u"), 0o777))
	w.ok(os.WriteFile(filepath.Join(outside, "t/u/old"), nil, 0o666))
	w.ok(os.Rename(filepath.Join(outside, "t"), w.at("t")))
	if got := w.until("created t/u/old"); !has(got, "created t", "created t/u", "created t/u/old") {
		t.Errorf("%q", got)
	}
	// One that goes away is no more watched.
	w.ok(os.Rename(w.at("t"), filepath.Join(outside, "t")))
	w.until("renamed t")
	w.ok(os.WriteFile(filepath.Join(outside, "t/u/unseen"), nil, 0o666))
	w.write("end", "")
	w.expect("created end")
}

func TestWatchFollowsRenames(t *testing.T) {
	sb, _, cfg := newSandbox(t, nil)
	for _, dir := range []string{"a/b/c", "x"} {
		if err := os.MkdirAll(filepath.Join(cfg.Workdir, dir), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	w := watchDir(t, sb.Files(), cfg.Workdir, true)
	w.mv("a", "z")
	w.expect("renamed a", "created z")
	w.write("z/b/c/1", "")
	w.expect("created z/b/c/1")
	w.mv("z/b", "x/y")
	w.expect("renamed z/b", "created x/y")
	w.mkdir("x/y/c/d")
	w.expect("created x/y/c/d")
	w.write("x/y/c/d/2", "")
	w.until("created x/y/c/d/2")
	// Another folder under a name that was used before.
	w.mkdir("a/b")
	w.until("created a/b")
	w.write("a/b/3", "")
	w.until("created a/b/3")
	w.write("x/y/c/4", "")
	w.until("created x/y/c/4") // what was made in a new folder can be told twice
}

func TestWatchErrors(t *testing.T) {
	sb, _, cfg := newSandbox(t, nil)
	at := func(name string) string { return filepath.Join(cfg.Workdir, name) }
	if err := errors.Join(os.WriteFile(at("file"), nil, 0o666), os.Mkdir(at("dir"), 0o777), os.Symlink("dir", at("link"))); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path string
		want error
	}{
		{"none", tranca.ErrNotFound}, {"file", tranca.ErrInvalid}, {"link", tranca.ErrInvalid},
		{"link/", tranca.ErrInvalid}, {"", tranca.ErrInvalid}, {"a\x00b", tranca.ErrInvalid},
		{strings.Repeat("x", 300), tranca.ErrInvalid}, {strings.Repeat("x/", 3000), tranca.ErrInvalid},
		{"/proc", tranca.ErrRefused}, {"/proc/self/fd", tranca.ErrRefused},
	} {
		w, err := files{sb}.Watch(within(t), tt.path, true)
		if !errors.Is(err, tt.want) {
			t.Errorf("%.20q: %v, want %v", tt.path, err, tt.want)
		}
		if err == nil {
			w.Close()
		}
	}
	if err := sb.Ping(within(t)); err != nil {
		t.Error(err)
	}
}

func TestWatchOfWhatGoes(t *testing.T) {
	for name, away := range map[string]func(t *testing.T, dir string) error{
		"removed":  func(_ *testing.T, dir string) error { return os.Remove(dir) },
		"renamed":  func(_ *testing.T, dir string) error { return os.Rename(dir, dir+".old") },
		"replaced": func(_ *testing.T, dir string) error { return errors.Join(os.Remove(dir), os.Mkdir(dir, 0o777)) },
		"ancestor": func(_ *testing.T, dir string) error { return os.Rename(filepath.Dir(dir), filepath.Dir(dir)+".old") },
		"held": func(t *testing.T, dir string) error {
			f, err := os.Open(dir)
			t.Cleanup(func() { f.Close() })
			return errors.Join(err, os.Remove(dir))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // two of them wait for the agent to look
			sb, _, cfg := newSandbox(t, nil)
			dir := filepath.Join(cfg.Workdir, "p/d")
			if err := os.MkdirAll(dir, 0o777); err != nil {
				t.Fatal(err)
			}
			w := watchDir(t, sb.Files(), dir, true)
			w.write("f", "")
			w.ok(os.Remove(w.at("f")))
			w.ok(away(t, dir))
			w.until("removed f")
			for {
				_, err := w.Next(within(t))
				if errors.Is(err, tranca.ErrGone) {
					break
				}
				if err != nil {
					t.Fatalf("got %v", err)
				}
			}
			if err := sb.Ping(within(t)); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

func TestWatchEnds(t *testing.T) {
	sb, _, cfg := newSandbox(t, nil)
	w := watchDir(t, sb.Files(), cfg.Workdir, true)
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := w.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	// It goes on afterwards.
	w.write("f", "")
	w.expect("created f")
	time.AfterFunc(20*time.Millisecond, func() { w.Close() })
	if _, err := w.Next(within(t)); !errors.Is(err, tranca.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	w = watchDir(t, sb.Files(), cfg.Workdir, true)
	time.AfterFunc(20*time.Millisecond, func() { sb.Close(context.Background()) })
	if _, err := w.Next(within(t)); !errors.Is(err, tranca.ErrClosed) {
		t.Errorf("of a closed sandbox: %v", err)
	}
}

func TestWatchNeedsFiles(t *testing.T) {
	sb, _, _ := newSandbox(t, func(cfg *agent.Config) { cfg.Files = false })
	if _, err := (files{sb}).Watch(within(t), ".", false); !errors.Is(err, tranca.ErrUnsupported) {
		t.Errorf("got %v", err)
	}
}

// badWatches are what a hostile guest tells on stream 1.
var badWatches = map[string][]message.WatchDirResponse{
	"no start":        {{Keepalive: true}},
	"an event first":  {{Filesystem: &message.FilesystemEvent{Name: "a", Type: message.EventCreate}}},
	"an overflow":     {{Overflow: true}},
	"two starts":      {{Start: true}, {Start: true}},
	"no kind":         {{Start: true}, {Filesystem: &message.FilesystemEvent{Name: "a"}}},
	"another kind":    {{Start: true}, {Filesystem: &message.FilesystemEvent{Name: "a", Type: 6}}},
	"no name":         {{Start: true}, {Filesystem: &message.FilesystemEvent{Type: message.EventCreate}}},
	"an absolute one": {{Start: true}, {Filesystem: &message.FilesystemEvent{Name: "/etc", Type: message.EventCreate}}},
	"the parent":      {{Start: true}, {Filesystem: &message.FilesystemEvent{Name: "..", Type: message.EventCreate}}},
	"up on the way":   {{Start: true}, {Filesystem: &message.FilesystemEvent{Name: "a/../b", Type: message.EventCreate}}},
	"itself":          {{Start: true}, {Filesystem: &message.FilesystemEvent{Name: "./a", Type: message.EventCreate}}},
	"an empty part":   {{Start: true}, {Filesystem: &message.FilesystemEvent{Name: "a//b", Type: message.EventCreate}}},
	"a slash at last": {{Start: true}, {Filesystem: &message.FilesystemEvent{Name: "a/", Type: message.EventCreate}}},
	"a NUL":           {{Start: true}, {Filesystem: &message.FilesystemEvent{Name: "a\x00b", Type: message.EventCreate}}},
	"a long name":     {{Start: true}, {Filesystem: &message.FilesystemEvent{Name: strings.Repeat("n", 256), Type: message.EventCreate}}},
	"just an end":     {{Start: true}},
}

func TestWatchOfAHostileGuest(t *testing.T) {
	for name, said := range badWatches {
		t.Run(name, func(t *testing.T) {
			ours, theirs := socketPair(t)
			m := &fakeMachine{stream: ours, limit: make(chan tranca.Reason, 1)}
			sb := open(t, m)
			g := newGuest(t, theirs)
			frames := []string{hello}
			for i := range said {
				frames = append(frames, msg(1, string(said[i].Append(nil))))
			}
			go func() { <-g.opened; g.write(append(frames, end(1))...) }()
			w, err := files{sb}.Watch(within(t), "/x", true)
			if err == nil {
				_, err = w.Next(within(t))
			}
			if !errors.Is(err, tranca.ErrProtocol) {
				t.Errorf("got %v", err)
			}
			g.close()
			if err := sb.Close(within(t)); err != nil {
				t.Error(err)
			}
		})
	}
}

// FuzzWatch plays hostile bytes to a watch: what comes through is a path below
// the folder, or an error of a class.
func FuzzWatch(f *testing.F) {
	for _, said := range badWatches {
		frames := hello
		for i := range said {
			frames += msg(1, string(said[i].Append(nil)))
		}
		f.Add([]byte(frames))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m := &fakeMachine{stream: &script{rest: b, asked: make(chan struct{})}, limit: make(chan tranca.Reason, 1)}
		sb := open(t, m)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		w, err := files{sb}.Watch(ctx, "/x", true)
		classified(t, "watch", err)
		for err == nil {
			var e tranca.FileEvent
			e, err = w.Next(ctx)
			classified(t, "next", err)
			if err == nil && (e.Path == "") != (e.Kind == tranca.FileOverflow) || !filepath.IsLocal(e.Path) && e.Path != "" {
				t.Fatalf("got %+v", e)
			}
		}
		if ctx.Err() != nil {
			t.Fatal("a call hung")
		}
		if err := sb.Close(ctx); err != nil {
			t.Fatal(err)
		}
	})
}
