package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tranca"
	"tranca/bench/hoststate"
)

// idleMemory makes sandboxes that run nothing and adds up what their processes
// have written for themselves: everything below this process, which has no
// other children.
func (o *options) idleMemory(ctx context.Context, rep *report) error {
	b, p, err := o.backend(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = b.Close(ctx) }()
	before, err := hoststate.Descendants()
	if err != nil {
		return err
	}
	if len(before) > 0 {
		return fmt.Errorf("there are %d child processes already: what is measured would not be the sandboxes'", len(before))
	}
	var boxes []tranca.Sandbox
	defer func() {
		for _, s := range boxes {
			_ = s.Close(context.WithoutCancel(ctx))
		}
	}()
	for n := range o.idle {
		s, err := b.Create(ctx, tranca.Spec{ID: benchID(n), Policy: p})
		if err != nil {
			return err
		}
		boxes = append(boxes, s)
	}
	time.Sleep(time.Second) // what the agents do at their start is over
	procs, err := hoststate.Descendants()
	if err != nil {
		return err
	}
	if len(procs) < o.idle {
		return fmt.Errorf("%d sandboxes have only %d processes: they are looked for in the wrong place", o.idle, len(procs))
	}
	var sum int64
	var errs []error
	for _, pid := range procs {
		n, err := hoststate.PrivateDirty(pid)
		errs = append(errs, err)
		sum += n
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	mean := float64(sum) / float64(o.idle) / (1 << 20)
	rep.Rows = append(rep.Rows, row{
		Part: "idle", Name: fmt.Sprintf("idle sandbox, mean of %d", o.idle),
		Figure: fmt.Sprintf("%.1f processes each", float64(len(procs))/float64(o.idle)),
		Value:  mean, Target: 3, Unit: "MiB Private_Dirty",
	})
	return nil
}

// benchID makes the name of a sandbox: 'i' and 20 characters.
func benchID(n int) tranca.ID { return tranca.ID(fmt.Sprintf("ibench%015d", n)) }
