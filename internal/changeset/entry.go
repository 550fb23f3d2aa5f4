package changeset

import (
	"fmt"
	"path"
	"strings"
	"time"

	"tranca"
)

// Kind is what happened to a path.
type Kind string

// The kinds. Replaced is a path that is of another type than before, and Folder
// one that did not change but holds what did.
const (
	Created  Kind = "created"
	Modified Kind = "modified"
	Removed  Kind = "removed"
	Replaced Kind = "replaced"
	Folder   Kind = "folder"
)

// State is what the host had at a path when the set was read. Times are in
// nanoseconds since 1970.
type State struct {
	Type     tranca.FileType `json:"type"`
	Mode     uint32          `json:"mode"` // permission and set-id bits
	UID      uint32          `json:"uid"`
	GID      uint32          `json:"gid"`
	Size     int64           `json:"size"`
	Inode    uint64          `json:"inode"`
	Modified int64           `json:"modified"`
	Changed  int64           `json:"changed"`
}

// Entry is one path of a set.
type Entry struct {
	// Mount is the index of its mount.
	Mount int
	// Path is relative to the mount, in its shortest form: any bytes but NUL.
	Path string
	Kind Kind
	// Type is what it is now; empty where it was removed.
	Type tranca.FileType
	// Mode holds its permission bits, without set-id bits.
	Mode uint32
	// Size is in bytes, Offset where they stand in the set's contents, and
	// Digest their SHA-256 in hexadecimal; of regular files that are kept.
	Size, Offset int64
	Digest       string
	// Link is the target of a symbolic link.
	Link string
	// Modified is in nanoseconds since 1970.
	Modified int64
	// Base is what the host had there; nil is nothing.
	Base *State
	// Protected says that the host may execute it by itself.
	Protected bool
	// Omitted says why it can never be applied; Conflict, why it can't as the
	// host changed it while the sandbox lived. Empty where they don't hold.
	Omitted, Conflict string
}

// Change returns the entry as a result tells it; ok is false for a folder that
// did not change.
func (e *Entry) Change(target string) (c tranca.Change, ok bool) {
	c = tranca.Change{Path: path.Join(target, e.Path), HostExecutable: e.Protected}
	switch e.Kind {
	case Created:
		c.Kind = tranca.ChangeCreated
	case Modified, Replaced:
		c.Kind = tranca.ChangeModified
	case Removed:
		c.Kind = tranca.ChangeRemoved
	default:
		return c, false
	}
	if e.Type == tranca.FileRegular {
		c.Size = e.Size
	}
	return c, true
}

// baseFolder reports whether the host had a folder there.
func (e *Entry) baseFolder() bool { return e.Base != nil && e.Base.Type == tranca.FileDirectory }

// Mount is one folder of the host that was shown copy-on-write.
type Mount struct {
	// Source is its absolute path on the host, Target where the sandbox saw it.
	Source string `json:"source"`
	Target string `json:"target"`
	// Inode and FileSystem tell the source from another folder at its place.
	Inode      uint64 `json:"inode"`
	FileSystem string `json:"file_system"`
	// Owner and Group get what root applies.
	Owner uint32 `json:"owner"`
	Group uint32 `json:"group"`
	// Incomplete says why not all changes could be read; such a set is not
	// applied.
	Incomplete string `json:"incomplete,omitempty"`
}

// Set is all that a sandbox wrote to its copy-on-write mounts. Entries are
// sorted by mount and path, so that a folder comes before what is in it.
type Set struct {
	ID      tranca.ID
	Created time.Time
	Mounts  []Mount
	Entries []Entry
}

// Changes returns what a result tells of the set.
func (s *Set) Changes() []tranca.Change {
	var all []tranca.Change
	for i := range s.Entries {
		e := &s.Entries[i]
		if c, ok := e.Change(s.Mounts[e.Mount].Target); ok {
			all = append(all, c)
		}
	}
	return all
}

// count returns how many entries are changes.
func (s *Set) count() (n int) {
	for i := range s.Entries {
		if s.Entries[i].Kind != Folder {
			n++
		}
	}
	return n
}

// Place is where the sandbox saw the entry.
func (s *Set) Place(e *Entry) string { return path.Join(s.Mounts[e.Mount].Target, e.Path) }

// Incomplete says why not everything was read; empty where it was.
func (s *Set) Incomplete() string {
	for _, m := range s.Mounts {
		if m.Incomplete != "" {
			return m.Target + ": " + m.Incomplete
		}
	}
	return ""
}

// The bounds of names.
const (
	maxPath   = 4095
	maxMounts = 64
	maxMode   = 0o777
)

// validPath reports whether p is a relative path in its shortest form.
func validPath(p string) bool {
	return p != "" && p != "." && len(p) <= maxPath && !strings.HasPrefix(p, "/") &&
		strings.IndexByte(p, 0) < 0 && path.Clean(p) == p && p != ".." && !strings.HasPrefix(p, "../")
}

