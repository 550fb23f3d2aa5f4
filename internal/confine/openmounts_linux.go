package confine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/linux/cleanup"
	"tranca/internal/linux/forkexec"
	"tranca/internal/linux/mount"
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
	s.NoNewPrivileges()
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
		src, err := openSource(pm)
		if err != nil {
			return err
		}
		pl.sources = append(pl.sources, src)
		bind, err := bindOf(pm, src)
		if err != nil {
			return err
		}
		if h.Root {
			uid, gid := a.CodeIDs()
			t, err := cloneMapped(h.Backend, pm, src, uid, gid)
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

// cloneMapped clones a mount whose owner appears inside as the code's user, so
// that the code can use what the operator mounted, and files that it makes
// belong to that owner outside.
func cloneMapped(backend string, pm *tranca.Mount, src source, uid, gid uint32) (mount.Tree, error) {
	// With what the host has mounted below: without it the code would see what
	// that covers.
	t, err := mount.Clone(src.fd, "", true)
	if err != nil {
		return t, fmt.Errorf("mount %s: %w", pm.Source, err)
	}
	ns, err := userNamespace([]IDMap{{src.owner, uid}}, []IDMap{{src.group, gid}})
	if err != nil {
		t.Close()
		return t, fmt.Errorf("mount %s: %w", pm.Source, err)
	}
	defer ns.Close()
	err = t.MapIDs(int(ns.Fd()))
	if err != nil && (pm.Writable || pm.Cow || !errors.Is(err, unix.EINVAL)) {
		t.Close()
		return t, &tranca.RefusalError{Backend: backend, Problems: []tranca.Problem{{
			Item: tranca.ItemMounts, Asked: "mount " + pm.Source + " with its owner mapped to the code's user",
			Missing: "the file system there can't map owners (" + err.Error() + ")",
			Mend:    "mount a folder of ext4, xfs, btrfs or tmpfs, or read-only",
		}}}
	}
	// A read-only mount that can't be mapped shows what everybody may read.
	return t, nil
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
