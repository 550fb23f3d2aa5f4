package agent

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"tranca/internal/guest/message"
	"tranca/internal/guest/wire"
)

// node is a folder that is watched, by its name in the one that holds it.
type node struct {
	wd     int32
	name   string
	parent *node // nil for the root, and for one that is watched no more
	below  map[string]*node
	// unread says that it is still to be looked through, tries how often it was
	// not where it was thought to be.
	unread bool
	tries  int
}

// watchTree knows where each folder is that is watched. The kernel tells of changes
// by number and name in a folder only. So the tree follows renames, and a folder
// is only ever taken in below a folder that is still where the tree has it,
// which the kernel's number proves.
type watchTree struct {
	a  *agent
	in *inotify
	// givenUp reports whether nobody waits any more.
	givenUp func() bool
	path    string // of the root
	all     map[int32]*node
	root    *node
	q       *changes
	count   int32
	// late are folders that were elsewhere when they were looked for.
	late []*node
	// lost says that the tree may be wrong: it is to be made anew.
	lost bool
	// partial says that there are folders that are not watched for want of room.
	partial bool
}

// errMoved says that a folder is not where the tree has it.
var errMoved = errors.New("the folder is elsewhere by now")

// errRootGone is what the host is told when the root is removed or renamed.
var errRootGone = &wire.Error{Code: wire.CodeFailedPrecondition, Message: "the folder that was watched was removed or renamed"}

// rel is the path of a name in a folder, below the root. It reports false where
// that is longer than a path can be.
func (n *node) rel(name string) (string, bool) {
	parts := make([]string, 0, 16)
	size := 0
	if name != "" {
		parts = append(parts, name)
		size = len(name)
	}
	for ; n != nil && n.parent != nil; n = n.parent {
		parts = append(parts, n.name)
		if size += len(n.name) + 1; size >= message.MaxPath {
			return "", false
		}
	}
	slices.Reverse(parts)
	return strings.Join(parts, "/"), true
}

// tell tells of a change of a name in a folder. Where the tree may be wrong, so
// may be the path; the overflow that was told stands for all until it is right
// again.
func (t *watchTree) tell(n *node, name string, kind message.EventType) {
	if t.lost {
		return
	}
	if path, ok := n.rel(name); ok {
		t.q.put(change{path, kind})
		return
	}
	t.q.put(overflow)
}

// begin watches the root. With recursive set it takes in all below it.
func (t *watchTree) begin(recursive bool) error {
	err := t.a.folder(func() error {
		if err := checkPath(t.path); err != nil {
			return err
		}
		fd, err := openRoot(t.path)
		if err == syscall.ENOTDIR || err == syscall.ELOOP {
			return invalid("watching " + strconv.Quote(t.path) + ": not a folder")
		}
		if err != nil {
			return onPath("watching", t.path, err)
		}
		defer unix.Close(fd)
		if onProc(fd) {
			return &wire.Error{Code: wire.CodePermissionDenied,
				Message: strconv.Quote(t.path) + " is in /proc, which tells of no changes"}
		}
		if !t.room() {
			return tooMany(t.path, maxAllFolders, "folders of this sandbox")
		}
		wd, err := t.in.add(fd)
		if err != nil {
			return t.noWatch(err)
		}
		t.root = &node{wd: wd}
		t.all[wd] = t.root
		return nil
	})
	if err != nil || !recursive {
		return err
	}
	if err := t.scan([]*node{t.root}, false); err != nil {
		return err
	}
	if t.partial {
		return tooMany(t.path, maxWatchFolders, "folders")
	}
	return nil
}

// noWatch explains why the kernel would not watch the root.
func (t *watchTree) noWatch(err error) error {
	if err == syscall.ENOSPC {
		return busy("watching " + strconv.Quote(t.path) + ": the kernel gives this user no more watches (fs.inotify.max_user_watches)")
	}
	return onPath("watching", t.path, err)
}

// room counts one more folder.
func (t *watchTree) room() bool {
	if t.count >= maxWatchFolders || !take(&t.a.watches.folders, 1, maxAllFolders) {
		return false
	}
	t.count++
	return true
}

func (t *watchTree) freeRoom(n int32) {
	t.count -= n
	t.a.watches.folders.Add(-n)
}

