package cgroup

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A fork bomb of 500 processes at a tenth of a CPU.
func TestKillForkBomb(t *testing.T) {
	bothKinds(t, func(t *testing.T, tree *Tree) {
		l := defaultLimits
		l.Memory, l.Processes, l.MilliCPUs = 1<<30, 500, 100
		g := create(t, tree, "bomb", l)
		agent := start(t, g.Agent(), "sleep")
		for round := range 2 {
			// Only its growth is not slowed down: under emulation that takes
			// minutes.
			setBombQuota(t, g, 0)
			bomb := start(t, g.Code(), "bomb")
			eventually(t, "500 processes", func() bool { return stats(t, g).Processes >= 500 })
			setBombQuota(t, g, l.MilliCPUs)
			refused := stats(t, g).Refused
			begin := time.Now()
			if err := g.Kill(context.Background()); err != nil {
				t.Fatal(err)
			}
			t.Logf("round %d: dead after %v", round, time.Since(begin))
			checkNobody(t, g)
			_ = bomb.Wait()
			waitReaped(t, g)
			if !alive(t, agent.Process.Pid) {
				t.Fatal("the agent was killed too")
			}
			if s := stats(t, g); refused > 0 && s.Refused > 1000*refused {
				t.Errorf("forks refused by Kill itself are counted: %d before, %d after", refused, s.Refused)
			}
			for _, c := range []struct {
				p        *member
				v1, v2   string
				want1, w string
			}{
				{g.cpu, "cpu.cfs_quota_us", "cpu.max", "10000\n", "10000 100000\n"},
				{g.cpu, "cpu.shares", "cpu.weight", "1024\n", "100\n"},
				{g.pids, "pids.max", "pids.max", "500\n", "500\n"},
			} {
				file, want := c.v1, c.want1
				if c.p.v2 {
					file, want = c.v2, c.w
				}
				if got, err := c.p.read(file); err != nil || got != want {
					t.Errorf("%s is %q after Kill, want %q; %v", file, got, want, err)
				}
			}
		}
	})
}

func setBombQuota(t *testing.T, g *Group, milli int64) {
	t.Helper()
	if err := setQuota(g.cpu.place, g.cpu.v2, milli); err != nil {
		t.Fatal(err)
	}
}

// checkNobody reads the lists anew: no process may be in any of the code's
// leaves.
func checkNobody(t *testing.T, g *Group) {
	t.Helper()
	for _, l := range g.leaves {
		if l.role != forCode {
			continue
		}
		if pids, _, err := l.pids(); err != nil || len(pids) > 0 {
			t.Errorf("in %s after Kill: %v, %v", l, pids, err)
		}
	}
}

// An agent starts programs from a thread that joins the code's v1 groups.
// Caught there, it is listed as a member; it must live.
func TestKillSparesAgentsThread(t *testing.T) {
	tree := needTree(t, Options{})
	g := create(t, tree, "thread", defaultLimits)
	victim := start(t, g.Code(), "sleep")
	agent := startCmd(t, helper(g.Agent(), "thread", g.Code().Tasks...))
	if line := agent.line(t); line != "ready" {
		t.Fatalf("helper said %q", line)
	}
	if err := g.Kill(context.Background()); err != nil {
		t.Fatal(err)
	}
	if alive(t, victim.Process.Pid) || !alive(t, agent.Process.Pid) {
		t.Errorf("code alive %v, agent alive %v", alive(t, victim.Process.Pid), alive(t, agent.Process.Pid))
	}
}

func TestKillGivesUp(t *testing.T) {
	tree := needTree(t, Options{})
	g := create(t, tree, "late", defaultLimits)
	victim := start(t, g.Code(), "forks")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	// It may be dead at once; if not, the error says why it stopped.
	if err := g.Kill(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := g.Kill(context.Background()); err != nil {
		t.Fatal(err)
	}
	if alive(t, victim.Process.Pid) {
		t.Error("it lives")
	}
	if err := g.Kill(context.Background()); err != nil {
		t.Errorf("nobody to kill: %v", err)
	}
}
