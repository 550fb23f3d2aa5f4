package changeset

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"tranca"
)

// maxDepth bounds how deep folders are looked into.
const maxDepth = 256

// Attributes by which an overlay marks what is in its upper folder.
const (
	attrOpaque = "user.overlay.opaque"
	attrOrigin = "user.overlay.origin"
)

// reader reads what was written to the mounts of a sandbox.
type reader struct {
	ctx     context.Context
	reading Reading
	since   int64 // nanoseconds
	set     *Set
	left    int   // entries that may still be told
	bytes   int64 // that may still be kept
	offset  int64 // of what is kept next

	// Of the mount that is being read.
	index       int
	shown       *Shown
	upper, host int
	// kept is an error of keeping, which ends the reading.
	kept error
}

// mount reads one mount.
func (r *reader) mount(index int, shown *Shown) error {
	r.index, r.shown = index, shown
	host, err := r.set.Mounts[index].open()
	if err != nil {
		r.cut(err.Error())
		return nil
	}
	defer unix.Close(host)
	upper, err := r.reading.Open(shown.Target)
	if err != nil {
		return err
	}
	defer upper.Close()
	r.host, r.upper = host, int(upper.Fd())
	pending := []folder{{name: ".", base: true}}
	for len(pending) > 0 && r.more() {
		f := pending[len(pending)-1]
		pending = append(pending[:len(pending)-1], r.folder(f)...)
	}
	return r.kept
}

// cut notes why not everything was seen.
func (r *reader) cut(why string) {
	if m := &r.set.Mounts[r.index]; m.Incomplete == "" {
		m.Incomplete = why
	}
}

func (r *reader) cutBy(name string, err error) {
	r.cut(fmt.Sprintf("%.200q can't be read: %v", name, errors.Unwrap(err)))
}

// more reports whether reading may go on.
func (r *reader) more() bool {
	switch {
	case r.kept != nil:
		return false
	case r.left <= 0:
		r.cut(r.tooMany())
		return false
	case r.ctx.Err() != nil:
		r.cut("it took too long")
		return false
	}
	return true
}

func (r *reader) add(e Entry) {
	e.Mount = r.index
	e.Protected = e.Kind != Folder && r.protected(&e)
	r.left--
	r.set.Entries = append(r.set.Entries, e)
}

// protected judges by the policy's list, and takes a file or link of the name
// .git for one that sends git to another place, and a set-id program of the
// host for what it is.
func (r *reader) protected(e *Entry) bool {
	if r.shown.Protected != nil && r.shown.Protected(e.Path) {
		return true
	}
	if strings.EqualFold(path.Base(e.Path), ".git") && e.Type != "" && e.Type != tranca.FileDirectory {
		return true
	}
	return e.Base != nil && e.Base.Type == tranca.FileRegular && e.Base.Mode&(unix.S_ISUID|unix.S_ISGID) != 0
}

func (r *reader) denied(name string) bool {
	return slices.ContainsFunc(r.shown.Deny, func(d string) bool {
		return name == d || strings.HasPrefix(name, d+"/")
	})
}

// folder is one of the upper tree.
type folder struct {
	name string
	// base says that the host has a folder there, and opaque that what is in
	// that one is gone.
	base, opaque bool
	depth        int
}

// open opens a folder or file of the upper tree.
func (r *reader) open(folder int, name string, flags int) (int, error) {
	if r.reading.Final {
		return openOwn(folder, name, flags)
	}
	return openInside(folder, name, flags)
}

// folder reads one folder and returns those in it.
func (r *reader) folder(f folder) (below []folder) {
	up, err := r.open(r.upper, f.name, folderFlags)
	if err != nil {
		r.cutBy(f.name, err)
		return nil
	}
	defer unix.Close(up)
	host := -1
	if f.base {
		if host, err = openInside(r.host, f.name, unix.O_PATH|unix.O_DIRECTORY); err != nil {
			r.cutBy(f.name, err)
			return nil
		}
		defer unix.Close(host)
	}
	names := r.list(up, f.name)
	for _, name := range names {
		if !r.more() {
			return nil
		}
		if sub, ok := r.entry(f, up, host, name); ok {
			below = append(below, sub)
		}
	}
	if f.opaque && f.base {
		r.uncovered(f, host, names)
	}
	return below
}

// list lists a folder, or as much of it as may still be told.
func (r *reader) list(fd int, name string) []string {
	names, more, err := list(fd, r.left)
	switch {
	case err != nil:
		r.cutBy(name, err)
	case more:
		r.cut(r.tooMany())
	}
	return names
}

