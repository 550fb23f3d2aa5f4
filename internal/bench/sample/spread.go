package sample

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"time"
)

// Plan says how often subjects are timed by [Spread].
type Plan struct {
	// Rounds is how often each is timed at most, Least how often at least,
	// whatever it takes.
	Rounds, Least int
	// Budget is what all of them may take together; 0 is no bound. Slow subjects
	// are left out of some rounds for it, fast ones of none.
	Budget time.Duration
	// Deadline ends it, even before the least is done; the zero time is none.
	// With First the first round is done all the same.
	Deadline time.Time
	First    bool
	Seed     uint64
}

// Spread times subjects side by side in rounds, each in a new random order, as
// many times as the plan has room for. took is told of each sample, and failed
// of a subject whose Do or Prepare failed; it is left out from then on. The
// error is only that of ctx.
func Spread(ctx context.Context, subjects []Subject, p Plan, took func(i int, d time.Duration), failed func(i int, err error)) error {
	rnd := rand.New(rand.NewPCG(p.Seed, 2))
	gone := make([]bool, len(subjects))
	cost := make([]time.Duration, len(subjects))
	times := make([]int, len(subjects)) // how often each is timed after round 0
	start := time.Now()
	for round := range p.Rounds {
		if round == 1 {
			times = share(cost, gone, p, time.Since(start))
		}
		for _, i := range rnd.Perm(len(subjects)) {
			if p.over() && (round > 0 || !p.First) {
				return nil
			}
			if gone[i] || round > 0 && !due(round-1, p.Rounds-1, times[i]) {
				continue
			}
			began := time.Now()
			d, err := once(ctx, subjects[i])
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err != nil {
				gone[i] = true
				failed(i, err)
				continue
			}
			cost[i] = max(time.Since(began), 1)
			took(i, d)
		}
	}
	return nil
}

func (p Plan) over() bool { return !p.Deadline.IsZero() && time.Now().After(p.Deadline) }

// due spreads so many times evenly over rounds.
func due(round, rounds, times int) bool {
	return (round+1)*times/rounds > round*times/rounds
}

// share says how often each is timed after the first round. What the cheap ones
// don't need of their part of the budget falls to the others.
func share(cost []time.Duration, gone []bool, p Plan, spent time.Duration) []int {
	times := make([]int, len(cost))
	var order []int
	for i := range cost {
		times[i] = p.Rounds - 1
		if !gone[i] {
			order = append(order, i)
		}
	}
	if p.Budget <= 0 {
		return times
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(cost[a], cost[b]) })
	left := p.Budget - spent
	for n, i := range order {
		part := max(left, 0) / time.Duration(len(order)-n)
		times[i] = min(max(int(part/cost[i]), p.Least-1), p.Rounds-1)
		left -= time.Duration(times[i]) * cost[i]
	}
	return times
}
