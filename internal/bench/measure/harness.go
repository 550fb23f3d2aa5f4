package measure

import (
	"context"
	"fmt"
	"io"
	"time"

	"tranca/internal/bench"
	"tranca/internal/bench/sample"
	"tranca/internal/bench/stats"
)

// harness measures what measuring costs: a subject that does nothing, and bare
// starts by the harness against the same in a plain loop with the same pauses,
// by turns.
func (r *run) harness(ctx context.Context) error {
	h := &r.cfg.Result.Harness
	bare := r.all[0]
	if bare.runner == nil {
		return nil
	}
	nothing := func(_ context.Context, _ string, out io.Writer) error {
		_, err := io.WriteString(out, Answer)
		return err
	}
	var empty, ours, loop []float64
	plan := sample.Plan{Rounds: r.pace.harness, Seed: r.cfg.Seed}
	err := sample.Spread(ctx, []sample.Subject{{Do: func(ctx context.Context) error {
		_, whole, err := start(ctx, nothing)
		empty = append(empty, float64(whole))
		return err
	}}}, plan, func(int, time.Duration) {}, func(int, error) {})
	if err != nil {
		return err
	}
	turns := []func() error{
		func() error { return r.byLoop(ctx, &loop) },
		func() error { return r.byHarness(ctx, bare, &ours) },
	}
	for turn := range r.pace.harness {
		for i := range turns {
			if err := turns[(i+turn)%2](); err != nil {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				bare.fail(r.step.Phase, err)
				return nil
			}
		}
		r.step.Samples += 2 * r.pace.eachTurn
		r.tell(bare.About.Name)
	}
	h.EmptyNS = stats.Sort(empty).Median()
	h.Added = h.EmptyNS / stats.Sort(loop).Median()
	if ratio, low, high, ok := stats.RatioInterval(stats.Sort(ours), stats.Sort(loop), r.cfg.Seed); ok {
		h.Ratio = &bench.Interval{Value: ratio, Low: low, High: high}
	}
	return nil
}

// byLoop is what anybody would write to time a program.
func (r *run) byLoop(ctx context.Context, times *[]float64) error {
	for range r.pace.eachTurn {
		time.Sleep(sample.Settle)
		began := time.Now()
		if err := r.cfg.Loop(ctx); err != nil {
			return fmt.Errorf("plain loop: %w", err)
		}
		*times = append(*times, float64(time.Since(began)))
	}
	return nil
}

func (r *run) byHarness(ctx context.Context, bare *subject, times *[]float64) error {
	plan := sample.Plan{Rounds: r.pace.eachTurn, Seed: r.cfg.Seed}
	var failed error
	err := sample.Spread(ctx, []sample.Subject{{Do: func(ctx context.Context) error {
		_, _, err := start(ctx, bare.runner.Run)
		return err
	}}}, plan, func(_ int, d time.Duration) { *times = append(*times, float64(d)) },
		func(_ int, err error) { failed = err })
	if err != nil {
		return err
	}
	return failed
}