func (r *reader) tooMany() string {
	return fmt.Sprintf("more than %d paths changed", r.reading.Bounds.Entries)
}

// uncovered tells what an opaque folder no longer shows of the host's.
func (r *reader) uncovered(f folder, host int, present []string) {
	for _, name := range r.list(host, f.name) {
		if _, there := slices.BinarySearch(present, name); !there {
			r.remove(host, f.name, name, f.depth)
		}
	}
}

// entry reads one entry of an upper folder, and returns it where it is a folder
// to read.
func (r *reader) entry(f folder, up, host int, name string) (sub folder, ok bool) {
	full := path.Join(f.name, name)
	if len(full) > maxPath {
		r.cut("a path is too long")
		return sub, false
	}
	if r.denied(full) {
		return sub, false
	}
	st, err := statAt(up, name)
	var base *unix.Stat_t
	if err == nil && host >= 0 {
		base, err = statAt(host, name)
	}
	if err != nil {
		r.cutBy(full, err)
		return sub, false
	}
	if st == nil {
		return sub, false // gone meanwhile
	}
	if st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == 0 {
		if base != nil {
			r.remove(host, f.name, name, f.depth)
		}
		return sub, false
	}
	e := Entry{Path: full, Type: typeOf(st.Mode), Mode: st.Mode & maxMode, Modified: st.Mtim.Nano()}
	if base != nil {
		e.Base = stateOf(base)
	}
	r.judge(&e)
	if e.Type == tranca.FileDirectory {
		return r.directory(f, up, host, name, e)
	}
	r.leaf(up, host, name, st, e)
	if e.baseFolder() {
		r.removeBelow(host, name, full, f.depth)
	}
	return sub, false
}

// judge finds the kind, and whether the host was there meanwhile.
func (r *reader) judge(e *Entry) {
	switch {
	case e.Base == nil:
		e.Kind = Created
	case e.Base.Type != e.Type:
		e.Kind = Replaced
	default:
		e.Kind = Modified
	}
	e.Conflict = r.meanwhile(e.Base)
}

// meanwhile says how the host changed a path since the sandbox began. A
// folder's stamps tell of what is in it, which is looked at by itself.
func (r *reader) meanwhile(base *State) string {
	if base != nil && base.Type != tranca.FileDirectory && max(base.Changed, base.Modified) > r.since {
		return "it was changed on the host while the sandbox lived"
	}
	return ""
}

const vanished = "it was removed on the host while the sandbox lived"

// directory tells of a folder of the upper tree.
func (r *reader) directory(f folder, up, host int, name string, e Entry) (folder, bool) {
	sub := folder{name: e.Path, base: e.Kind == Modified, opaque: f.opaque, depth: f.depth + 1}
	fd, err := r.open(up, name, folderFlags)
	if err != nil {
		r.cutBy(e.Path, err)
		return sub, false
	}
	origin := hasAttr(fd, attrOrigin)
	sub.opaque = sub.opaque || hasAttr(fd, attrOpaque)
	unix.Close(fd)
	switch {
	case e.Kind == Created && origin:
		e.Conflict = vanished
	case e.Kind == Modified && !origin && !sub.opaque:
		e.Conflict = "it was made on the host while the sandbox lived"
	}
	if e.Kind == Modified && e.Mode == e.Base.Mode&maxMode {
		e.Kind = Folder
	}
	r.add(e)
	if sub.depth > maxDepth {
		r.cut(fmt.Sprintf("folders are nested more than %d deep", maxDepth))
		return sub, false
	}
	return sub, true
}

// hasAttr reports whether a file has an attribute, which can't be longer than
// an overlay makes it.
func hasAttr(fd int, name string) bool {
	var buf [256]byte
	_, err := unix.Fgetxattr(fd, name, buf[:])
	return err == nil
}

// leaf tells of what is no folder.
func (r *reader) leaf(up, host int, name string, st *unix.Stat_t, e Entry) {
	switch e.Type {
	case tranca.FileRegular:
		r.file(up, host, name, e)
		return
	case tranca.FileSymlink:
		target, err := readLink(up, name)
		if err != nil {
			r.cutBy(e.Path, err)
			return
		}
		if e.Kind == Modified {
			if was, err := readLink(host, name); err == nil && was == target {
				return
			}
		}
		if e.Link = target; !safeLink(path.Dir(e.Path), target) {
			e.Omitted = "it is a link that leads, or could lead, out of the folder"
		}
		e.Mode = 0
	default:
		e.Omitted = "it is a " + oddName(st.Mode)
	}
	r.add(e)
}

