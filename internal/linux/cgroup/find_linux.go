package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/linux/supervisor"
)

// Options say for whom and where groups are made.
type Options struct {
	// ID is the supervisor's identity of package supervisor.
	ID string
	// Paths are folders that the operator names for tranca, absolute, in a
	// cgroup file system; under v1 one for each hierarchy. A hierarchy
	// without one is looked through for a place.
	Paths []string
	// Bus is the address of the D-Bus on which the user's systemd listens.
	// Empty means that of the calling user; "none" means not to ask there.
	Bus string
	// V2 uses the v2 tree of a hybrid host as well, where v1 carries all
	// controllers. It brings a cgroup.kill for the end of a sandbox, but costs
	// each start and end some 0.3 ms together, so it is left alone otherwise.
	V2 bool
	// Note is told of each folder before it is made, so that [Sweep] finds it
	// after a kill -9. Nil where nobody sweeps.
	Note func(path string) error
}

// finder is one search.
type finder struct {
	Options
	euid    int
	members []membership
	mounts  []mount
	swap    bool // the host has swap space
	wsl     bool
}

// Find looks for the places where this process may make groups, by making
// one, writing limits and reading them back. It fails only where nothing can
// be found out; a host that offers nothing gives a Tree whose [Support] says
// why. Close the tree in any case.
//
// Under v2, processes and limited children exclude each other in one folder.
// Where the only delegated folder is the one that this process lives in, it
// moves into a leaf below it, for as long as the tree is open.
func Find(o Options) (*Tree, error) {
	if !supervisor.ValidID(o.ID) {
		return nil, fmt.Errorf("cgroup: supervisor id %q: %w", o.ID, tranca.ErrInvalid)
	}
	for _, p := range o.Paths {
		if !path.IsAbs(p) || path.Clean(p) != p {
			return nil, fmt.Errorf("cgroup: path %q is not absolute and clean: %w", p, tranca.ErrInvalid)
		}
	}
	if o.Note == nil {
		o.Note = func(string) error { return nil }
	}
	f := &finder{Options: o, euid: os.Geteuid()}
	if err := f.look(); err != nil {
		return nil, err
	}
	t := &Tree{}
	f.findV1(t)
	if err := f.findV2(t); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	f.conclude(t)
	return t, nil
}

// look reads what the kernel says about this process.
func (f *finder) look() error {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("cgroup: %w", err)
	}
	if f.mounts, err = parseMounts(string(text)); err != nil {
		return err
	}
	if err := f.lookMembers(); err != nil {
		return err
	}
	swaps, err := os.ReadFile("/proc/swaps")
	// Not to know counts as having some.
	f.swap = err != nil || strings.Count(string(swaps), "\n") > 1
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	f.wsl = strings.Contains(strings.ToLower(string(release)), "microsoft")
	return nil //nolint:nilerr // see above
}

func (f *finder) lookMembers() error {
	text, err := os.ReadFile("/proc/self/cgroup")
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a kernel without cgroups: there is no mount either
	}
	if err != nil {
		return fmt.Errorf("cgroup: %w", err)
	}
	f.members, err = parseMemberships(string(text))
	return err
}

// findV1 tries each v1 controller in the hierarchy that carries it.
func (f *finder) findV1(t *Tree) {
	byBase := map[string]*hierarchy{}
	for _, c := range []string{ctlMemory, ctlPIDs, ctlCPU, ctlCPUAcct} {
		bases := f.basesV1(c)
		if len(bases) == 0 {
			continue
		}
		var feature Feature
		for _, base := range bases {
			feature = f.tryV1(t, byBase, base, c)
			if feature.Held {
				break
			}
		}
		*t.support.of(c) = feature
	}
}

// tryV1 makes the supervisor's folder in base, unless it is there, and tries
// the controller in it.
func (f *finder) tryV1(t *Tree, byBase map[string]*hierarchy, base, controller string) Feature {
	h := byBase[base]
	made := h == nil
	if made {
		var err error
		if h, err = f.makeFolder(base, false); err != nil {
			return f.explain(base, false, err)
		}
	}
	feature := f.try(place{h.dir, "."}, controller, false)
	switch {
	case feature.Held:
		h.controllers = append(h.controllers, controller)
		if made {
			byBase[base] = h
			t.v1 = append(t.v1, h)
		}
	case made:
		_ = h.close()
	}
	return feature
}

// basesV1 lists the folders to try for a controller, the best first: what the
// operator named, and this process's own group, so that limits that are set
// on it hold for its sandboxes too. Root falls back to the mount itself where
// its own group is not to be seen, as in some containers.
func (f *finder) basesV1(controller string) []string {
	var bases []string
	add := func(b string) {
		if !slices.Contains(bases, b) {
			bases = append(bases, b)
		}
	}
	for _, m := range f.mounts {
		if m.v2 || !slices.Contains(m.controllers, controller) {
			continue
		}
		for _, p := range f.named(m) {
			add(p)
		}
		own, seen := f.own(m)
		if seen {
			add(own)
		}
		if !seen && f.euid == 0 {
			add(m.point)
		}
	}
	return bases
}

// named lists the operator's folders that lie in a mount, and in none that is
// mounted further down.
func (f *finder) named(m mount) []string {
	var in []string
	for _, p := range f.Paths {
		if within(p, m.point) && !slices.ContainsFunc(f.mounts, func(o mount) bool {
			return len(o.point) > len(m.point) && within(p, o.point)
		}) {
			in = append(in, p)
		}
	}
	return in
}

// own returns the folder of this process's group in a mount.
func (f *finder) own(m mount) (string, bool) {
	for _, mem := range f.members {
		if mem.v2() != m.v2 || (!m.v2 && !slices.Equal(mem.controllers, v1Names(m, mem))) {
			continue
		}
		if dir, ok := m.folder(mem.path); ok {
			return dir, unix.Access(dir, unix.F_OK) == nil
		}
	}
	return "", false
}

// v1Names returns the controllers of mem that the mount carries too: all of
// them if both are of the same hierarchy.
func v1Names(m mount, mem membership) []string {
	var both []string
	for _, c := range mem.controllers {
		if slices.Contains(m.controllers, c) {
			both = append(both, c)
		}
	}
	return both
}

// makeFolder makes the supervisor's own folder in base.
func (f *finder) makeFolder(base string, v2 bool) (*hierarchy, error) {
	dir := path.Join(base, folderName(f.ID))
	if err := f.Note(dir); err != nil {
		return nil, err
	}
	// Nobody else may reach the v1 "tasks" files in it, which an unprivileged
	// supervisor has to open to other users; see Group.openTasks.
	mode := uint32(0o755)
	if f.euid != 0 && !v2 {
		mode = 0o700
	}
	if err := unix.Mkdir(dir, mode); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, &os.PathError{Op: "mkdir", Path: dir, Err: err}
	}
	opened, err := openFolder(dir)
	if err != nil {
		return nil, errors.Join(err, unix.Rmdir(dir))
	}
	h := &hierarchy{v2: v2, base: base, dir: opened}
	if v2 {
		// For Group.share. It gives nobody else anything: to move a process
		// one needs the right over its new leaf as well, and over the group
		// above it and the process's present one.
		if err := unix.Fchmodat(int(opened.Fd()), "cgroup.procs", 0o666, 0); err != nil {
			err = &os.PathError{Op: "chmod", Path: path.Join(dir, "cgroup.procs"), Err: err}
			return nil, errors.Join(err, h.close())
		}
	}
	return h, nil
}
