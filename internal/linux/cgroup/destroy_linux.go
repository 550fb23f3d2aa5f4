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

// dismantle takes everything apart that was made.
func (g *Group) dismantle(ctx context.Context) error {
	g.stopWatch()
	g.closeEntries()
	if g.base.peak != nil {
		g.base.peak.Close()
	}
	// Mostly everybody is dead by now.
	if g.removeLeaves() == nil {
		return nil
	}
	if err := g.killEverybody(ctx); err != nil {
		return err
	}
	var w waiter
	for {
		err := g.removeLeaves()
		if err == nil {
			return nil
		}
		if ctxErr := w.wait(ctx); ctxErr != nil {
			return errors.Join(ctxErr, err)
		}
	}
}

// removeLeaves removes what can be removed, the lower folders first.
func (g *Group) removeLeaves() error {
	var failed []error
	var left []leaf
	for _, l := range slices.Backward(g.leaves) {
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
	return killAll(ctx, places, nil, g.hurry)
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
