package agent

import (
	pathpkg "path"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"tranca/internal/guest/message"
)

// lstat describes a path without following a last link.
func lstat(path string) (message.EntryInfo, error) {
	if err := checkPath(path); err != nil {
		return message.EntryInfo{}, err
	}
	trimmed := strings.TrimRight(path, "/")
	if trimmed == "" {
		trimmed = "/"
	}
	fd, err := openAt(unix.AT_FDCWD, trimmed, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return message.EntryInfo{}, onPath("reading the status of", path, err)
	}
	defer unix.Close(fd)
	shown := pathpkg.Clean(path)
	return entryOf(fd, pathpkg.Base(shown), shown)
}

func (a *agent) stat(path string) (appender, error) {
	return a.entry(func() (message.EntryInfo, error) { return lstat(a.abs(path)) })
}

// entry answers with what f returns.
func (a *agent) entry(f func() (message.EntryInfo, error)) (appender, error) {
	m := new(message.EntryResponse)
	err := a.id.do(func() (err error) {
		m.Entry, err = f()
		return err
	})
	return m, err
}

func (a *agent) makeDir(path string) (appender, error) {
	path = a.abs(path)
	return a.entry(func() (message.EntryInfo, error) {
		err := mkdirAll(path)
		if err == nil {
			return lstat(path)
		}
		// A file in the folder's place is the caller's mistake.
		if e, serr := lstat(path); serr == nil && e.Type != message.FileTypeDirectory {
			return e, invalid(strconv.Quote(path) + " is there and is no folder")
		}
		return message.EntryInfo{}, err
	})
}

// mkdirAll makes a folder and its parents. It fails with EEXIST if the folder
// is there.
func mkdirAll(path string) error {
	if err := checkPath(path); err != nil {
		return err
	}
	trimmed := strings.TrimRight(path, "/")
	if trimmed == "" {
		return onPath("making the folder", path, syscall.EEXIST)
	}
	err := mkdir(trimmed)
	if err != syscall.ENOENT {
		return onPath("making the folder", path, err)
	}
	for i := 1; i < len(trimmed); i++ {
		if trimmed[i] != '/' || trimmed[i-1] == '/' {
			continue
		}
		if err := mkdir(trimmed[:i]); err != nil && err != syscall.EEXIST && !isFolder(trimmed[:i]) {
			return onPath("making the folder", trimmed[:i], err)
		}
	}
	return onPath("making the folder", path, mkdir(trimmed))
}

// isFolder is asked where a folder can't be made: that may be so because it is
// there, on a file system that can't be written.
func isFolder(path string) bool {
	fd, err := openAt(unix.AT_FDCWD, path, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return false
	}
	_ = unix.Close(fd)
	return true
}

// mkdir makes one folder; it returns a bare errno where the system gives one.
func mkdir(path string) error {
	slash := strings.LastIndexByte(path, '/')
	name := path[slash+1:]
	if name == "." || name == ".." {
		if isFolder(path) {
			return syscall.EEXIST
		}
		return syscall.ENOENT
	}
	dir, err := openAt(unix.AT_FDCWD, path[:slash+1], unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	return unix.Mkdirat(dir, name, 0o755)
}

func (a *agent) move(from, to string) (appender, error) {
	from, err := a.named(from)
	if err != nil {
		return nil, err
	}
	if to, err = a.named(to); err != nil {
		return nil, err
	}
	return a.entry(func() (message.EntryInfo, error) {
		if _, err := lstat(from); err != nil {
			return message.EntryInfo{}, err
		}
		if err := rename(from, to); err != nil {
			return message.EntryInfo{}, err
		}
		return lstat(to)
	})
}

// rename makes the destination's parents where they are missing.
func rename(from, to string) error {
	fromDir, fromName, err := parent(from)
	if err != nil {
		return err
	}
	defer unix.Close(fromDir)
	if err := checkPath(to); err != nil {
		return err
	}
	trimmed := strings.TrimRight(to, "/")
	if folder := trimmed[:strings.LastIndexByte(trimmed, '/')+1]; folder != "" && !isFolder(folder) {
		if err := mkdirAll(folder); err != nil {
			return err
		}
	}
	toDir, toName, err := parent(to)
	if err != nil {
		return err
	}
	defer unix.Close(toDir)
	return onPath("moving to "+strconv.Quote(to), from, unix.Renameat2(fromDir, fromName, toDir, toName, 0))
}
