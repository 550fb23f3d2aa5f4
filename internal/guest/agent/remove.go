package agent

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"tranca/internal/guest/wire"
)

// removeStep bounds how many entries are removed before anybody looks whether
// the caller still waits.
const removeStep = 1024

// remove deletes a path with all below it. A missing one is no error.
func (a *agent) remove(c *wire.Call, path string) error {
	path, err := a.named(path)
	if err != nil {
		return err
	}
	r := &remover{path: path, top: -1, cur: -1}
	defer r.close()
	done := false
	for !done {
		if a.givenUp(c) {
			return &wire.Error{Code: wire.CodeCanceled, Message: "given up"}
		}
		err := a.id.do(func() (err error) {
			done, err = r.step()
			return err
		})
		if err == syscall.ENOENT {
			return nil
		}
		if err != nil {
			return onPath("removing", path, err)
		}
	}
	return nil
}

// remover deletes a tree with two descriptors, however deep it is: it goes down
// by name without following a link and up by "..", and checks that it comes
// out where it went in. If the code moves a folder away meanwhile, it starts
// again from the top.
type remover struct {
	path   string
	top    int    // the folder that holds the path
	name   string // the path's name in it
	cur    int    // the folder that is being emptied; -1 at the top
	levels []removed
	moved  int
}

// removed is a folder on the way down, as its parent knows it.
type removed struct {
	name      string
	parentDev uint64
	parentIno uint64
}

// maxMoved bounds how often the code may make the removal start again.
const maxMoved = 64

func (r *remover) close() {
	for _, fd := range []int{r.top, r.cur} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

// step removes some entries. It reports true when the path is gone.
func (r *remover) step() (bool, error) {
	if r.top < 0 {
		dir, name, err := parent(r.path)
		if err != nil {
			return false, bare(err)
		}
		r.top, r.name = dir, name
	}
	for range removeStep {
		if r.cur < 0 {
			done, err := r.begin()
			if done || err != nil {
				return done, err
			}
			continue
		}
		if err := r.empty(); err != nil {
			return false, err
		}
	}
	return false, nil
}

// bare takes an errno out of an error where it is ENOENT, which is no error to
// a removal.
func bare(err error) error {
	if toWire(err).Code == wire.CodeNotFound {
		return syscall.ENOENT
	}
	return err
}

// begin removes the path itself, or goes into it.
func (r *remover) begin() (bool, error) {
	err := unlink(r.top, r.name)
	if err == nil || err == syscall.ENOENT {
		return true, nil
	}
	if err != syscall.ENOTEMPTY && err != syscall.EEXIST {
		return false, err
	}
	return false, r.down(r.top, r.name)
}

// unlink removes a file, or a folder that is empty. It never follows a link.
func unlink(dir int, name string) error {
	err := unix.Unlinkat(dir, name, 0)
	// Linux says EISDIR of a folder; POSIX and some file systems say EPERM.
	if err != syscall.EISDIR && err != syscall.EPERM {
		return err
	}
	if rerr := unix.Unlinkat(dir, name, unix.AT_REMOVEDIR); rerr != syscall.ENOTDIR {
		return rerr
	}
	return err
}

// down goes into a folder.
func (r *remover) down(parent int, name string) error {
	var st unix.Stat_t
	if err := unix.Fstat(parent, &st); err != nil {
		return err
	}
	fd, err := openBelow(parent, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err == syscall.ENOENT || err == syscall.ENOTDIR || err == syscall.ELOOP {
		return nil // it has gone meanwhile, or is something else now
	}
	if err != nil {
		return err
	}
	if r.cur >= 0 {
		_ = unix.Close(r.cur)
	}
	r.cur = fd
	r.levels = append(r.levels, removed{name: name, parentDev: st.Dev, parentIno: st.Ino})
	return nil
}

// empty removes what it can of the current folder, goes down into the first
// folder that isn't empty, or up if nothing is left.
func (r *remover) empty() error {
	names, err := readNames(r.cur)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return r.up()
	}
	for _, name := range names {
		err := unlink(r.cur, name)
		switch err {
		case nil, syscall.ENOENT:
		case syscall.ENOTEMPTY, syscall.EEXIST:
			return r.down(r.cur, name)
		default:
			return err
		}
	}
	return nil
}

// readNames reads some names from the start of a folder.
func readNames(dir int) ([]string, error) {
	fd, err := openBelow(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "folder")
	defer f.Close()
	names, err := f.Readdirnames(128)
	if len(names) > 0 || errorsIsEOF(err) {
		err = nil
	}
	return names, err
}

// up removes the emptied folder from its parent.
func (r *remover) up() error {
	last := r.levels[len(r.levels)-1]
	r.levels = r.levels[:len(r.levels)-1]
	if len(r.levels) == 0 {
		_ = unix.Close(r.cur)
		r.cur = -1
		return nil // begin removes it
	}
	fd, err := unix.Openat(r.cur, "..", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	_ = unix.Close(r.cur)
	r.cur = fd
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Dev != last.parentDev || st.Ino != last.parentIno {
		_ = unix.Close(fd)
		r.cur, r.levels = -1, nil
		if r.moved++; r.moved > maxMoved {
			return syscall.EBUSY
		}
		return nil
	}
	if err := unlink(r.cur, last.name); err != nil && err != syscall.ENOENT &&
		err != syscall.ENOTEMPTY && err != syscall.EEXIST {
		return err
	}
	return nil
}
