package changeset

import (
	"context"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
)

// Shown is one mount to track.
type Shown struct {
	// Source is an absolute path on the host without links, a folder; Target is
	// where the sandbox sees it.
	Source, Target string
	// Deny lists relative paths that the sandbox doesn't see.
	Deny []string
	// Protected judges a path relative to the mount: may the host execute it?
	Protected func(name string) bool
}

// Bounds bound one reading of all mounts. A zero field has its default.
type Bounds struct {
	// Entries is how many paths are told: 200,000.
	Entries int
	// Bytes is how much content is kept, 1 GiB.
	Bytes int64
	// Time is how long it may take: 2 minutes.
	Time time.Duration
}

func (b Bounds) orDefault() Bounds {
	if b.Entries <= 0 {
		b.Entries = 200_000
	}
	if b.Bytes <= 0 {
		b.Bytes = 1 << 30
	}
	if b.Time <= 0 {
		b.Time = 2 * time.Minute
	}
	return b
}

// Tracker knows the mounts of one sandbox and when it began.
type Tracker struct {
	shown  []Shown
	mounts []Mount
	since  time.Time
}

// Track notes what the mounts are, before the sandbox is made that shows them.
// The host's changes from now on are told from the code's. Errors wrap
// [tranca.ErrInvalid].
func Track(shown []Shown) (*Tracker, error) {
	t := &Tracker{shown: shown, since: time.Now()}
	for _, s := range shown {
		m := Mount{Source: s.Source, Target: s.Target}
		fd, err := openSource(s.Source)
		if err != nil {
			return nil, fmt.Errorf("%w: mount %s: %w", tranca.ErrInvalid, s.Source, err)
		}
		err = m.identify(fd)
		unix.Close(fd)
		if err != nil {
			return nil, fmt.Errorf("%w: mount %s: %w", tranca.ErrInvalid, s.Source, err)
		}
		t.mounts = append(t.mounts, m)
	}
	return t, nil
}

// Settle returns when the clock by which the kernel stamps files has passed the
// moment of Track, a few milliseconds after it at most. What the host changes
// after that, and so after code can have read it, has a later stamp.
func (t *Tracker) Settle() {
	for deadline := time.Now().Add(time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		var now unix.Timespec
		if unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now) != nil || now.Nano() > t.since.UnixNano() {
			return
		}
	}
}

// Reading says how to read.
type Reading struct {
	ID tranca.ID
	// Open opens the folder that holds what was written to the mount with this
	// target, in the form of an overlay's upper folder.
	Open func(target string) (*os.File, error)
	// Keep takes the contents of files. Without it none are kept, and files of
	// the same size are compared all the same.
	Keep *os.File
	// Final says that nothing writes there any more.
	Final  bool
	Bounds Bounds
}

// Read says what was written. What could not be read makes a mount of the set
// incomplete; an error is one of keeping, or that of Open or ctx.
func (t *Tracker) Read(ctx context.Context, r Reading) (*Set, error) {
	r.Bounds = r.Bounds.orDefault()
	ctx, cancel := context.WithTimeout(ctx, r.Bounds.Time)
	defer cancel()
	s := &Set{ID: r.ID, Created: time.Now(), Mounts: slices.Clone(t.mounts)}
	all := &reader{ctx: ctx, reading: r, since: t.since.UnixNano(), set: s, left: r.Bounds.Entries, bytes: r.Bounds.Bytes}
	for i := range s.Mounts {
		if err := all.mount(i, &t.shown[i]); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(s.Entries, func(a, b Entry) int {
		if a.Mount != b.Mount {
			return a.Mount - b.Mount
		}
		return strings.Compare(a.Path, b.Path)
	})
	s.prune()
	return s, nil
}

// prune drops folders that hold no change.
func (s *Set) prune() {
	wanted := map[place]bool{}
	kept := len(s.Entries)
	for i := len(s.Entries) - 1; i >= 0; i-- {
		e := &s.Entries[i]
		at := place{e.Mount, e.Path}
		if e.Kind == Folder && e.Conflict == "" && !wanted[at] {
			continue
		}
		wanted[place{e.Mount, path.Dir(e.Path)}] = true
		kept--
		s.Entries[kept] = *e
	}
	s.Entries = slices.Delete(s.Entries, 0, kept)
}
