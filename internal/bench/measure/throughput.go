package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"tranca/internal/bench"
	"tranca/internal/bench/stats"
)

// rate counts whole runs in a second by some callers at once. They share a fixed
// number of starts, as many as the window has room for and one for each caller at
// least, so that all of them are waited for, and none that is half done counts or
// doesn't.
func (r *run) rate(ctx context.Context, name bench.MeasureName, callers int) error {
	starts := map[*subject]int{}
	var all []*subject
	for _, s := range r.opened() {
		whole := time.Duration(stats.Sort(s.samples[bench.Whole]).Median())
		if whole <= 0 {
			continue
		}
		// How many run at once on this host in earnest.
		rate := float64(min(callers, r.cfg.Result.Host.CPUs)) / whole.Seconds()
		n := max(int(math.Ceil(rate*r.pace.window.Seconds())), callers)
		if takes := time.Duration(float64(n) / rate * float64(time.Second)); callers > 1 && takes > r.pace.longest {
			s.missing[name] = fmt.Sprintf("left out: %d starts take about %s, and this run has %s for them",
				n, takes.Round(100*time.Millisecond), r.pace.longest)
			continue
		}
		starts[s] = n
		all = append(all, s)
	}
	plan := r.pace.rates
	plan.Seed += uint64(callers)
	return r.spread(ctx, all, plan,
		[]bench.MeasureName{name}, func(ctx context.Context, s *subject) error {
			return together(ctx, callers, starts[s], s.runner.Run)
		}, func(s *subject, d time.Duration) { s.add(name, float64(starts[s])/d.Seconds()) })
}

// together does so many starts by some callers. The first error ends it.
func together(ctx context.Context, callers, n int, run func(context.Context, string, io.Writer) error) error {
	var wg sync.WaitGroup
	var taken atomic.Int64
	errs := make([]error, callers)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for i := range callers {
		wg.Go(func() {
			for taken.Add(1) <= int64(n) && ctx.Err() == nil {
				if _, _, err := start(ctx, run); err != nil {
					errs[i] = err
					cancel()
					return
				}
			}
		})
	}
	wg.Wait()
	return first(errs)
}

// first returns the error that ended the others.
func first(errs []error) error {
	var other error
	for _, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
		other = errors.Join(other, err)
	}
	return other
}
