package agent

import (
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"tranca/internal/guest/message"
	"tranca/internal/guest/wire"
)

// procMagic is procfs. Its files would be the agent's own, whatever the path
// says: a link to /proc/self/mem must not lead into the agent's memory.
const procMagic = 0x9fa0

// abs makes a path absolute without resolving anything in it. What it begins
// with only to say "here" goes, so that "." and "./x" are named as anybody else
// names them.
func (a *agent) abs(path string) string {
	for strings.HasPrefix(path, "./") {
		path = strings.TrimLeft(path[1:], "/")
	}
	if strings.HasPrefix(path, "/") {
		return path
	}
	if path == "" || path == "." {
		return a.cfg.Workdir
	}
	return strings.TrimRight(a.cfg.Workdir, "/") + "/" + path
}

// named is abs for what has to be a name in a folder. "." is none, whatever abs
// makes of it: who removes or moves "." does not mean the folder of the sandbox.
func (a *agent) named(path string) (string, error) {
	if path == "" {
		return "", invalid("an empty path")
	}
	trimmed := strings.TrimRight(path, "/")
	if last := trimmed[strings.LastIndexByte(trimmed, '/')+1:]; last == "." || last == ".." {
		return "", invalid("path " + strconv.Quote(path) + " names no file in a folder")
	}
	return a.abs(path), nil
}

func checkPath(path string) error {
	switch {
	case path == "":
		return invalid("an empty path")
	case strings.IndexByte(path, 0) >= 0:
		return invalid("a NUL in path " + strconv.Quote(path))
	case len(path) >= message.MaxPath:
		return onPath("opening", path[:64]+"...", syscall.ENAMETOOLONG)
	}
	return nil
}

// openAt opens a path for the code's user. It never blocks on what is no
// regular file, and follows no link of procfs that leads to where no path does.
func openAt(dir int, path string, flags int, mode uint32) (int, error) {
	return openHow(dir, path, flags, mode, unix.RESOLVE_NO_MAGICLINKS)
}

// openBelow opens a path below a folder that holds no link on the way, however
// the code moves things about meanwhile.
func openBelow(dir int, path string, flags int) (int, error) {
	return openHow(dir, path, flags|unix.O_NOFOLLOW, 0,
		unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS|unix.RESOLVE_NO_MAGICLINKS)
}

func openHow(dir int, path string, flags int, mode uint32, resolve uint64) (int, error) {
	if flags&unix.O_PATH == 0 {
		flags |= unix.O_NONBLOCK | unix.O_NOCTTY
	}
	how := unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC), Mode: uint64(mode), Resolve: resolve}
	// EAGAIN says that something on the way was renamed meanwhile. The code
	// can keep that up for ever.
	for range 64 {
		fd, err := unix.Openat2(dir, path, &how)
		if err != syscall.EINTR && err != syscall.EAGAIN {
			return fd, err
		}
	}
	return -1, syscall.EAGAIN
}

// openRegular opens a file that holds data. Anything else is refused.
func openRegular(path string, flags int, mode uint32) (*os.File, *unix.Stat_t, error) {
	fd, err := openAt(unix.AT_FDCWD, path, flags, mode)
	if err == syscall.ENXIO || err == syscall.ENODEV {
		return nil, nil, invalid(strconv.Quote(path) + " is no regular file") // a FIFO or socket
	}
	if err != nil {
		return nil, nil, onPath("opening", path, err)
	}
	st, err := checkRegular(fd, path)
	if err != nil {
		_ = unix.Close(fd)
		return nil, nil, err
	}
	return os.NewFile(uintptr(fd), path), st, nil
}

func checkRegular(fd int, path string) (*unix.Stat_t, error) {
	st := new(unix.Stat_t)
	if err := unix.Fstat(fd, st); err != nil {
		return nil, onPath("reading the status of", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, invalid(strconv.Quote(path) + " is no regular file")
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return nil, onPath("reading the file system of", path, err)
	}
	if fs.Type == procMagic {
		return nil, &wire.Error{Code: wire.CodePermissionDenied,
			Message: strconv.Quote(path) + " is a file of /proc, which shows the agent instead of the code: read it with a program"}
	}
	return st, nil
}

// parent opens the folder that holds path and returns the name in it.
func parent(path string) (dir int, name string, err error) {
	if err := checkPath(path); err != nil {
		return -1, "", err
	}
	trimmed := strings.TrimRight(path, "/")
	slash := strings.LastIndexByte(trimmed, '/')
	name = trimmed[slash+1:]
	if name == "" || name == "." || name == ".." {
		return -1, "", invalid("path " + strconv.Quote(path) + " names no file in a folder")
	}
	dir, err = openAt(unix.AT_FDCWD, trimmed[:slash+1], unix.O_PATH|unix.O_DIRECTORY, 0)
	return dir, name, onPath("opening the folder of", path, err)
}

// entryOf describes what an O_PATH descriptor refers to.
func entryOf(fd int, name, path string) (message.EntryInfo, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return message.EntryInfo{}, onPath("reading the status of", path, err)
	}
	e := entryFrom(&st, name, path)
	if e.Type == message.FileTypeSymlink {
		var target [message.MaxPath]byte
		n, err := unix.Readlinkat(fd, "", target[:])
		if err != nil {
			return e, onPath("reading the link", path, err)
		}
		e.SymlinkTarget = string(target[:n])
	}
	return e, nil
}

func entryFrom(st *unix.Stat_t, name, path string) message.EntryInfo {
	e := message.EntryInfo{
		Name: name, Path: path, Size: st.Size, Mode: st.Mode & 0o7777, UID: st.Uid, GID: st.Gid,
		ModifiedTime: message.Timestamp{Seconds: st.Mtim.Sec, Nanos: int32(st.Mtim.Nsec)},
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		e.Type = message.FileTypeFile
	case unix.S_IFDIR:
		e.Type = message.FileTypeDirectory
	case unix.S_IFLNK:
		e.Type = message.FileTypeSymlink
	}
	return e
}
