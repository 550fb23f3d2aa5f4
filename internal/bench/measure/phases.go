package measure

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"tranca/internal/bench"
	"tranca/internal/bench/sample"
	"tranca/internal/bench/stats"
)

// baseline times bare starts alone, and keeps their median.
func (r *run) baseline(ctx context.Context, median *float64) error {
	bare := r.all[0]
	if bare.runner == nil {
		return nil
	}
	var times []float64
	plan := sample.Plan{Rounds: r.pace.baseline, Seed: r.cfg.Seed}
	err := r.spread(ctx, []*subject{bare}, plan, nil, func(ctx context.Context, s *subject) error {
		_, whole, err := start(ctx, s.runner.Run)
		if err == nil {
			times = append(times, float64(whole))
		}
		return err
	}, nil)
	if err == nil {
		*median = stats.Sort(times).Median()
	}
	return err
}

// starts times fresh sandboxes.
func (r *run) starts(ctx context.Context) error {
	names := []bench.MeasureName{bench.FirstByte, bench.Whole}
	return r.spread(ctx, r.opened(), r.pace.starts, names, func(ctx context.Context, s *subject) error {
		first, whole, err := start(ctx, s.runner.Run)
		if err == nil {
			s.addTime(bench.FirstByte, first)
			s.addTime(bench.Whole, whole)
		}
		return err
	}, nil)
}

// loads times the programs that are bound by one thing each, all in one
// sandbox, in an order drawn anew each time.
func (r *run) loads(ctx context.Context) error {
	all := loads()
	var names []bench.MeasureName
	for _, l := range all {
		names = append(names, l.name)
	}
	rnd := rand.New(rand.NewPCG(r.cfg.Seed, 3))
	return r.spread(ctx, r.opened(), r.pace.loads, names, func(ctx context.Context, s *subject) error {
		order := rnd.Perm(len(all))
		took, err := parts(ctx, s.runner, loadCode(order, r.pace.loadShare), len(order))
		for i := range took {
			s.addTime(all[order[i]].name, took[i])
		}
		return s.clear(err, names...)
	}, nil)
}

// keepers lists the subjects that have sandboxes that stay, and says of the
// others that they have none.
func (r *run) keepers(names []bench.MeasureName) []*subject {
	var all []*subject
	for _, s := range r.opened() {
		if _, ok := s.runner.(Keeper); ok {
			all = append(all, s)
			continue
		}
		for _, name := range names {
			s.missing[name] = "it has no sandbox that stays: its command ends with its program"
		}
	}
	return all
}

// sessions times sandboxes that stay.
func (r *run) sessions(ctx context.Context) error {
	names := []bench.MeasureName{bench.Create, bench.Second, bench.Destroy}
	return r.spread(ctx, r.keepers(names), r.pace.sessions, names, r.session, nil)
}

func (r *run) session(ctx context.Context, s *subject) (err error) {
	began := time.Now()
	kept, err := s.runner.(Keeper).Keep(ctx)
	if err != nil {
		return err
	}
	s.addTime(bench.Create, time.Since(began))
	defer func() {
		began := time.Now()
		if closed := kept.Close(context.WithoutCancel(ctx)); closed != nil {
			err = errors.Join(err, closed)
		} else if err == nil {
			s.addTime(bench.Destroy, time.Since(began))
		}
	}()
	if _, _, err := start(ctx, kept.Run); err != nil {
		return err
	}
	_, second, err := start(ctx, kept.Run)
	if err != nil {
		return err
	}
	s.addTime(bench.Second, second)
	return nil
}

// output times what a program writes to its standard output.
func (r *run) output(ctx context.Context) error {
	code := outputCode(r.pace.outputSize)
	return r.spread(ctx, r.opened(), r.pace.data, []bench.MeasureName{bench.Output}, func(ctx context.Context, s *subject) error {
		var a arrivals
		if err := s.runner.Stream(ctx, code, &a); err != nil {
			return err
		}
		if a.n != int64(r.pace.outputSize) {
			return fmt.Errorf("%d bytes of output came, want %d", a.n, r.pace.outputSize)
		}
		// What came first waited for nothing, so it is not counted.
		s.add(bench.Output, float64(a.n-int64(a.head))/max(a.last.Sub(a.first).Seconds(), 1e-9))
		return nil
	}, nil)
}

// files times what a program writes to a file and reads back.
func (r *run) files(ctx context.Context) error {
	code := fileCode(r.pace.dataSize)
	return r.spread(ctx, r.opened(), r.pace.data, []bench.MeasureName{bench.FileData}, func(ctx context.Context, s *subject) error {
		took, err := parts(ctx, s.runner, code, 1)
		if err == nil {
			s.add(bench.FileData, float64(r.pace.dataSize)/took[0].Seconds())
		}
		return s.clear(err, bench.FileData)
	}, nil)
}
