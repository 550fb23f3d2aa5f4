package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// throughput starts the program from many callers at once, by turns bare and
// by the engine with its own bound on what is in flight.
func (o *options) throughput(ctx context.Context, rep *report) error {
	engine, err := o.open(ctx, 0)
	if err != nil {
		return err
	}
	defer engine.close()
	const turns, each = 6, 2
	var took [2]time.Duration
	do := [2]func(context.Context) error{runs(python, "-I", "-c", code), engine.answers}
	for turn := range turns {
		for i := range do {
			// The first turn warms both up; then the two swap their order.
			which := (i + turn) % 2
			t, err := together(ctx, o.callers, each, do[which])
			if err != nil {
				return err
			}
			if turn > 0 {
				took[which] += t
			}
		}
	}
	starts := float64(o.callers * each * (turns - 1))
	rates := [2]float64{starts / took[0].Seconds(), starts / took[1].Seconds()}
	rep.Rows = append(rep.Rows,
		row{
			Part: "throughput", Name: fmt.Sprintf("bare, %d callers", o.callers),
			Figure: fmt.Sprintf("%.0f starts/s", rates[0]), Value: 1, Unit: "x bare",
		},
		row{
			Part: "throughput", Name: fmt.Sprintf("engine, %d callers", o.callers),
			Figure: fmt.Sprintf("%.0f starts/s", rates[1]), Value: rates[1] / rates[0],
			Target: 0.45, AtLeast: true, Unit: "x bare",
		})
	return nil
}

// together calls do from several goroutines, each times over, and returns how
// long it took until the last was through.
func together(ctx context.Context, callers, each int, do func(context.Context) error) (time.Duration, error) {
	var wg sync.WaitGroup
	errs := make([]error, callers)
	start := time.Now()
	for i := range callers {
		wg.Go(func() {
			for range each {
				if errs[i] = do(ctx); errs[i] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return time.Since(start), errors.Join(errs...)
}
