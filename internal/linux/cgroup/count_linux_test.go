package cgroup

import (
	"context"
	"testing"
	"time"
)

func TestOutOfMemory(t *testing.T) {
	bothKinds(t, func(t *testing.T, tree *Tree) {
		g := create(t, tree, "oom", defaultLimits)
		for round := range 2 {
			hog := start(t, g.Code(), "hog")
			select {
			case <-g.OOM():
			case <-time.After(patience):
				t.Fatal("nobody told of the OOM kill")
			}
			if err := hog.Wait(); err == nil {
				t.Error("the hog ended well")
			}
			s := stats(t, g)
			if s.OOMKills < 1 {
				t.Errorf("round %d: no OOM kill counted: %+v", round, s)
			}
			// The kernel lets a few pages more through where it must.
			if s.MemoryPeak != -1 && (s.MemoryPeak < 60<<20 || s.MemoryPeak > 65<<20) {
				t.Errorf("round %d: peak of %d bytes at a limit of 64 MiB", round, s.MemoryPeak)
			}
			if err := g.Begin(); err != nil {
				t.Fatal(err)
			}
			s = stats(t, g)
			if s.OOMKills != 0 || s.MemoryPeak > 32<<20 {
				t.Errorf("round %d: Begin left %+v", round, s)
			}
			select {
			case <-g.OOM():
				t.Errorf("round %d: an OOM kill is told of after Begin", round)
			default:
			}
		}
	})
}

// The agent has memory of its own: it lives while the code has used up its.
func TestAgentOutlivesMemory(t *testing.T) {
	tree := needTree(t, Options{})
	g := create(t, tree, "apart", defaultLimits)
	agent := start(t, g.Agent(), "sleep")
	_ = start(t, g.Code(), "hog").Wait()
	if !alive(t, agent.Process.Pid) {
		t.Error("the agent died of the code's memory")
	}
	if s := stats(t, g); s.OOMKills < 1 {
		t.Errorf("no OOM kill: %+v", s)
	}
}

// An OOM kill of the agent is none of the code.
func TestAgentIsBounded(t *testing.T) {
	tree := needTree(t, Options{})
	l := defaultLimits
	l.AgentMemory = 32 << 20
	g := create(t, tree, "bounded", l)
	if err := start(t, g.Agent(), "hog").Wait(); err == nil {
		t.Error("an agent without end was not killed")
	}
	if s := stats(t, g); s.OOMKills != 0 {
		t.Errorf("counted as the code's: %+v", s)
	}
}

func TestProcesses(t *testing.T) {
	bothKinds(t, func(t *testing.T, tree *Tree) {
		g := create(t, tree, "pids", defaultLimits)
		for range 2 {
			forks := start(t, g.Code(), "forks")
			s := stats(t, g)
			if s.Refused < 1 || s.Processes != 40 || s.ProcessesPeak != 40 {
				t.Errorf("at a bound of 40: %+v", s)
			}
			if err := g.Kill(context.Background()); err != nil {
				t.Fatal(err)
			}
			_ = forks.Wait()
			waitReaped(t, g)
			if err := g.Begin(); err != nil {
				t.Fatal(err)
			}
			if s := stats(t, g); s.Refused != 0 || s.ProcessesPeak != 0 {
				t.Errorf("Begin left %+v", s)
			}
		}
	})
}

// What an earlier program left alive gets no fresh CPU time; what runs after its
// death does.
func TestBeginBesideTheLiving(t *testing.T) {
	bothKinds(t, func(t *testing.T, tree *Tree) {
		g := create(t, tree, "left", defaultLimits)
		spin := start(t, g.Code(), "spin")
		for round := range 2 {
			before := stats(t, g).CPUSpent
			eventually(t, "CPU time is counted", func() bool { return stats(t, g).CPUSpent > before+50*time.Millisecond })
			before = stats(t, g).CPUSpent
			if err := g.Begin(); err != nil {
				t.Fatal(err)
			}
			if s := stats(t, g); s.CPUSpent < before || s.CPUTime >= s.CPUSpent {
				t.Errorf("round %d: beside the living Begin left %+v of %s", round, s, before)
			}
		}
		if err := g.Kill(context.Background()); err != nil {
			t.Fatal(err)
		}
		_ = spin.Wait()
		if err := g.Begin(); err != nil {
			t.Fatal(err)
		}
		if s := stats(t, g); s.CPUSpent != s.CPUTime || s.CPUSpent > 50*time.Millisecond {
			t.Errorf("after the death of all Begin left %+v", s)
		}
	})
}
