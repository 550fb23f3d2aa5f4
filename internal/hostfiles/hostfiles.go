// Package hostfiles finds what a run changed in the host folders that it could
// write to. What is in them is hostile: the code made it.
//
// Nothing is followed and nothing is opened but folders: a folder is opened
// below the mount's source with openat2, which refuses links in every part of
// the path, and entries are looked at with fstatat without following. So a
// link can't lead out, a FIFO can't block, and a device isn't touched, also
// when an entry is swapped while it is being looked at. Bytes are never read:
// a file counts as changed when its size, times, mode, owner or inode differ.
// A program can't set the change time back, so it can't hide a write.
//
// Entries, depth and time are bounded. Where a bound cuts the look short, a
// note says so; nothing is then claimed about what was not seen.
package hostfiles

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
)

// Root is one writable mount.
type Root struct {
	// Source is an absolute path on the host without links, a folder or a
	// file; Target is where the sandbox sees it.
	Source, Target string
	// Deny lists relative paths that the sandbox does not see. They are not
	// looked at.
	Deny []string
	// HostExecutable judges a path relative to the mount.
	HostExecutable func(name string) bool
}

// Bounds bound one look at all roots. A zero field has its default.
type Bounds struct {
	// Entries is how many paths are looked at: 100,000.
	Entries int
	// Changes is how many changes are told: 10,000.
	Changes int
	// Time is how long one look may take: 10 s.
	Time time.Duration
}

// maxDepth bounds how deep folders are looked into.
const maxDepth = 256

func (b Bounds) orDefault() Bounds {
	if b.Entries <= 0 {
		b.Entries = 100_000
	}
	if b.Changes <= 0 {
		b.Changes = 10_000
	}
	if b.Time <= 0 {
		b.Time = 10 * time.Second
	}
	return b
}

// state is what is remembered of one path.
type state struct {
	kind         uint32 // the type bits of the mode
	mode         uint32
	uid, gid     uint32
	size         int64
	ino, dev     uint64
	mtime, ctime unix.Timespec
}

func (s state) regular() bool   { return s.kind == unix.S_IFREG }
func (s state) directory() bool { return s.kind == unix.S_IFDIR }

// changed reports whether a path is another than before. A folder is the
// same as long as its own mode and owner are: what is in it is told by itself.
func (s state) changed(now state) bool {
	if s.directory() && now.directory() {
		return s.mode != now.mode || s.uid != now.uid || s.gid != now.gid
	}
	return s != now
}

// Snapshot is what the roots held at one moment.
type Snapshot struct {
	bounds Bounds
	roots  []rootState
}

type rootState struct {
	root Root
	look look
}

// Take looks at the roots. It never fails: what can't be seen is noted by
// Changes.
func Take(ctx context.Context, roots []Root, bounds Bounds) *Snapshot {
	s := &Snapshot{bounds: bounds.orDefault()}
	ctx, cancel := context.WithTimeout(ctx, s.bounds.Time)
	defer cancel()
	left := s.bounds.Entries
	for _, r := range roots {
		l := lookAt(ctx, r, left)
		left -= len(l.seen)
		s.roots = append(s.roots, rootState{r, l})
	}
	return s
}

// Changes looks again and returns what differs, sorted by path, and notes on
// what could not be seen.
func (s *Snapshot) Changes(ctx context.Context) (changes []tranca.Change, notes []string) {
	ctx, cancel := context.WithTimeout(ctx, s.bounds.Time)
	defer cancel()
	left := s.bounds.Entries
	for _, r := range s.roots {
		now := lookAt(ctx, r.root, left)
		left -= len(now.seen)
		changes = append(changes, compare(r.root, r.look, now)...)
		if cut := firstOf(r.look.cut, now.cut); cut != "" {
			notes = append(notes, fmt.Sprintf("the list of changes in %s is not complete: %s", r.root.Target, cut))
		}
	}
	changes, note := Most(changes, s.bounds)
	if note != "" {
		notes = append(notes, note)
	}
	return changes, notes
}

// Most sorts changes by path and leaves out those beyond the bound, of which the
// note tells; host-executable paths are left out last.
func Most(changes []tranca.Change, bounds Bounds) (most []tranca.Change, note string) {
	slices.SortFunc(changes, func(a, b tranca.Change) int { return strings.Compare(a.Path, b.Path) })
	bound := bounds.orDefault().Changes
	if n := len(changes); n > bound {
		return keep(changes, bound), fmt.Sprintf("%d paths changed; %d of them are listed, the host-executable ones first", n, bound)
	}
	return changes, ""
}

// keep cuts a list to n, and leaves out host-executable paths last.
func keep(changes []tranca.Change, n int) []tranca.Change {
	slices.SortStableFunc(changes, func(a, b tranca.Change) int {
		switch {
		case a.HostExecutable == b.HostExecutable:
			return 0
		case a.HostExecutable:
			return -1
		}
		return 1
	})
	changes = changes[:n]
	slices.SortFunc(changes, func(a, b tranca.Change) int { return strings.Compare(a.Path, b.Path) })
	return changes
}

func firstOf(words ...string) string {
	for _, w := range words {
		if w != "" {
			return w
		}
	}
	return ""
}

// compare tells the differences between two looks at one root. Where the
// first was cut short, a path that is new to it may have been there; where
// the second was, one that is missing may be there still. Neither is claimed.
func compare(r Root, before, now look) []tranca.Change {
	var changes []tranca.Change
	add := func(name string, kind tranca.ChangeKind, s state) {
		c := tranca.Change{
			Path: path.Join(r.Target, name), Kind: kind,
			HostExecutable: r.HostExecutable != nil && r.HostExecutable(name),
		}
		if s.regular() && kind != tranca.ChangeRemoved {
			c.Size = s.size
		}
		changes = append(changes, c)
	}
	for name, s := range now.seen {
		old, known := before.seen[name]
		switch {
		case !known && before.cut == "":
			add(name, tranca.ChangeCreated, s)
		case known && old.changed(s):
			add(name, tranca.ChangeModified, s)
		}
	}
	if now.cut == "" {
		for name, s := range before.seen {
			if _, there := now.seen[name]; !there {
				add(name, tranca.ChangeRemoved, s)
			}
		}
	}
	return changes
}
