package image

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"tranca"
)

// The bounds of a tree's names: Linux's, and a depth that can be taken apart
// again with the descriptors that a process has.
const (
	maxTreePath  = 4095
	maxTreeDepth = 400
	maxFollowed  = 40
)

// mostTries bounds how often one folder is tried to be opened.
const mostTries = 64

// tree is a root tree that is being made. Each path is resolved by the kernel
// as if the tree were the root: links in it, absolute ones too, lead to places
// in it, and so does "..".
type tree struct {
	fd   int
	real string // where it is, by the kernel's word
	open map[string]*folder
	ring []string // what open holds, in the order of its coming
	next int      // where the ring goes on
	// stale are open folders that are no longer kept; somebody may still be at
	// them until the entry at hand is done.
	stale []int
	// chmod says that the umask takes bits that the tree shall have.
	chmod bool
}

// folder is an open folder of the tree.
type folder struct {
	fd   int
	name string // without links, relative to the tree; "" is its root
}

// openFolders bounds how many folders stay open: archives go through a tree
// folder by folder.
const openFolders = 64

func openTree(dir string) (*tree, error) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	t := &tree{fd: fd, open: map[string]*folder{}, ring: make([]string, openFolders), chmod: umask()&0o755 != 0}
	if t.real, err = realName(fd); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return t, nil
}

func (t *tree) close() {
	t.forget()
	t.settle()
	unix.Close(t.fd)
}

// forget keeps no folder open any more: something was removed that may have been
// one, or the way to one.
func (t *tree) forget() {
	for _, f := range t.open {
		t.stale = append(t.stale, f.fd)
	}
	clear(t.open)
	clear(t.ring)
}

// settle closes what is no longer kept open, when nobody is at it.
func (t *tree) settle() {
	for _, fd := range t.stale {
		unix.Close(fd)
	}
	t.stale = t.stale[:0]
}

func realName(fd int) (string, error) {
	name, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil {
		return "", fmt.Errorf("the name of an open folder: %w", err)
	}
	return name, nil
}

// folder opens a folder of the tree, by links too.
func (t *tree) folder(name string) (*folder, error) {
	if f := t.open[name]; f != nil {
		return f, nil
	}
	how := &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	}
	where := name
	if where == "" {
		where = "."
	}
	fd, err := unix.Openat2(t.fd, where, how)
	// A rename anywhere on the host, while a link leads by "..", is EAGAIN.
	for try := 1; try < mostTries && (err == unix.EINTR || err == unix.EAGAIN); try++ {
		fd, err = unix.Openat2(t.fd, where, how)
	}
	if err != nil {
		return nil, err
	}
	f := &folder{fd: fd}
	if f.name, err = t.nameOf(fd); err != nil {
		unix.Close(fd)
		return nil, err
	}
	t.keep(name, f)
	return f, nil
}

// nameOf asks the kernel where an open folder is. It must be in the tree: that
// is what all else stands on, so it is looked at and not only trusted.
func (t *tree) nameOf(fd int) (string, error) {
	real, err := realName(fd)
	if err != nil {
		return "", err
	}
	if real == t.real {
		return "", nil
	}
	name, ok := strings.CutPrefix(real, t.real+"/")
	if !ok {
		return "", fmt.Errorf("%w: a folder of the image led out of its tree", tranca.ErrInvalid)
	}
	return name, nil
}

func (t *tree) keep(name string, f *folder) {
	if old := t.open[t.ring[t.next]]; old != nil {
		t.stale = append(t.stale, old.fd)
		delete(t.open, t.ring[t.next])
	}
	t.ring[t.next], t.open[name] = name, f
	t.next = (t.next + 1) % len(t.ring)
}

// makeFolder opens a folder, and makes it and those above it where nothing is.
func (t *tree) makeFolder(name string) (*folder, error) { return t.makeFollowed(name, 0) }

