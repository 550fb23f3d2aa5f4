package confine

import (
	"context"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/guest/bootspec"
	"tranca/internal/linux/cleanup"
	"tranca/internal/linux/forkexec"
)

// Prepare makes what a plan shows of the host: the policy's mounts and, where
// it is on disk, the writable space. The plan holds it until CloseMounts, which
// it leaves to the stack.
func (h *Host) Prepare(ctx context.Context, pl *Plan, a *Allotment, cu *cleanup.Stack) error {
	if err := h.openMounts(pl, a, cu); err != nil {
		return err
	}
	if pl.Policy.Limits.Disk.Backing != tranca.BackingFile {
		return nil
	}
	space, err := h.fileSpace(ctx, a, pl)
	if err != nil {
		return err
	}
	pl.Boot.ScratchFD = 1 // numbered when all descriptors are known
	pl.mountFDs = append(pl.mountFDs, space.FD())
	return nil
}

// Script is what the process does before its exec that builds the plan's root:
// it has the given descriptors from 0 on and then those of the plan, and is in
// new namespaces. An agent that starts code has a control group beside the
// code's, and is told how code gets into that; what serves a kernel of the
// sandbox's own is bounded together with it.
func (pl *Plan) Script(a *Allotment, starts bool, files []*os.File, image *os.File, argv, env []string) (*forkexec.Script, error) {
	s := forkexec.New(pl.Spaces).WithPIDFD()
	s.DefaultSignals()
	fds := make([]int, 0, 16)
	for _, f := range files {
		fds = append(fds, int(f.Fd()))
	}
	switch {
	case a.Group != nil && starts:
		Enter(s, a.Group.Agent())
		pl.tellGroup(a.Group.Code(), &fds)
	case a.Group != nil:
		Enter(s, a.Group.Code())
	}
	if !starts {
		s.Unshare(unix.CLONE_NEWCGROUP)
	}
	first := len(fds)
	fds = append(fds, pl.mountFDs...)
	pl.number(first)
	if a.Block != nil {
		// It keeps the locks of its user ids: when this process is killed
		// nobody takes them before the last of its programs is dead.
		for _, lock := range a.Block.Locks() {
			fds = append(fds, int(lock.Fd()))
		}
	}
	s.Setsid()
	s.ParentDeathSignal(syscall.Signal(pl.Boot.DeathSignal))
	moved := s.Files(fds, int(image.Fd()))
	s.Capabilities(bootCaps)
	s.Ambient(bootCaps)
	if !pl.Boot.Omit.Has(bootspec.Privileges) {
		s.NoNewPrivileges()
	}
	s.ExecFD(moved[0], argv, env)
	return s, nil
}

// openMounts opens and checks the policy's mounts and describes them to the
// agent. Root clones them here, with owners mapped to the code's user; an
// unprivileged agent clones them itself, from the path that was checked here.
func (h *Host) openMounts(pl *Plan, a *Allotment, cu *cleanup.Stack) error {
	cu.Add(pl.CloseMounts)
	for i := range pl.Policy.Mounts {
		pm := &pl.Policy.Mounts[i]
		src, err := OpenSource(pm)
		if err != nil {
			return err
		}
		pl.sources = append(pl.sources, src)
		bind := src.Bind
		if h.Root {
			uid, gid := pl.codeIDs(a)
			t, err := src.CloneMapped(h.Backend, uid, gid, Mapped{})
			if err != nil {
				return err
			}
			bind.FD = 1 // numbered when all descriptors are known
			pl.mountFDs = append(pl.mountFDs, t.FD())
		} else {
			bind.Source = pm.Source
		}
		pl.Boot.Binds = append(pl.Boot.Binds, bind)
	}
	return nil
}

// userNamespace makes a user namespace with the given maps, for the one call
// that reads them.
func userNamespace(uids, gids []IDMap) (*os.File, error) {
	s := forkexec.New(unix.CLONE_NEWUSER).WithPIDFD()
	s.ParentDeathSignal(unix.SIGKILL)
	c, err := s.Hold()
	if err != nil {
		return nil, err
	}
	defer c.Reap()
	if err := WriteMaps(c.PID, uids, gids, true); err != nil {
		return nil, err
	}
	return os.Open(fmt.Sprintf("/proc/%d/ns/user", c.PID))
}
