package cgroup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Destroy kills whoever is left, the agent too, and removes the groups. It
// returns when nothing of them is left; without a deadline in ctx it gives up
// after 10 s. It may be called again, also after an error.
func (g *Group) Destroy(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.destroyed {
		return nil
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
	}
	if err := g.dismantle(ctx); err != nil {
		return fmt.Errorf("remove the groups: %w", err)
	}
	g.destroyed = true
	return nil
}

// Retire ends the code's part of the group, for a caller that has killed the
// code and still waits for the guest agent to die: what can be removed then is.
// Only Destroy may follow, and removes the rest, whatever is in it.
func (g *Group) Retire() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.destroyed {
		return
	}
	g.letGo()
	_ = g.removeLeaves(forCode) // Destroy tries again, and reports
}

// letGo ends what holds on to the group here.
func (g *Group) letGo() {
	g.stopWatch()
	g.closeEntries()
	if g.base.peak != nil {
		g.base.peak.Close()
		g.base.peak = nil
	}
}

// dismantle takes everything apart that was made.
func (g *Group) dismantle(ctx context.Context) error {
	g.letGo()
	// Mostly everybody is dead by now.
	if g.removeLeaves(forCode, forAgent) == nil {
		return nil
	}
	if err := g.killEverybody(ctx); err != nil {
		return err
	}
	var w waiter
	for {
		err := g.removeLeaves(forCode, forAgent)
		if err == nil {
			return nil
		}
		if ctxErr := w.wait(ctx); ctxErr != nil {
			return errors.Join(ctxErr, err)
		}
	}
}

// removeLeaves removes what can be removed of the given roles, the lower
// folders first.
func (g *Group) removeLeaves(roles ...role) error {
	var failed []error
	var left []leaf
	for _, l := range slices.Backward(g.leaves) {
		if !slices.Contains(roles, l.role) {
			left = append(left, l)
			continue
		}
		if err := l.rmdir(); err != nil {
			failed = append(failed, err)
			left = append(left, l)
		}
	}
	slices.Reverse(left)
	g.leaves = left
	return errors.Join(failed...)
}

// killEverybody kills code and agent in the leaves that are still there.
func (g *Group) killEverybody(ctx context.Context) error {
	defer urgently()()
	var places []place
	for _, l := range g.leaves {
		if err := quiet(l.place, l.v2); err != nil {
			return err
		}
		if !l.v2 || g.kill == nil {
			places = append(places, l.place)
			continue
		}
		if err := l.write("cgroup.kill", "1"); err != nil {
			return err
		}
		if err := waitEmpty(ctx, l.place); err != nil {
			return err
		}
	}
	return killAll(ctx, places, nil, func() error {
		if err := g.hurry(); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
		return nil // its group may have been removed already
	})
}

// quiet lifts the CPU quota of a group and stops forks in it, for what it has
// of both.
func quiet(p place, v2 bool) error {
	if err := setQuota(p, v2, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	if err := p.write("pids.max", "0"); err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	return nil
}
