package agent

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"tranca/internal/guest/message"
	"tranca/internal/guest/wire"
)

// list answers with a folder's entries, page by page.
func (a *agent) list(c *wire.Call) error {
	var req message.ListDirRequest
	if err := receive(c, &req); err != nil {
		return err
	}
	l := &lister{base: strings.TrimRight(a.abs(req.Path), "/"), depth: max(int(req.Depth), 1)}
	defer l.close()
	if err := a.id.do(func() error { return l.open(a.abs(req.Path)) }); err != nil {
		return err
	}
	for {
		var page message.ListDirResponse
		if err := a.id.do(func() (err error) { page.Entries, err = l.page(); return err }); err != nil {
			return err
		}
		if len(page.Entries) == 0 {
			return c.CloseSend()
		}
		if err := c.Send(context.Background(), page.Append(nil), false); err != nil {
			return err
		}
	}
}

// lister walks a folder in lexical order, parents first, never following a
// link. It keeps the names that are still to come and one descriptor, however
// deep it is, and opens everything anew from the top: the code may move things
// about meanwhile.
type lister struct {
	root   *os.File
	base   string // how the caller named the root
	depth  int
	levels []level
	count  int // entries given out and names still to come
}

// level is a folder on the way down.
type level struct {
	rel   string // below the root; empty is the root
	names []string
}

func (l *lister) open(path string) error {
	if err := checkPath(path); err != nil {
		return err
	}
	// A last link isn't followed either.
	fd, err := openAt(unix.AT_FDCWD, path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err == syscall.ENOTDIR || err == syscall.ELOOP {
		return invalid("listing " + strconv.Quote(path) + ": not a folder")
	}
	if err != nil {
		return onPath("listing", path, err)
	}
	l.root = os.NewFile(uintptr(fd), path)
	return l.enter("", l.root)
}

func (l *lister) close() {
	if l.root != nil {
		l.root.Close()
	}
}

// enter reads a folder's names.
func (l *lister) enter(rel string, dir *os.File) error {
	var names []string
	for {
		some, err := dir.Readdirnames(1024)
		names = append(names, some...)
		l.count += len(some)
		if l.count > message.MaxListed {
			return invalid("listing " + strconv.Quote(l.base) + ": more than " +
				strconv.Itoa(message.MaxListed) + " entries: list a folder in it, or with less depth")
		}
		if len(some) == 0 {
			if err != nil && !errorsIsEOF(err) {
				return onPath("listing", l.base+"/"+rel, err)
			}
			break
		}
	}
	slices.Sort(names)
	l.levels = append(l.levels, level{rel, names})
	return nil
}

// page returns the next entries; none at the end.
func (l *lister) page() ([]message.EntryInfo, error) {
	var page []message.EntryInfo
	size := 0
	for len(l.levels) > 0 && len(page) < message.MaxPage && size < message.MaxPageBytes {
		top := &l.levels[len(l.levels)-1]
		if len(top.names) == 0 {
			l.levels = l.levels[:len(l.levels)-1]
			continue
		}
		name := top.names[0]
		top.names = top.names[1:]
		e, err := l.visit(top.rel, name)
		if err == syscall.ENOENT {
			continue // it has gone meanwhile
		}
		if err != nil {
			return nil, err
		}
		page = append(page, e)
		size += len(e.Name) + len(e.Path) + len(e.SymlinkTarget)
	}
	return page, nil
}

// visit describes one entry and, if it is a folder above the last level, goes
// into it.
func (l *lister) visit(folder, name string) (message.EntryInfo, error) {
	rel := name
	if folder != "" {
		rel = folder + "/" + name
	}
	path := l.base + "/" + rel
	if err := checkPath(path); err != nil {
		return message.EntryInfo{}, err
	}
	fd, err := openBelow(int(l.root.Fd()), rel, unix.O_PATH)
	if err == syscall.ENOENT || err == syscall.ELOOP || err == syscall.ENOTDIR {
		return message.EntryInfo{}, syscall.ENOENT
	}
	if err != nil {
		return message.EntryInfo{}, onPath("listing", path, err)
	}
	defer unix.Close(fd)
	e, err := entryOf(fd, name, path)
	if err != nil || e.Type != message.FileTypeDirectory || len(l.levels) >= l.depth {
		return e, err
	}
	sub, err := openBelow(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return e, onPath("listing", path, err)
	}
	dir := os.NewFile(uintptr(sub), path)
	defer dir.Close()
	return e, l.enter(rel, dir)
}
