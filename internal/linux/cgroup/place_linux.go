package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxFile bounds what is read of one control file: a cgroup.procs of some
// 100,000 processes.
const maxFile = 1 << 20

// place is a group: a path below an open folder of its hierarchy. Everything
// goes by the descriptor, since a path from the root costs more, and could
// lead elsewhere after a mount.
type place struct {
	dir  *os.File
	path string
}

func (p place) String() string { return path.Join(p.dir.Name(), p.path) }

func (p place) sub(name string) place { return place{p.dir, path.Join(p.path, name)} }

func (p place) fail(op, file string, err error) error {
	return fmt.Errorf("cgroup: %w", &os.PathError{Op: op, Path: path.Join(p.String(), file), Err: err})
}

// open opens one file or folder of the group.
func (p place) open(file string, flags int) (*os.File, error) {
	name := path.Join(p.path, file)
	for {
		fd, err := unix.Openat(int(p.dir.Fd()), name, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, p.fail("open", file, err)
		}
		return os.NewFile(uintptr(fd), path.Join(p.dir.Name(), name)), nil
	}
}

// write writes a control file in one call, as the kernel wants it.
func (p place) write(file, value string) error {
	name := path.Join(p.path, file)
	for {
		fd, err := unix.Openat(int(p.dir.Fd()), name, unix.O_WRONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return p.fail("open", file, err)
		}
		_, err = unix.Write(fd, []byte(value))
		unix.Close(fd)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return p.fail("write "+strconv.Quote(value)+" to", file, err)
		}
		return nil
	}
}

// read reads a control file anew: an open v1 cgroup.procs goes on showing
// what it showed before.
func (p place) read(file string) (string, error) { return p.readBy(file, readAll) }

func (p place) readBy(file string, all func(fd int) (string, error)) (string, error) {
	name := path.Join(p.path, file)
	for {
		fd, err := unix.Openat(int(p.dir.Fd()), name, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return "", p.fail("open", file, err)
		}
		text, err := all(fd)
		unix.Close(fd)
		if err != nil {
			return "", p.fail("read", file, err)
		}
		return text, nil
	}
}

func readAll(fd int) (string, error) {
	var text []byte
	buf := make([]byte, 4096)
	for {
		n, err := unix.Read(fd, buf)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return "", err
		case n == 0:
			return string(text), nil
		case len(text)+n > maxFile:
			return "", fmt.Errorf("more than %d bytes", maxFile)
		default:
			text = append(text, buf[:n]...)
		}
	}
}

// readCounter reads a file that the kernel shows in one piece: where that ends
// with a line within the buffer it is all, and to ask for the end is a call too
// many. A cgroup.procs comes in pieces, and may end a line in each.
func readCounter(fd int) (string, error) {
	var buf [4096]byte
	n, err := unix.Pread(fd, buf[:], 0)
	if err == nil && n > 0 && n < len(buf) && buf[n-1] == '\n' {
		return string(buf[:n]), nil
	}
	return readAll(fd)
}

// number reads a file that holds one number.
func (p place) number(file string) (int64, error) {
	text, err := p.readBy(file, readCounter)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return 0, p.fail("read", file, err)
	}
	return n, nil
}

// value reads one key of a flat keyed file; a key that the kernel does not
// know yet counts nothing.
func (p place) value(file, key string) (int64, error) {
	text, err := p.readBy(file, readCounter)
	if err != nil {
		return 0, err
	}
	n, _ := keyed(text, key)
	return n, nil
}

func (p place) has(file string) bool {
	return unix.Faccessat(int(p.dir.Fd()), path.Join(p.path, file), unix.F_OK, 0) == nil
}

func (p place) mkdir(mode uint32) error {
	for {
		err := unix.Mkdirat(int(p.dir.Fd()), p.path, mode)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return p.fail("mkdir", "", err)
		}
		return nil
	}
}

// rmdir removes the group. One that is gone already is no error.
func (p place) rmdir() error {
	for {
		err := unix.Unlinkat(int(p.dir.Fd()), p.path, unix.AT_REMOVEDIR)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil && !errors.Is(err, unix.ENOENT):
			return p.fail("rmdir", "", err)
		}
		return nil
	}
}

// pids lists the processes of the group.
func (p place) pids() (pids []int, unseen bool, err error) {
	text, err := p.read("cgroup.procs")
	if err != nil {
		return nil, false, err
	}
	pids, unseen, err = parsePIDs(text)
	if err != nil {
		return nil, false, p.fail("read", "cgroup.procs", err)
	}
	return pids, unseen, nil
}

func openFolder(name string) (*os.File, error) {
	fd, err := unix.Open(name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("cgroup: %w", &os.PathError{Op: "open", Path: name, Err: err})
	}
	return os.NewFile(uintptr(fd), name), nil
}
