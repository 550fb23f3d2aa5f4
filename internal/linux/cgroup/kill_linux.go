package cgroup

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Kill ends every process of the code, never the agent, and returns when none
// of them is alive; zombies that wait for their parent are dead. The group can
// be used again afterwards. Counters of refused forks are as if it had not
// been called.
//
// On error, such as the end of ctx, some may live; then they can't fork.
func (g *Group) Kill(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.destroyed || g.nobody() {
		return nil
	}
	if err := g.killCode(ctx); err != nil {
		return fmt.Errorf("kill the code: %w", err)
	}
	return g.restore()
}

// nobody reports whether the kernel counts no process in the code's group, dead
// ones that wait for their parent included. Then there is nothing to list.
func (g *Group) nobody() bool {
	if g.pids == nil {
		return false
	}
	n, err := g.pids.number("pids.current")
	return err == nil && n == 0
}

// somebody reports whether something of the code is alive, or may be.
func (g *Group) somebody() bool {
	if g.nobody() {
		return false
	}
	var places []place
	for _, l := range g.leaves {
		if l.role == forCode {
			places = append(places, l.place)
		}
	}
	pids, err := list(places, g.listed(forAgent))
	return err != nil || len(pids) > 0
}

func (g *Group) killCode(ctx context.Context) error {
	defer urgently()()
	if g.killsByKernel() {
		if err := g.kill.write("cgroup.kill", "1"); err != nil {
			return err
		}
		if err := g.hurry(); err != nil {
			return err
		}
		if err := waitEmpty(ctx, g.kill.place); err != nil {
			return err
		}
	}
	places := g.listed(forCode)
	if len(places) == 0 {
		return nil
	}
	return g.killListed(ctx, places, g.listed(forAgent))
}

// urgently puts the calling thread before all others of this process's CPU
// group, if it may, until the returned function is called. On a busy host 500
// processes could not be signalled in half a second otherwise.
func urgently() (end func()) {
	runtime.LockOSThread()
	before, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err == nil {
		err = unix.Setpriority(unix.PRIO_PROCESS, 0, -20)
	}
	return func() {
		if err == nil {
			// The system call gives 20 minus the nice value.
			_ = unix.Setpriority(unix.PRIO_PROCESS, 0, 20-before)
		}
		runtime.UnlockOSThread()
	}
}

// killsByKernel reports whether Kill uses cgroup.kill. It does only where forks
// can't be stopped: a group that was killed so may be dead to newcomers, see
// tryKill, and a sandbox lives on after Kill.
func (g *Group) killsByKernel() bool { return g.kill != nil && g.pids == nil }

// hold leaves the code hardly any CPU time while it is being signalled.
func (g *Group) hold() error {
	if g.cpu == nil || g.limits.MilliCPUs == 0 {
		return nil
	}
	return setQuota(g.cpu.place, g.cpu.v2, 1)
}

// hurry lifts the CPU quota, and gives those who have to die the greatest
// share of the CPUs, so that they do it also on a busy host: dying takes time
// too, and 500 processes at a tenth of a CPU would take seconds.
func (g *Group) hurry() error {
	if g.cpu == nil || g.limits.MilliCPUs == 0 {
		return nil
	}
	file, value := "cpu.shares", "262144"
	if g.cpu.v2 {
		file, value = "cpu.weight", "10000"
	}
	return errors.Join(setQuota(g.cpu.place, g.cpu.v2, 0), g.cpu.write(file, value))
}

// restore undoes hold and hurry.
func (g *Group) restore() error {
	if g.cpu == nil || g.limits.MilliCPUs == 0 {
		return nil
	}
	file, value := "cpu.shares", "1024"
	if g.cpu.v2 {
		file, value = "cpu.weight", "100"
	}
	return errors.Join(g.cpu.write(file, value), setQuota(g.cpu.place, g.cpu.v2, g.limits.MilliCPUs))
}

// waitEmpty waits until nobody lives in a v2 group.
func waitEmpty(ctx context.Context, p place) error {
	var w waiter
	for {
		populated, err := p.value("cgroup.events", "populated")
		if err != nil {
			return err
		}
		if populated == 0 {
			return nil
		}
		if err := w.wait(ctx); err != nil {
			return fmt.Errorf("processes are left in %s: %w", p, err)
		}
	}
}

// listed returns the leaves whose members have to be listed for a role. The
// code's v2 leaf is among them only where it can't be killed by itself.
func (g *Group) listed(r role) []place {
	var all []place
	for _, l := range g.leaves {
		if l.role == r && (r == forAgent || !l.v2 || !g.killsByKernel()) {
			all = append(all, l.place)
		}
	}
	if h := g.tree.v2; r == forAgent && h != nil && !h.limits() {
		all = append(all, place{h.dir, "."})
	}
	return all
}

