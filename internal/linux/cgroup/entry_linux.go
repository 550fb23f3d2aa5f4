package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Detach returns a v2 folder from which nothing else can be reached: the
// folder as a mount of its own that hangs nowhere, so that ".." stays in it.
// An open folder of the host's own mount would be a way out of the sandbox.
//
// It needs CAP_SYS_ADMIN over the mount namespace, which an unprivileged
// process has in one of its own. The given folder stays open.
func Detach(folder *os.File) (*os.File, error) {
	return openTree(folder, "", unix.AT_EMPTY_PATH)
}

func openTree(dir *os.File, name string, flags uint) (*os.File, error) {
	full := filepath.Join(dir.Name(), name)
	fd, err := unix.OpenTree(int(dir.Fd()), name, flags|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("cgroup: detach: %w", &os.PathError{Op: "open_tree", Path: full, Err: err})
	}
	return os.NewFile(uintptr(fd), full), nil
}

// openTasks opens the "tasks" file of a v1 leaf.
func (g *Group) openTasks(p place, r role) (*os.File, error) {
	tasks, err := p.open("tasks", unix.O_WRONLY)
	if err != nil {
		return nil, err
	}
	// The kernel compares the opener's user with the joining task's, unless
	// the opener is root. The folder above is closed to all other users.
	if o := g.limits.Owner; r == forCode && o != nil && os.Geteuid() != 0 && int(o.UID) != os.Geteuid() {
		g.code.Reopen = true
		if err := tasks.Chmod(0o666); err != nil {
			tasks.Close()
			return nil, p.fail("chmod", "tasks", err)
		}
	}
	return tasks, nil
}

// share gives the owner the right to be born into the code's v2 leaf. The
// kernel asks for the right to write the member lists of the leaf and of the
// group above both the leaf and the caller's own: that is the supervisor's
// folder, whose list is open to all; see makeFolder. An unprivileged
// supervisor can't give files away, and opens the leaf's list too.
func (g *Group) share(code place) error {
	o := g.limits.Owner
	if o == nil || int(o.UID) == os.Geteuid() {
		return nil
	}
	name := code.path + "/cgroup.procs"
	err := unix.Fchownat(int(code.dir.Fd()), name, int(o.UID), int(o.GID), unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.EPERM) {
		err = unix.Fchmodat(int(code.dir.Fd()), name, 0o666, 0)
	}
	if err != nil {
		return code.fail("share", "cgroup.procs", err)
	}
	return nil
}

// openV2 opens the ways into a v2 leaf.
func (e *Entry) openV2(p place, detach bool) error {
	if detach {
		if dir, err := openTree(p.dir, p.path, 0); err == nil {
			e.Dir, e.Detached = dir, true
			return nil
		}
	}
	dir, err := p.open(".", unix.O_PATH|unix.O_DIRECTORY)
	e.Dir = dir
	return err
}

func (e *Entry) files() []*os.File {
	all := append([]*os.File(nil), e.Tasks...)
	if e.Dir != nil {
		all = append(all, e.Dir)
	}
	return all
}

func (g *Group) closeEntries() {
	for _, e := range []*Entry{&g.code, &g.agent} {
		for _, f := range e.files() {
			f.Close()
		}
	}
}

// Reopen opens a file of Entry.Tasks anew under the rights of the calling
// process. It needs /proc.
func Reopen(tasks *os.File) (*os.File, error) {
	f, err := os.OpenFile("/proc/self/fd/"+strconv.Itoa(int(tasks.Fd())), os.O_WRONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("cgroup: open %s again: %w", tasks.Name(), err)
	}
	return f, nil
}
