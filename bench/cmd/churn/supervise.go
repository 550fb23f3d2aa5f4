package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"tranca"
	"tranca/internal/hoststate"
)

// superviseSelf is the supervisor: it runs its share and says each start and
// end on standard output. If it comes to its end, it looks at its own
// descriptors.
func (o *options) superviseSelf(ctx context.Context) error {
	// One whole life first: what the runtime opens once and keeps isn't a leak.
	if err := o.live(ctx, func(r tranca.Runner) error {
		_, err := r.Run(ctx, tranca.Request{Code: "pass"})
		return err
	}); err != nil {
		return err
	}
	self := hoststate.Options{Self: true}
	before, err := hoststate.Take(self)
	if err != nil {
		return err
	}
	if err := o.live(ctx, func(r tranca.Runner) error { return o.runAll(ctx, r) }); err != nil {
		return err
	}
	left, err := descriptorsLeft(before, self)
	if len(left) > 0 {
		err = fmt.Errorf("descriptors left: %q", left)
	}
	return err
}

// live opens a runner, uses it and closes it.
func (o *options) live(ctx context.Context, use func(tranca.Runner) error) error {
	runner, closeRunner, err := o.open(ctx)
	if err != nil {
		return err
	}
	return errors.Join(use(runner), closeRunner())
}

// descriptorsLeft gives late closes some time, and looks at descriptors alone:
// the rest of the host is for the parent to look at.
func descriptorsLeft(before *hoststate.State, o hoststate.Options) ([]string, error) {
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		now, err := hoststate.Take(o)
		if err != nil {
			return nil, err
		}
		left := hoststate.Left(
			&hoststate.State{Descriptors: before.Descriptors},
			&hoststate.State{Descriptors: now.Descriptors})
		if len(left) == 0 || time.Now().After(deadline) {
			return left, nil
		}
	}
}

func (o *options) runAll(ctx context.Context, runner tranca.Runner) error {
	rnd := rand.New(rand.NewPCG(o.seed, 1))
	jobs := make(chan job)
	var mu sync.Mutex
	var errs []error
	var wg sync.WaitGroup
	for range o.parallel {
		wg.Go(func() {
			for j := range jobs {
				fmt.Fprintln(os.Stdout, lineStart, j.name)
				err := o.runJob(ctx, runner, j)
				fmt.Fprintln(os.Stdout, lineEnd, j.name)
				if err != nil {
					mu.Lock()
					errs = append(errs, fmt.Errorf("%s: %w", j.name, err))
					mu.Unlock()
				}
			}
		})
	}
	for n := range o.sandboxes {
		jobs <- pick(n, rnd)
	}
	close(jobs)
	wg.Wait()
	return errors.Join(errs...)
}

// runJob runs the job, again and again while the engine may be away: it has to
// be right in the end, and never anything but right or a failure that says so.
func (o *options) runJob(ctx context.Context, runner tranca.Runner, j job) error {
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		failed, err := runOnce(ctx, runner, j)
		if err == nil || !failed || !o.outages || time.Now().After(deadline) {
			return err
		}
	}
}

// runOnce also says whether what went wrong is a failure that was told as such:
// an error, or a run that ended with [tranca.EndError].
func runOnce(ctx context.Context, runner tranca.Runner, j job) (failed bool, err error) {
	if j.cancelAfter > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, j.cancelAfter)
		defer cancel()
	}
	res, err := runner.Run(ctx, tranca.Request{Code: j.code, Narrow: j.narrow})
	if err != nil {
		if j.cancelAfter > 0 && errors.Is(err, context.DeadlineExceeded) {
			return false, nil // killed before it was made
		}
		return true, err
	}
	return res.Exit.Reason == tranca.EndError, j.right(res)
}