// openRoot opens the folder that a path leads to, whose last part is no link.
func openRoot(path string) (int, error) {
	return openAt(unix.AT_FDCWD, path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
}

func onProc(fd int) bool {
	var fs unix.Statfs_t
	return unix.Fstatfs(fd, &fs) != nil || fs.Type == procMagic
}

// open opens a folder of the tree, if it is where the tree has it.
func (t *watchTree) open(n *node) (int, error) {
	rel, ok := n.rel("")
	if !ok {
		return -1, syscall.ENAMETOOLONG
	}
	fd, err := openRoot(t.path)
	if err != nil {
		if moved(err) == errMoved {
			err = errRootGone
		}
		return -1, err
	}
	if rel != "" {
		sub, err := openBelow(fd, rel, unix.O_RDONLY|unix.O_DIRECTORY)
		_ = unix.Close(fd)
		if err != nil {
			return -1, moved(err)
		}
		fd = sub
	}
	wd, err := t.in.add(fd)
	if err == nil && wd == n.wd {
		return fd, nil
	}
	_ = unix.Close(fd)
	if err == nil && t.all[wd] == nil {
		t.in.remove(wd)
	}
	if n == t.root {
		return -1, errRootGone
	}
	return -1, moved(err)
}

// moved tells what comes of the code's moving things about from what is lacking.
func moved(err error) error {
	switch err {
	case nil, syscall.ENOENT, syscall.ENOTDIR, syscall.ELOOP, syscall.EACCES, syscall.EXDEV, syscall.EAGAIN:
		return errMoved
	}
	return err
}

// adopt takes in the folder that stands under a name in another, if one does.
// It looks through one that was not known. It returns what stands there now; nil
// where that is nothing, or can't be said.
func (t *watchTree) adopt(parent *node, name string) (*node, error) {
	var found *node
	fresh := false
	err := t.a.folder(func() error {
		fd, err := t.open(parent)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		found, fresh = t.enter(fd, parent, name)
		return nil
	})
	if err == errMoved {
		parent.unread = true
		t.again(parent)
		return nil, nil
	}
	if err := t.unless(err); err != nil || !fresh {
		return found, err
	}
	return found, t.scan([]*node{found}, true)
}

// verify looks whether a folder is where the tree has it.
func (t *watchTree) verify(n *node) error {
	err := t.a.folder(func() error {
		fd, err := t.open(n)
		if err == nil {
			_ = unix.Close(fd)
		}
		return err
	})
	if err == errMoved {
		t.again(n)
		return nil
	}
	return t.unless(err)
}

// unless gives back the end of the root and takes any other error for a folder
// that could not be watched.
func (t *watchTree) unless(err error) error {
	if err == nil || err == errRootGone || err == errStopped || t.a.sess.Err() != nil {
		return err
	}
	t.short()
	return nil
}

// short notes that a folder is not watched.
func (t *watchTree) short() {
	t.partial = true
	t.q.put(overflow)
}

// lose notes that the tree may be wrong.
func (t *watchTree) lose() {
	if !t.lost {
		t.lost = true
		t.q.put(overflow)
	}
}

// maxLate bounds the folders that are to be looked through again.
const maxLate = 64

// again notes a folder that is to be looked through once more is known of where
// it is.
func (t *watchTree) again(n *node) {
	if slices.Contains(t.late, n) {
		return
	}
	if n.tries++; n.tries > 3 || len(t.late) >= maxLate {
		t.lose()
		return
	}
	t.late = append(t.late, n)
}

// enter watches a folder in an open one. It returns what the tree has for it,
// and whether that is new, so that it is to be looked through.
func (t *watchTree) enter(dir int, parent *node, name string) (found *node, fresh bool) {
	fd, err := openBelow(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		// Gone or something else by now, which will be told; or nothing that
		// the code's user may look into.
		switch {
		case err == syscall.EAGAIN: // it is being moved about all the time
			t.lose()
		case moved(err) != errMoved:
			t.short()
		}
		return nil, false
	}
	defer unix.Close(fd)
	if _, ok := parent.rel(name); !ok {
		t.short()
		return nil, false
	}
	if onProc(fd) {
		return nil, false
	}
	if !t.room() {
		t.short()
		return nil, false
	}
	wd, err := t.in.add(fd)
	if err != nil || t.all[wd] != nil {
		t.freeRoom(1)
		if err == nil {
			t.settle(t.all[wd], parent, name)
			return t.all[wd], false
		}
		if moved(err) != errMoved { // it can be removed while it is open
			t.short()
		}
		return nil, false
	}
	n := &node{wd: wd}
	t.all[wd] = n
	t.place(n, parent, name)
	return n, true
}

// settle puts a folder that is known to where it was found.
func (t *watchTree) settle(n, parent *node, name string) {
	if n.parent == parent && n.name == name {
		return
	}
	if !n.holds(parent) {
		t.place(n, parent, name)
		return
	}
	// A mount can show a folder in itself. Else the tree has the folder where it
	// no longer is.
	fd, err := t.open(n)
	if err != nil {
		t.lose()
		return
	}
	_ = unix.Close(fd)
}

// holds reports whether a folder is another or lies above it.
func (n *node) holds(other *node) bool {
	for ; other != nil; other = other.parent {
		if other == n {
			return true
		}
	}
	return false
}

// place puts a folder into another. What stood there under the name is watched
// no more.
func (t *watchTree) place(n, parent *node, name string) {
	if old := parent.below[name]; old != nil && old != n {
		t.drop(old)
	}
	n.leave()
	n.parent, n.name = parent, name
	if parent.below == nil {
		parent.below = make(map[string]*node)
	}
	parent.below[name] = n
}

func (n *node) leave() {
	if n.parent != nil && n.parent.below[n.name] == n {
		delete(n.parent.below, n.name)
	}
	n.parent = nil
}

// drop ends the watch of a folder and all below it.
func (t *watchTree) drop(n *node) {
	n.leave()
	stack := []*node{n}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, b := range n.below {
			stack = append(stack, b)
		}
		n.below, n.parent = nil, nil
		if t.all[n.wd] == n {
			delete(t.all, n.wd)
			t.in.remove(n.wd)
			t.freeRoom(1)
		}
	}
}

// scan looks through folders and all below them for folders to take in. With
// tell set it tells of all that is there, as created.
func (t *watchTree) scan(stack []*node, tell bool) error {
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if t.all[n.wd] != n {
			continue // it has gone meanwhile
		}
		if t.givenUp() {
			return errStopped
		}
		err := t.a.folder(func() error {
			fd, err := t.open(n)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			n.tries, n.unread = 0, false
			return entries(fd, func(name string, isFolder bool) error {
				if tell {
					t.tell(n, name, message.EventCreate)
				}
				if !isFolder {
					return nil
				}
				if sub, fresh := t.enter(fd, n, name); fresh {
					stack = append(stack, sub)
				}
				return nil
			})
		})
		if err == syscall.ENOENT {
			continue // it was removed while it was read
		}
		if err == errMoved {
			n.unread = true
			t.again(n)
			continue
		}
		if err := t.unless(err); err != nil {
			return err
		}
	}
	return nil
}

// end gives back what the tree counted. The kernel's watches end with the
// descriptor.
func (t *watchTree) end() { t.freeRoom(t.count) }