// killListed kills whoever is listed in places and not in spared, until
// nobody is. A thread of the agent that is on its way into the code's group
// has the agent listed there.
func (g *Group) killListed(ctx context.Context, places, spared []place) error {
	victims, err := list(places, spared)
	if err != nil || len(victims) == 0 {
		return err
	}
	if err := g.hold(); err != nil {
		return err
	}
	if g.pids != nil {
		// Without new processes the killing comes to an end, however fast
		// they fork.
		undo, err := g.stopForks()
		if err != nil {
			return err
		}
		if err := killAll(ctx, places, spared, g.hurry); err != nil {
			return err
		}
		return undo()
	}
	return killAll(ctx, places, spared, g.hurry)
}

// stopForks sets the bound on processes to none, and returns what sets it
// back and takes the forks that it refused out of the counting.
func (g *Group) stopForks() (undo func() error, err error) {
	before, err := g.pids.value("pids.events", "max")
	if err != nil {
		return nil, err
	}
	if err := g.pids.write("pids.max", "0"); err != nil {
		return nil, err
	}
	return func() error {
		after, err := g.pids.value("pids.events", "max")
		if err != nil {
			return err
		}
		g.base.refused += after - before
		limit := "max"
		if g.limits.Processes > 0 {
			limit = strconv.FormatInt(g.limits.Processes, 10)
		}
		return g.pids.write("pids.max", limit)
	}, nil
}

// list returns the processes of all places, without those of spared.
func list(places, spared []place) ([]int, error) {
	var all []int
	for _, p := range places {
		pids, unseen, err := p.pids()
		if err != nil {
			return nil, err
		}
		if unseen {
			return nil, p.fail("list", "cgroup.procs", errors.New("it has processes outside of this pid namespace"))
		}
		all = append(all, pids...)
	}
	if len(all) == 0 {
		return nil, nil
	}
	for _, p := range spared {
		pids, _, err := p.pids()
		if err != nil {
			return nil, err
		}
		all = slices.DeleteFunc(all, func(pid int) bool { return slices.Contains(pids, pid) })
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// killAll signals all listed processes until none is listed. When all have
// been signalled once it calls hurry, which may be nil.
func killAll(ctx context.Context, places, spared []place, hurry func() error) error {
	var w waiter
	signalled := map[int]bool{}
	for round := 0; ; round++ {
		pids, err := list(places, spared)
		if err != nil || len(pids) == 0 {
			return err
		}
		if round%16 == 0 {
			clear(signalled)
		}
		fresh := slices.DeleteFunc(pids, func(pid int) bool { return signalled[pid] })
		for batch := range slices.Chunk(fresh, 256) {
			if err := killBatch(batch, places, spared); err != nil {
				return err
			}
		}
		for _, pid := range fresh {
			signalled[pid] = true
		}
		if round == 0 && hurry != nil {
			if err := hurry(); err != nil {
				return err
			}
		}
		if err := w.wait(ctx); err != nil {
			return fmt.Errorf("processes are left in %s: %w", describe(places), err)
		}
	}
}

// killBatch kills processes by descriptors that are taken before the list is
// read again: so an id that was given to somebody else in between, on a busy
// host, is not mistaken for one of ours.
func killBatch(pids []int, places, spared []place) error {
	fds := make(map[int]int, len(pids))
	defer func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}()
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		switch {
		case err == nil:
			fds[pid] = fd
		case errors.Is(err, unix.ESRCH), errors.Is(err, unix.EINVAL):
			// gone, or on its way out
		default:
			return fmt.Errorf("cgroup: pidfd_open %d: %w", pid, err)
		}
	}
	still, err := list(places, spared)
	if err != nil {
		return err
	}
	for _, pid := range still {
		fd, ok := fds[pid]
		if !ok {
			continue
		}
		if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("cgroup: kill %d: %w", pid, err)
		}
	}
	return nil
}

// waiter sleeps a little longer each time.
type waiter struct{ last time.Duration }

// wait sleeps in the calling thread: the runtime's timers are served by other
// threads, which have no more share of a busy host than anybody else.
func (w *waiter) wait(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	w.last = min(max(w.last*3/2, 200*time.Microsecond), 4*time.Millisecond)
	t := unix.NsecToTimespec(int64(w.last))
	_ = unix.Nanosleep(&t, nil) // a signal may end it early
	return nil
}

// describe joins places for a message.
func describe(places []place) string {
	var s []string
	for _, p := range places {
		s = append(s, p.String())
	}
	return strings.Join(s, ", ")
}
