// Package sample times things side by side: all of them in every round, in a
// new random order each, so that a noisy host disturbs them alike. Only ratios
// measured in one run count.
package sample

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"tranca/internal/bench/stats"
)

// Subject is one thing to time.
type Subject struct {
	Name string
	// Prepare, where set, runs before each Do and isn't timed.
	Prepare func(context.Context) error
	// Do is what is timed. It checks its own result: a fast wrong answer is
	// an error.
	Do func(context.Context) error
}

// Series are the times of one subject, in the order in which they were taken.
type Series []time.Duration

// Interleave times every subject in each of the rounds, after warm-up rounds
// that don't count. The first error ends it.
func Interleave(ctx context.Context, subjects []Subject, warm, rounds int, seed uint64) (map[string]Series, error) {
	rnd := rand.New(rand.NewPCG(seed, 0))
	taken := make(map[string]Series, len(subjects))
	for round := range warm + rounds {
		for _, i := range rnd.Perm(len(subjects)) {
			took, err := once(ctx, subjects[i])
			if err != nil {
				return nil, fmt.Errorf("%s, round %d: %w", subjects[i].Name, round, err)
			}
			if round >= warm {
				taken[subjects[i].Name] = append(taken[subjects[i].Name], took)
			}
		}
	}
	return taken, nil
}

// Settle is waited before each sample: what a subject still does after its
// answer, such as making something ahead, is not for the next one to pay.
const Settle = 20 * time.Millisecond

func once(ctx context.Context, s Subject) (time.Duration, error) {
	time.Sleep(Settle)
	if s.Prepare != nil {
		if err := s.Prepare(ctx); err != nil {
			return 0, err
		}
	}
	start := time.Now()
	err := s.Do(ctx)
	return time.Since(start), err
}

// Percentile returns the smallest time that at least p percent of the series
// don't exceed. p is in (0, 100]. An empty series has no percentile: 0.
func (s Series) Percentile(p float64) time.Duration {
	values := make([]float64, len(s))
	for i, d := range s {
		values[i] = float64(d)
	}
	return time.Duration(stats.Sort(values).Percentile(p))
}