// check checks the entries by themselves and against each other: what comes
// after can rely on each path being there once, after its folder.
func (s *Set) check() error {
	folders := map[place]*Entry{}
	var last *Entry
	for i := range s.Entries {
		e := &s.Entries[i]
		if err := e.check(len(s.Mounts)); err != nil {
			return fmt.Errorf("%w: entry %d: %w", tranca.ErrInvalid, i, err)
		}
		if last != nil && !last.before(e) {
			return fmt.Errorf("%w: entry %d: %q is not in order", tranca.ErrInvalid, i, e.Path)
		}
		last = e
		if dir := path.Dir(e.Path); dir != "." {
			if err := e.checkFolder(folders[place{e.Mount, dir}]); err != nil {
				return fmt.Errorf("%w: entry %d: %q: %w", tranca.ErrInvalid, i, e.Path, err)
			}
		}
		if e.Type == tranca.FileDirectory || e.baseFolder() {
			folders[place{e.Mount, e.Path}] = e
		}
	}
	return nil
}

// place names an entry of a set.
type place struct {
	mount int
	path  string
}

func (e *Entry) before(o *Entry) bool {
	if e.Mount != o.Mount {
		return e.Mount < o.Mount
	}
	return e.Path < o.Path
}

// checkFolder checks an entry against that of its folder.
func (e *Entry) checkFolder(folder *Entry) error {
	switch {
	case folder == nil:
		return fmt.Errorf("its folder is missing")
	case e.Kind != Removed && folder.Type != tranca.FileDirectory:
		return fmt.Errorf("it is in what is no folder")
	case e.Base != nil && !folder.baseFolder():
		return fmt.Errorf("it was in what was no folder")
	}
	return nil
}

func (e *Entry) check(mounts int) error {
	switch {
	case e.Mount < 0 || e.Mount >= mounts:
		return fmt.Errorf("there is no mount %d", e.Mount)
	case !validPath(e.Path):
		return fmt.Errorf("%q is no relative path", e.Path)
	case e.Mode > maxMode:
		return fmt.Errorf("mode %#o", e.Mode)
	case e.Size < 0 || e.Offset < 0:
		return fmt.Errorf("%q: a negative size", e.Path)
	}
	if err := e.checkKind(); err != nil {
		return err
	}
	return e.checkType()
}

// checkKind checks that the kind goes with what is and what was there.
func (e *Entry) checkKind() error {
	ok := false
	switch e.Kind {
	case Created:
		ok = e.Type != "" && e.Base == nil
	case Modified:
		ok = e.Type != "" && e.Base != nil && e.Base.Type == e.Type
	case Replaced:
		ok = e.Type != "" && e.Base != nil && e.Base.Type != e.Type
	case Folder:
		ok = e.Type == tranca.FileDirectory && e.baseFolder()
	case Removed:
		ok = e.Type == "" && e.Base != nil
	}
	if !ok {
		return fmt.Errorf("%q: %q does not go with what is there", e.Path, e.Kind)
	}
	if e.Base != nil && !knownType(e.Base.Type) {
		return fmt.Errorf("%q: type %q", e.Path, e.Base.Type)
	}
	return nil
}

func knownType(t tranca.FileType) bool {
	switch t {
	case tranca.FileRegular, tranca.FileDirectory, tranca.FileSymlink, tranca.FileOther:
		return true
	}
	return false
}

func (e *Entry) checkType() error {
	switch {
	case e.Type != "" && !knownType(e.Type):
		return fmt.Errorf("%q: type %q", e.Path, e.Type)
	case e.Type == tranca.FileOther && e.Omitted == "":
		return fmt.Errorf("%q: it can't be applied, and nothing says so", e.Path)
	case e.Type == tranca.FileRegular && e.Omitted == "" && len(e.Digest) != 64:
		return fmt.Errorf("%q: no digest", e.Path)
	case e.Type == tranca.FileSymlink && e.Omitted == "" && !safeLink(path.Dir(e.Path), e.Link):
		return fmt.Errorf("%q: a link that leads out", e.Path)
	}
	return nil
}

// safeLink reports whether a link with this target, in this folder of a mount,
// stays in the mount whatever other links there are: it is relative, and goes
// up only at its beginning, where the folders above it are no links.
func safeLink(folder, target string) bool {
	if target == "" || len(target) > maxPath || target[0] == '/' || strings.IndexByte(target, 0) >= 0 {
		return false
	}
	depth := 0
	if folder != "." {
		depth = strings.Count(folder, "/") + 1
	}
	up := true
	for part := range strings.SplitSeq(target, "/") {
		switch part {
		case "", ".":
		case "..":
			if depth--; !up || depth < 0 {
				return false
			}
		default:
			up = false
		}
	}
	return true
}
