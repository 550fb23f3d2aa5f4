package cgroup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"tranca"
)

// Group is the groups of one sandbox. Safe for concurrent use.
type Group struct {
	tree   *Tree
	limits Limits
	code   Entry
	agent  Entry
	leaves []leaf

	// The code's place for each controller; nil where there is none.
	memory, pids, cpu, cpuTime, kill *member

	oom   oomWatch
	stays int64 // what memory came down to when nothing ran; BeginAfter's alone

	mu        sync.Mutex // guards what follows; held through Kill
	base      baseline
	destroyed bool
}

// leaf is one group of the sandbox, in the order in which they were made.
type leaf struct {
	place
	v2   bool
	role role
}

// role says who lives in a leaf.
type role int

const (
	forCode role = iota
	forAgent
)

// member is the code's group for one controller.
type member struct {
	place
	v2 bool
}

// Create makes the groups of one sandbox. The name is unique among the
// sandboxes of this supervisor, 1 to 64 of a-z, 0-9 and '-'. On error nothing
// is left. A limit without a controller to hold it is an error.
func (t *Tree) Create(name string, l Limits) (*Group, error) {
	if err := t.check(name, l); err != nil {
		return nil, err
	}
	g := &Group{tree: t, limits: l}
	err := g.make(name)
	if err == nil {
		err = g.watch()
	}
	if err != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		return nil, errors.Join(fmt.Errorf("sandbox %s: %w", name, err), g.dismantle(ctx))
	}
	return g, nil
}

func (t *Tree) check(name string, l Limits) error {
	if name == "" || len(name) > 64 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return fmt.Errorf("cgroup name %q: want 1 to 64 of a-z, 0-9 and '-': %w", name, tranca.ErrInvalid)
	}
	for _, w := range []struct {
		what    string
		value   int64
		feature Feature
	}{
		{"memory", l.Memory, t.support.Memory},
		{"processes", l.Processes, t.support.PIDs},
		{"CPU share", l.MilliCPUs, t.support.CPU},
		{"agent memory", l.AgentMemory, t.support.Memory},
		{"agent processes", l.AgentProcesses, t.support.PIDs},
	} {
		if w.value < 0 {
			return fmt.Errorf("cgroup limit of %s: %d is negative: %w", w.what, w.value, tranca.ErrInvalid)
		}
		if w.value > 0 && !w.feature.Held {
			return fmt.Errorf("cgroup limit of %s: %s: %w", w.what, w.feature.Missing, tranca.ErrUnavailable)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return fmt.Errorf("cgroup tree: %w", tranca.ErrClosed)
	}
	return nil
}

// make makes all leaves and opens the ways into them.
func (g *Group) make(name string) error {
	for _, h := range g.tree.v1 {
		if err := g.makeV1(h, name); err != nil {
			return err
		}
	}
	if g.tree.v2 != nil {
		return g.makeV2(g.tree.v2, name)
	}
	return nil
}

// makeV1 makes the leaves of one v1 hierarchy. The code always gets one with
// pids, since it lists who has to be killed, and with cpuacct.
func (g *Group) makeV1(h *hierarchy, name string) error {
	l := g.limits
	if h.has(ctlPIDs) || h.has(ctlCPUAcct) || (h.has(ctlMemory) && l.Memory > 0) || (h.has(ctlCPU) && l.MilliCPUs > 0) {
		p := place{h.dir, name}
		if err := g.add(p, false, forCode); err != nil {
			return err
		}
		if err := g.limit(h, p, false); err != nil {
			return err
		}
		tasks, err := g.openTasks(p, forCode)
		if err != nil {
			return err
		}
		g.code.Tasks = append(g.code.Tasks, tasks)
		g.assign(h, p, false)
	}
	if (h.has(ctlMemory) && l.AgentMemory > 0) || (h.has(ctlPIDs) && l.AgentProcesses > 0) {
		p := place{h.dir, name + ".agent"}
		if err := g.add(p, false, forAgent); err != nil {
			return err
		}
		if err := limitMemoryPIDs(h, p, false, l.AgentMemory, l.AgentProcesses); err != nil {
			return err
		}
		tasks, err := g.openTasks(p, forAgent)
		if err != nil {
			return err
		}
		g.agent.Tasks = append(g.agent.Tasks, tasks)
	}
	return nil
}

// makeV2 makes the v2 leaves. Where no v2 controller is in use the agent
// lives in the supervisor's folder: that saves a group.
func (g *Group) makeV2(h *hierarchy, name string) error {
	code := place{h.dir, name}
	if err := g.add(code, true, forCode); err != nil {
		return err
	}
	if err := g.limit(h, code, true); err != nil {
		return err
	}
	g.assign(h, code, true)
	if err := g.share(code); err != nil {
		return err
	}
	if err := g.code.openV2(code, true); err != nil {
		return err
	}
	agent := place{h.dir, "."}
	if h.limits() {
		agent = place{h.dir, name + ".agent"}
		if err := g.add(agent, true, forAgent); err != nil {
			return err
		}
		if err := limitMemoryPIDs(h, agent, true, g.limits.AgentMemory, g.limits.AgentProcesses); err != nil {
			return err
		}
	}
	return g.agent.openV2(agent, false)
}

// limits reports whether a v2 hierarchy carries controllers, so that
// processes can't live in the supervisor's folder.
func (h *hierarchy) limits() bool {
	return h.has(ctlMemory) || h.has(ctlPIDs) || h.has(ctlCPU)
}

func (g *Group) add(p place, v2 bool, r role) error {
	if err := p.mkdir(0o755); err != nil {
		return err
	}
	g.leaves = append(g.leaves, leaf{p, v2, r})
	return nil
}

// assign notes which controllers the code's leaf carries.
func (g *Group) assign(h *hierarchy, p place, v2 bool) {
	m := &member{p, v2}
	for _, c := range []struct {
		name  string
		field **member
	}{
		{ctlMemory, &g.memory},
		{ctlPIDs, &g.pids},
		{ctlCPU, &g.cpu},
		{ctlCPUAcct, &g.cpuTime},
		{ctlKill, &g.kill},
	} {
		if h.has(c.name) {
			*c.field = m
		}
	}
}

// Code is the way into the code's leaf.
func (g *Group) Code() Entry { return g.code }

// Agent is the way into the guest agent's leaf.
func (g *Group) Agent() Entry { return g.agent }
