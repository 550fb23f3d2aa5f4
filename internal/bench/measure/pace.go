package measure

import (
	"time"

	"tranca/internal/bench/sample"
)

// pace says how much of each is done. A quick run has the same measures with
// fewer samples, and a budget for each phase.
type pace struct {
	starts, loads, sessions, data sample.Plan
	rates                         sample.Plan
	// loadShare divides how often the parts of the loads do what they do.
	loadShare int
	// baseline is how many bare starts are timed first and last.
	baseline int
	// window is how long a throughput is looked at, and longest what a slow
	// subject may take for it.
	window, longest time.Duration
	// idle is how many sandboxes lie idle for the memory row, for how long.
	idle  int
	quiet time.Duration
	// dataSize is what goes through a file, and outputSize through a pipe.
	dataSize, outputSize int
	// harness is how many turns the harness is held against a plain loop, of
	// eachTurn starts.
	harness, eachTurn int
	// after is how long the host is given to free what a subject had: the
	// kernel and engines do so after the call that ends it has returned. atEnd
	// is how long something may still take when all else is done.
	after, atEnd time.Duration
	// patience bounds one sample.
	patience time.Duration
	// total is what a quick run may take: each phase has a part of what is left
	// of it. 0 leaves each its own budget.
	total time.Duration
}

// DefaultRounds and QuickRounds are how often fast subjects are started.
const (
	DefaultRounds = 100
	QuickRounds   = 15
)

func newPace(rounds int, quick bool, seed uint64) pace {
	plan := func(share, least int, budget time.Duration) sample.Plan {
		n := max(rounds/share, least)
		return sample.Plan{Rounds: n, Least: min(least, n), Budget: budget, Seed: seed}
	}
	if quick {
		return pace{
			starts: plan(1, 2, 0), loads: plan(5, 2, 0), sessions: plan(3, 2, 0), data: sample.Plan{Rounds: 3, Least: 1, Seed: seed},
			rates:    sample.Plan{Rounds: 2, Least: 1, Seed: seed},
			baseline: max(rounds, 10), window: 250 * time.Millisecond, longest: 2 * time.Second,
			idle: 2, quiet: 300 * time.Millisecond, dataSize: 16 << 20, outputSize: 32 << 20,
			harness: 6, eachTurn: 4, loadShare: 4, patience: 15 * time.Second, total: 50 * time.Second,
			after: 2 * time.Second, atEnd: 5 * time.Second,
		}
	}
	return pace{
		starts: plan(1, 5, 4*time.Minute), loads: plan(4, 5, 3*time.Minute),
		sessions: plan(4, 5, 2*time.Minute), data: plan(10, 5, time.Minute),
		rates: plan(25, 3, 0), baseline: max(rounds/2, 20), window: 2 * time.Second,
		longest: time.Minute, idle: 10, quiet: time.Second,
		dataSize: 32 << 20, outputSize: 256 << 20, harness: max(rounds/2, 10), loadShare: 1, eachTurn: 4, patience: 2 * time.Minute, after: 4 * time.Second, atEnd: 10 * time.Second,
	}
}

// weights are the parts of the time that phases have, where they share it. The
// rest of a run has the last one.
var weights = []struct {
	phase  string
	weight time.Duration
}{
	{phaseStarts, 9}, {phaseLoads, 11}, {phaseSessions, 6}, {phaseOutput, 3}, {phaseFiles, 3},
	{phase1, 3}, {phase8, 4}, {phase64, 5}, {phaseRest, 6},
}

// budget is what a phase has of the time that is left.
func budget(phase string, left time.Duration) time.Duration {
	var sum, own time.Duration
	for _, w := range weights {
		if w.phase == phase {
			own = w.weight
		}
		if own > 0 {
			sum += w.weight
		}
	}
	if own == 0 {
		return 0
	}
	return max(left*own/sum, 1) // 0 would be no bound
}
