package changeset

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
)

// inside refuses links in every part of a path, what leaves the folder that it
// starts from, and other file systems in it.
const inside = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV

// openSource opens a folder of the host by its absolute path, as a place.
func openSource(source string) (int, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, source, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC | unix.O_NOFOLLOW,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: source, Err: err}
	}
	return fd, nil
}

// mostTries bounds how often one open is tried: for about a second.
const mostTries = 44

// openInside opens a path below a folder.
func openInside(folder int, name string, flags int) (int, error) {
	how := unix.OpenHow{Flags: uint64(flags) | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: inside}
	fd, err := unix.Openat2(folder, name, &how)
	// EAGAIN says that something was renamed meanwhile, or that there is a lease
	// of the file, whose holder is asked to give it up and may take its time.
	for try := 1; try < mostTries && (err == unix.EINTR || err == unix.EAGAIN); try++ {
		time.Sleep(time.Duration(try) * time.Millisecond)
		fd, err = unix.Openat2(folder, name, &how)
	}
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return fd, nil
}

const (
	folderFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NONBLOCK
	fileFlags   = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY
)

// openOwn is openInside for a tree that is ours and that nobody else uses any
// more: a mode that keeps its owner out is widened.
func openOwn(folder int, name string, flags int) (int, error) {
	fd, err := openInside(folder, name, flags)
	if !errors.Is(err, unix.EACCES) {
		return fd, err
	}
	at, perr := openInside(folder, name, unix.O_PATH)
	if perr != nil {
		return -1, err
	}
	defer unix.Close(at)
	var st unix.Stat_t
	if serr := unix.Fstat(at, &st); serr != nil || !folderOrFile(st.Mode) {
		return -1, err
	}
	if cerr := os.Chmod("/proc/self/fd/"+strconv.Itoa(at), os.FileMode(st.Mode&0o777|0o700)); cerr != nil {
		return -1, err
	}
	return openInside(folder, name, flags)
}

func folderOrFile(mode uint32) bool {
	return mode&unix.S_IFMT == unix.S_IFDIR || mode&unix.S_IFMT == unix.S_IFREG
}

// statAt looks at an entry of a folder without following it; nil is that there
// is none.
func statAt(folder int, name string) (*unix.Stat_t, error) {
	var st unix.Stat_t
	err := unix.Fstatat(folder, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return nil, nil
	}
	if err != nil {
		return nil, &os.PathError{Op: "look at", Path: name, Err: err}
	}
	return &st, nil
}

// readLink reads the target of a link of a folder.
func readLink(folder int, name string) (string, error) {
	buf := make([]byte, maxPath+1)
	n, err := unix.Readlinkat(folder, name, buf)
	if err != nil {
		return "", &os.PathError{Op: "read link", Path: name, Err: err}
	}
	return string(buf[:n]), nil
}

// list returns the names in a folder, sorted, at most so many; more says that
// there are others.
func list(folder int, most int) (names []string, more bool, err error) {
	// A descriptor of its own: os.File closes it, and reads from the beginning.
	fd, err := openInside(folder, ".", folderFlags)
	if err != nil {
		return nil, false, err
	}
	f := os.NewFile(uintptr(fd), "folder")
	defer f.Close()
	for len(names) <= most {
		part, err := f.Readdirnames(1024)
		names = append(names, part...)
		if len(part) == 0 {
			if err != nil && !errors.Is(err, io.EOF) {
				return nil, false, err
			}
			break
		}
	}
	slices.Sort(names)
	if len(names) > most {
		return names[:most], true, nil
	}
	return names, false, nil
}

func typeOf(mode uint32) tranca.FileType {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return tranca.FileRegular
	case unix.S_IFDIR:
		return tranca.FileDirectory
	case unix.S_IFLNK:
		return tranca.FileSymlink
	}
	return tranca.FileOther
}

func stateOf(st *unix.Stat_t) *State {
	return &State{
		Type: typeOf(st.Mode), Mode: st.Mode & 0o7777, UID: st.Uid, GID: st.Gid,
		Size: st.Size, Inode: st.Ino, Modified: st.Mtim.Nano(), Changed: st.Ctim.Nano(),
	}
}

// identify completes what is known of a mount by its open source.
func (m *Mount) identify(fd int) error {
	var st unix.Stat_t
	var fs unix.Statfs_t
	if err := unix.Fstat(fd, &st); err != nil {
		return &os.PathError{Op: "look at", Path: m.Source, Err: err}
	}
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return &os.PathError{Op: "look at", Path: m.Source, Err: err}
	}
	m.Inode, m.Owner, m.Group = st.Ino, st.Uid, st.Gid
	m.FileSystem = fmt.Sprintf("%x-%x-%x", uint64(fs.Type), uint32(fs.Fsid.Val[0]), uint32(fs.Fsid.Val[1]))
	return nil
}

// open opens the mount's source, if it still is the folder that was mounted.
func (m *Mount) open() (int, error) {
	fd, err := openSource(m.Source)
	switch {
	case errors.Is(err, unix.ENOENT):
		return -1, fmt.Errorf("the folder %s is gone", m.Source)
	case errors.Is(err, unix.ELOOP):
		return -1, fmt.Errorf("the folder %s has become a link, or a folder above it has", m.Source)
	case errors.Is(err, unix.ENOTDIR):
		return -1, fmt.Errorf("%s is no folder any more", m.Source)
	case err != nil:
		return -1, err
	}
	now := Mount{Source: m.Source}
	if err := now.identify(fd); err != nil {
		unix.Close(fd)
		return -1, err
	}
	if now.Inode != m.Inode || now.FileSystem != m.FileSystem {
		unix.Close(fd)
		return -1, fmt.Errorf("the folder %s is another one than was mounted", m.Source)
	}
	return fd, nil
}