func oddName(mode uint32) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFIFO:
		return "FIFO"
	case unix.S_IFSOCK:
		return "socket"
	case unix.S_IFBLK, unix.S_IFCHR:
		return "device"
	}
	return "special file"
}

// file tells of a regular file, unless it is as the host has it, and keeps its
// content.
func (r *reader) file(up, host int, name string, e Entry) {
	fd, err := r.open(up, name, fileFlags)
	if err != nil {
		r.cutBy(e.Path, err)
		return
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		r.cut(fmt.Sprintf("%.200q changed while it was read", e.Path))
		return
	}
	e.Size = st.Size
	if e.Kind == Created && hasAttr(fd, attrOrigin) && r.changed(host) {
		e.Conflict = vanished
	}
	if e.Kind == Modified && e.Size == e.Base.Size && e.Mode == e.Base.Mode&maxMode && r.same(f, host, name, e.Size) {
		return
	}
	if r.reading.Keep != nil {
		r.keep(f, &e)
	}
	r.add(e)
}

// changed reports whether something was put into a folder of the host, or taken
// out of it, since the sandbox began. A file that was copied up and is not on
// the host has vanished there then; else the code has renamed or linked it.
func (r *reader) changed(host int) bool {
	var st unix.Stat_t
	return host >= 0 && unix.Fstat(host, &st) == nil && st.Mtim.Nano() > r.since
}

// same compares a file with the host's. What can't be compared is not the same.
func (r *reader) same(f *os.File, host int, name string, size int64) bool {
	fd, err := openInside(host, name, fileFlags)
	if err != nil {
		return false
	}
	was := os.NewFile(uintptr(fd), name)
	defer was.Close()
	a, b := make([]byte, 64<<10), make([]byte, 64<<10)
	for at := int64(0); at < size; {
		n, err := f.ReadAt(a[:min(int64(len(a)), size-at)], at)
		if n == 0 || err != nil && !errors.Is(err, io.EOF) || r.ctx.Err() != nil {
			return false
		}
		if m, _ := was.ReadAt(b[:n], at); m != n || !bytes.Equal(a[:n], b[:n]) {
			return false
		}
		at += int64(n)
	}
	return true
}

// keep copies the content to what is kept. A file with holes can be longer than
// all the space there is.
func (r *reader) keep(f *os.File, e *Entry) {
	if e.Size > r.bytes {
		e.Omitted = fmt.Sprintf("its %d bytes are more than is kept", e.Size)
		return
	}
	sum := sha256.New()
	out := io.MultiWriter(sum, io.NewOffsetWriter(r.reading.Keep, r.offset))
	n, err := io.CopyN(out, &contextReader{r.ctx, f}, e.Size)
	switch {
	case err == nil:
		e.Offset, e.Digest = r.offset, hex.EncodeToString(sum.Sum(nil))
		r.offset += n
		r.bytes -= n
	case r.ctx.Err() != nil || errors.Is(err, io.EOF):
		e.Omitted = "it could not be read to its end"
	default:
		r.kept = fmt.Errorf("%w: changes can't be kept: %w", tranca.ErrUnavailable, err)
	}
}

// contextReader ends with its context.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *contextReader) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(b)
}

// remove tells that an entry of the host is gone, with all that is in it.
func (r *reader) remove(host int, dir, name string, depth int) {
	full := path.Join(dir, name)
	st, err := statAt(host, name)
	if err != nil {
		r.cutBy(full, err)
		return
	}
	if st == nil || !r.more() {
		return
	}
	e := Entry{Path: full, Kind: Removed, Base: stateOf(st)}
	e.Conflict = r.meanwhile(e.Base)
	if r.denied(full) {
		e.Omitted = "it was hidden from the sandbox"
	}
	r.add(e)
	if e.baseFolder() {
		r.removeBelow(host, name, full, depth)
	}
}

// removeBelow tells that all in a folder of the host is gone.
func (r *reader) removeBelow(host int, name, full string, depth int) {
	if depth++; depth > maxDepth {
		r.cut(fmt.Sprintf("folders are nested more than %d deep", maxDepth))
		return
	}
	fd, err := openInside(host, name, folderFlags)
	if err != nil {
		r.cutBy(full, err)
		return
	}
	defer unix.Close(fd)
	for _, n := range r.list(fd, full) {
		r.remove(fd, full, n, depth)
	}
}
