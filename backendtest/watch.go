package backendtest

import (
	"context"
	"errors"
	"strings"
	"time"

	"tranca"
)

// watchCases try the watch of folders, which a backend need not have: one whose
// files have no [tranca.FileWatcher] passes them.
func watchCases() []testCase {
	return []testCase{
		{"Watch/Code", testWatchCode, nil},
		{"Watch/Tree", testWatchTree, nil},
		{"Watch/Gone", testWatchGone, nil},
		{"Watch/Refused", testWatchRefused, nil},
		{"Watch/Slow", testWatchSlow, nil},
	}
}

// watched is a folder that is watched in a sandbox.
type watched struct {
	*box
	tranca.Watch
}

// watch watches a folder; nil where the backend can't.
func (b *box) watch(path string, recursive bool) *watched {
	b.Helper()
	w, ok := tranca.As[tranca.FileWatcher](b.Files())
	if !ok {
		b.Logf("this backend watches no folders")
		return nil
	}
	watch, err := w.Watch(b.context(), path, recursive)
	if err != nil {
		b.Fatalf("watch %s: %v", path, err)
	}
	b.Cleanup(func() { watch.Close() })
	return &watched{b, watch}
}

// until returns the events before one, each as "kind path".
func (w *watched) until(last string) (before []string) {
	w.Helper()
	ctx := w.context()
	for {
		e, err := w.Next(ctx)
		if err != nil {
			w.Fatalf("waiting for %q behind %q: %v", last, before, err)
		}
		text := strings.TrimSpace(string(e.Kind) + " " + e.Path)
		if text == last {
			return before
		}
		before = append(before, text)
	}
}

// testWatchCode tells of what the code does, and of what is done for the owner.
func testWatchCode(s *suite) {
	b := s.create()
	w := b.watch(".", false)
	if w == nil {
		return
	}
	b.must("write", "by-code", "text")
	w.until("created by-code")
	w.until("written by-code")
	b.write("by-owner", "text")
	w.until("created by-owner")
	if _, err := b.Files().Move(s.context(), "by-code", "moved"); err != nil {
		s.Fatal(err)
	}
	w.until("renamed by-code")
	w.until("created moved")
	if err := b.Files().Remove(s.context(), "moved"); err != nil {
		s.Fatal(err)
	}
	w.until("removed moved")
	if err := w.Watch.Close(); err != nil {
		s.Error(err)
	}
	_, err := w.Next(s.context())
	s.class("next after close", err, tranca.ErrClosed)
}

func testWatchTree(s *suite) {
	b := s.create()
	if _, err := b.Files().MakeDir(s.context(), "tree/a"); err != nil {
		s.Fatal(err)
	}
	w := b.watch("tree", true)
	if w == nil {
		return
	}
	b.must("write", "tree/a/1", "")
	w.until("created a/1")
	if _, err := b.Files().MakeDir(s.context(), "tree/later/deep"); err != nil {
		s.Fatal(err)
	}
	w.until("created later/deep")
	b.must("write", "tree/later/deep/2", "")
	w.until("created later/deep/2")
	if _, err := b.Files().Move(s.context(), "tree/later", "tree/a/now"); err != nil {
		s.Fatal(err)
	}
	w.until("renamed later")
	w.until("created a/now")
	b.must("write", "tree/a/now/deep/3", "")
	w.until("created a/now/deep/3")
}

func testWatchGone(s *suite) {
	b := s.create()
	if _, err := b.Files().MakeDir(s.context(), "d"); err != nil {
		s.Fatal(err)
	}
	w := b.watch("d", true)
	if w == nil {
		return
	}
	if err := b.Files().Remove(s.context(), "d"); err != nil {
		s.Fatal(err)
	}
	_, err := w.Next(s.context())
	s.class("next of a folder that was removed", err, tranca.ErrGone)

	w = b.watch(".", true)
	time.AfterFunc(20*time.Millisecond, func() { _ = b.Sandbox.Close(context.Background()) })
	for err = nil; err == nil; {
		_, err = w.Next(s.context())
	}
	s.class("next in a sandbox that was closed", err, tranca.ErrGone, tranca.ErrClosed)
}

func testWatchRefused(s *suite) {
	b := s.create()
	fw, ok := tranca.As[tranca.FileWatcher](b.Files())
	if !ok {
		return
	}
	b.write("file", "x")
	for path, want := range map[string]error{
		"file": tranca.ErrInvalid, "missing": tranca.ErrNotFound, "": tranca.ErrInvalid, "a\x00b": tranca.ErrInvalid,
	} {
		w, err := fw.Watch(s.context(), path, true)
		s.class("watching "+path, err, want)
		if err == nil {
			w.Close()
		}
	}
	// A bound there is, and what was closed counts no more.
	var open []tranca.Watch
	var err error
	for range 10_000 {
		var w tranca.Watch
		if w, err = fw.Watch(s.context(), ".", false); err != nil {
			break
		}
		open = append(open, w)
	}
	s.class("one watch too many", err, tranca.ErrBusy)
	for _, w := range open {
		w.Close()
	}
	s.eventually("there is room for a watch again", func() bool {
		w, err := fw.Watch(s.context(), ".", false)
		if err == nil {
			w.Close()
		}
		return err == nil || !errors.Is(err, tranca.ErrBusy)
	})
}

// testWatchSlow reads nothing while the code makes more changes than anybody
// holds.
func testWatchSlow(s *suite) {
	b := s.create()
	w := b.watch(".", false)
	if w == nil {
		return
	}
	b.must("churn", "30000")
	if n := len(w.until("overflow")); n >= 60000 {
		s.Errorf("%d events were held", n)
	}
	// It goes on, behind more of them perhaps.
	for round := 0; ; round++ {
		name := "end" + strings.Repeat("x", round)
		b.write(name, "")
		ctx := s.context()
		e, err := w.Next(ctx)
		for ; err == nil && e.Kind != tranca.FileOverflow && e.Path != name; e, err = w.Next(ctx) {
		}
		if err != nil {
			s.Fatal(err)
		}
		if e.Path == name {
			return
		}
	}
}