func (t *tree) makeFollowed(name string, followed int) (*folder, error) {
	f, err := t.folder(name)
	if err != unix.ENOENT {
		return f, asEntryError(name, err)
	}
	up, base := split(name)
	above, err := t.makeFollowed(up, followed)
	if err != nil {
		return nil, err
	}
	if err := checkPlace(above, base); err != nil {
		return nil, err
	}
	err = unix.Mkdirat(above.fd, base, 0o755)
	if err == unix.EEXIST {
		// It is a link to something that isn't there, since the folder isn't.
		if followed == maxFollowed {
			return nil, asEntryError(name, unix.ELOOP)
		}
		to, err := linkAt(above.fd, base)
		if err != nil {
			return nil, asEntryError(name, err)
		}
		if !path.IsAbs(to) {
			to = path.Join("/", above.name, to)
		}
		return t.makeFollowed(strings.TrimPrefix(path.Clean(to), "/"), followed+1)
	}
	if err == nil && t.chmod {
		err = unix.Fchmodat(above.fd, base, 0o755, 0)
	}
	if err != nil {
		return nil, asEntryError(name, err)
	}
	f, err = t.folder(name)
	return f, asEntryError(name, err)
}

func linkAt(dir int, base string) (string, error) {
	buf := make([]byte, maxTreePath+1)
	n, err := unix.Readlinkat(dir, base, buf)
	if err != nil {
		return "", err
	}
	if n == len(buf) {
		return "", unix.ENAMETOOLONG
	}
	return string(buf[:n]), nil
}

// split cuts a clean, relative name before its last part.
func split(name string) (up, base string) {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[:i], name[i+1:]
	}
	return "", name
}

// checkPlace refuses a place too deep or too long to be reached by its path:
// links lead deeper than names tell.
func checkPlace(f *folder, base string) error {
	if len(f.name)+1+len(base) > maxTreePath || strings.Count(f.name, "/") >= maxTreeDepth {
		return fmt.Errorf("%w: image entry %.100q...: it lies deeper than %d folders or %d bytes",
			tranca.ErrInvalid, f.name+"/"+base, maxTreeDepth, maxTreePath)
	}
	return nil
}

// asEntryError gives what an archive did wrong its class. What the disk did
// keeps its own.
func asEntryError(name string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENAMETOOLONG),
		errors.Is(err, unix.EXDEV), errors.Is(err, unix.ENOENT), errors.Is(err, unix.EEXIST), errors.Is(err, unix.EMLINK):
		return fmt.Errorf("%w: image entry %.200q: %w", tranca.ErrInvalid, name, err)
	}
	return fmt.Errorf("image entry %.200q: %w", name, err)
}

// remove removes what is at a name, folders with all that is in them.
func (t *tree) remove(dir int, base string) error {
	return t.removeBut(dir, base, "", func(string) bool { return false })
}

// removeBut removes what is at a name but for what keep says of the names in the
// tree, of which name is that of this one, and the folders above that.
func (t *tree) removeBut(dir int, base, name string, keep func(name string) bool) error {
	isDir, err := isFolder(dir, base)
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		return err
	}
	t.forget()
	return t.removeOne(dir, base, name, isDir, keep)
}

func isFolder(dir int, base string) (bool, error) {
	var st unix.Stat_t
	err := unix.Fstatat(dir, base, &st, unix.AT_SYMLINK_NOFOLLOW)
	return st.Mode&unix.S_IFMT == unix.S_IFDIR, err
}

func (t *tree) removeOne(dir int, base, name string, isDir bool, keep func(string) bool) error {
	if !isDir {
		if keep(name) {
			return nil
		}
		return unix.Unlinkat(dir, base, 0)
	}
	sub, err := unix.Openat(dir, base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := t.empty(sub, name, keep); err != nil || keep(name) {
		return err
	}
	return unix.Unlinkat(dir, base, unix.AT_REMOVEDIR)
}

// empty removes what is in an open folder, and closes it. The tree's depth
// bounds how deep it goes.
func (t *tree) empty(fd int, name string, keep func(string) bool) error {
	f := os.NewFile(uintptr(fd), "folder")
	defer f.Close()
	for {
		list, err := f.ReadDir(1000)
		for _, e := range list {
			if err := t.removeOne(fd, e.Name(), path.Join(name, e.Name()), e.IsDir(), keep); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// umask is what this process takes from the modes of what it makes. It can only
// be read without a change to it.
func umask() uint32 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0o777 // then each mode is set
	}
	_, rest, _ := strings.Cut(string(text), "\nUmask:")
	line, _, _ := strings.Cut(rest, "\n")
	mask, err := strconv.ParseUint(strings.TrimSpace(line), 8, 32)
	if err != nil {
		return 0o777
	}
	return uint32(mask)
}
