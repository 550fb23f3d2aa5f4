package cgroup

import (
	"errors"
	"os"
	"path"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// The controllers that a sandbox can use, by their names in the kernel.
// cpuacct exists under v1 only; every v2 group counts CPU time by itself.
const (
	ctlMemory  = "memory"
	ctlPIDs    = "pids"
	ctlCPU     = "cpu"
	ctlCPUAcct = "cpuacct"
)

// Tree is the place where this supervisor makes groups. Safe for concurrent
// use.
type Tree struct {
	support Support
	// v1 lists the hierarchies in use; one may carry several controllers.
	v1 []*hierarchy
	// v2 is nil where there is none.
	v2 *hierarchy

	mu     sync.Mutex
	events *watcher // of v2; nil until it is needed
	closed bool
}

// hierarchy is this supervisor's folder in one hierarchy.
type hierarchy struct {
	v2   bool
	base string   // where the folder is in
	dir  *os.File // the folder itself
	// controllers are those that were tried and work. Under v2 they are
	// enabled for the groups below dir.
	controllers []string
	// enabled are the controllers that had to be switched on in base.
	enabled []string
	// leaf is where this process had to move, under base; empty if it didn't.
	leaf string
}

func (h *hierarchy) has(controller string) bool {
	return slices.Contains(h.controllers, controller)
}

// Support says what was found by trying.
func (t *Tree) Support() Support { return t.support }

// at returns the hierarchy that carries a controller, or nil.
func (t *Tree) at(controller string) *hierarchy {
	for _, h := range t.v1 {
		if h.has(controller) {
			return h
		}
	}
	if t.v2 != nil && t.v2.has(controller) {
		return t.v2
	}
	return nil
}

// Close removes the supervisor's own folders. Its groups must be destroyed
// before. It may be called twice.
func (t *Tree) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	t.closed = true
	if t.events != nil {
		t.events.close()
	}
	var failed []error
	for _, h := range t.v1 {
		failed = append(failed, h.close())
	}
	if t.v2 != nil {
		failed = append(failed, t.v2.close())
	}
	return errors.Join(failed...)
}

// close removes the folder, and puts back what was changed above it where
// nobody else has come to need it.
func (h *hierarchy) close() error {
	err := retryRmdir(place{h.dir, "."}, h.dir.Name(), time.Second)
	h.dir.Close()
	base, openErr := openFolder(h.base)
	if openErr != nil {
		return errors.Join(err, openErr)
	}
	defer base.Close()
	p := place{base, "."}
	for _, c := range h.enabled {
		// The kernel refuses while another supervisor's folder uses it.
		_ = p.write("cgroup.subtree_control", "-"+c)
	}
	if h.leaf != "" {
		moveBack(p, h.leaf)
	}
	return err
}

// retryRmdir removes a folder by its path, for as long as the kernel still
// takes apart what was in it. Another tree of the same supervisor may have
// groups in it: then it stays, and goes with the last one.
func retryRmdir(p place, name string, limit time.Duration) error {
	for end := time.Now().Add(limit); ; time.Sleep(time.Millisecond) {
		err := unix.Rmdir(name)
		if err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		if below, err := subgroups(p); err == nil && len(below) > 0 {
			return nil
		}
		if time.Now().After(end) {
			return p.fail("rmdir", "", err)
		}
	}
}

// folderName is the name of a supervisor's folder.
func folderName(id string) string { return "tranca-" + id }

// leafName is the name of the group that a supervisor moved to.
func leafName(id string) string { return "tranca-" + id + ".self" }

// moveBack undoes moveSelf as far as it can be: the kernel refuses while
// somebody else's groups need controllers here.
func moveBack(base place, leaf string) {
	if base.write("cgroup.procs", pidOfSelf()) == nil {
		_ = base.sub(path.Base(leaf)).rmdir()
	}
}
