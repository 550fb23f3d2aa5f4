package process

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

// boot makes one sandbox. On error nothing of it is left.
func (b *Backend) boot(ctx context.Context, p *tranca.Policy) (*box, error) {
	pl, err := b.newPlan(p)
	if err != nil {
		return nil, err
	}
	var cu cleanup.Stack
	defer cu.Clean()
	m := &box{
		limits:    p.Limits,
		countsCPU: b.host.support.CPUTime.Held, boundsCPU: b.host.support.CPU.Held,
		limit:   make(chan tranca.Reason, 1),
		begun:   make(chan struct{}),
		closing: make(chan struct{}), end: newDestruction(),
		hit: map[tranca.LimitHit]bool{},
	}
	a, err := b.allot(pl.cgroups)
	if err != nil {
		return nil, err
	}
	cu.Add(func() { _ = a.giveBack() })
	m.allotment = a
	if err := b.openMounts(pl, m, &cu); err != nil {
		return nil, err
	}
	if p.Limits.Disk.Backing == tranca.BackingFile {
		space, err := b.fileSpace(ctx, m, pl)
		if err != nil {
			return nil, err
		}
		pl.boot.ScratchFD = 1 // numbered when all descriptors are known
		pl.mountFDs = append(pl.mountFDs, space.FD())
	}
	if err := b.start(ctx, m, pl); err != nil {
		return nil, err
	}
	m.enforcement = b.statement(pl)
	cu.Release()
	m.watch.Add(1)
	go m.run()
	return m, nil
}

// start forks the agent, maps its users, tells it what to build and takes its
// answer.
func (b *Backend) start(ctx context.Context, m *box, pl *plan) error {
	spawn := b.spawner.spawn
	if m.network != nil && pl.spaces&unix.CLONE_NEWNET != 0 {
		pl.spaces &^= unix.CLONE_NEWNET
		spawn = func(s *forkexec.Script) (forkexec.Child, error) { return b.spawner.spawnIn(m.network, s) }
	}
	a, err := startAgent(ctx, spawn, &pl.boot,
		func(files []*os.File) (*forkexec.Script, error) { return b.script(m, pl, files) },
		func(ctx context.Context, pid int) error { return b.mapUsers(ctx, pid, m, pl) })
	pl.closeMounts()
	if err != nil {
		return refusal(Name, b.host.root, err)
	}
	m.agent, m.agentPID, m.stream = a.child, a.child.PID, a.stream
	m.scratch, m.diagnosis = a.scratch, a.diagnosis
	return nil
}

// script is what the agent's process does before its exec.
func (b *Backend) script(m *box, pl *plan, files []*os.File) (*forkexec.Script, error) {
	s := forkexec.New(pl.spaces).WithPIDFD()
	s.DefaultSignals()
	fds := make([]int, 0, 16)
	for _, f := range files {
		fds = append(fds, int(f.Fd()))
	}
	if m.group != nil {
		if err := b.enterGroups(s, m, pl, &fds); err != nil {
			return nil, err
		}
	}
	first := len(fds)
	fds = append(fds, pl.mountFDs...)
	pl.number(first)
	if m.block != nil {
		// The agent keeps the locks of its user ids: when this process is
		// killed nobody takes them before the last of its programs is dead.
		for _, lock := range m.block.Locks() {
			fds = append(fds, int(lock.Fd()))
		}
	}
	s.Setsid()
	s.ParentDeathSignal(syscall.Signal(pl.boot.DeathSignal))
	moved := s.Files(fds, int(b.image.Fd()))
	s.Capabilities(bootCaps)
	s.Ambient(bootCaps)
	s.NoNewPrivileges()
	s.ExecFD(moved[0], []string{"init"}, agentEnv)
	return s, nil
}

// number tells the boot message at which descriptors the mounts will be.
func (pl *plan) number(first int) {
	i := first
	for j := range pl.boot.Binds {
		if pl.boot.Binds[j].FD != 0 {
			pl.boot.Binds[j].FD = i
			i++
		}
	}
	if pl.boot.ScratchFD != 0 {
		pl.boot.ScratchFD = i
	}
}

func (pl *plan) closeMounts() {
	for _, fd := range pl.mountFDs {
		unix.Close(fd)
	}
	pl.mountFDs = nil
	for _, s := range pl.sources {
		unix.Close(s.fd)
	}
	pl.sources = nil
}

// openMounts opens and checks the policy's mounts and describes them to the
// agent. Root clones them here, with owners mapped to the code's user; an
// unprivileged agent clones them itself, from the path that was checked here.
func (b *Backend) openMounts(pl *plan, m *box, cu *cleanup.Stack) error {
	cu.Add(pl.closeMounts)
	for i := range pl.policy.Mounts {
		pm := &pl.policy.Mounts[i]
		src, err := openSource(pm)
		if err != nil {
			return err
		}
		pl.sources = append(pl.sources, src)
		bind, err := bindOf(pm, src)
		if err != nil {
			return err
		}
		if b.host.root {
			t, err := b.cloneMapped(pm, src, m, pl)
			if err != nil {
				return err
			}
			bind.FD = 1 // numbered when all descriptors are known
			pl.mountFDs = append(pl.mountFDs, t.FD())
		} else {
			bind.Source = pm.Source
		}
		pl.boot.Binds = append(pl.boot.Binds, bind)
	}
	return nil
}

// cloneMapped clones a mount whose owner appears inside as the code's user, so
// that the code can use what the operator mounted, and files that it makes
// belong to that owner outside.
func (b *Backend) cloneMapped(pm *tranca.Mount, src source, m *box, pl *plan) (mount.Tree, error) {
	// With what the host has mounted below: without it the code would see what
	// that covers.
	t, err := mount.Clone(src.fd, "", true)
	if err != nil {
		return t, fmt.Errorf("mount %s: %w", pm.Source, err)
	}
	uid, gid := b.codeIDs(m)
	ns, err := userNamespace([]idMap{{src.owner, uid}}, []idMap{{src.group, gid}})
	if err != nil {
		t.Close()
		return t, fmt.Errorf("mount %s: %w", pm.Source, err)
	}
	defer ns.Close()
	err = t.MapIDs(int(ns.Fd()))
	if err != nil && (pm.Writable || !errors.Is(err, unix.EINVAL)) {
		t.Close()
		return t, &tranca.RefusalError{Backend: Name, Problems: []tranca.Problem{{
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
func userNamespace(uids, gids []idMap) (*os.File, error) {
	s := forkexec.New(unix.CLONE_NEWUSER).WithPIDFD()
	s.ParentDeathSignal(unix.SIGKILL)
	c, err := s.Hold()
	if err != nil {
		return nil, err
	}
	defer c.Reap()
	if err := writeMaps(c.PID, uids, gids, true); err != nil {
		return nil, err
	}
	return os.Open(fmt.Sprintf("/proc/%d/ns/user", c.PID))
}
