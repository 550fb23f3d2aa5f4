package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tranca"
	"tranca/bench/hoststate"
)

// idleMemory measures idle sandboxes of the process backend, and first that this
// program has no other children.
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
	r, err := idleRow(ctx, b, p, o.idle, 1)
	if err != nil {
		return err
	}
	r.Part, r.Target = "idle", 3
	rep.Rows = append(rep.Rows, r)
	return nil
}

// idleRow makes sandboxes that run nothing and adds up what their processes
// have written for themselves: everything below this process. Each has so many
// processes or more.
func idleRow(ctx context.Context, b tranca.Backend, p tranca.Policy, many, each int) (row, error) {
	var boxes []tranca.Sandbox
	defer func() {
		for _, s := range boxes {
			_ = s.Close(context.WithoutCancel(ctx))
		}
	}()
	for n := range many {
		s, err := b.Create(ctx, tranca.Spec{ID: benchID(n), Policy: p})
		if err != nil {
			return row{}, err
		}
		boxes = append(boxes, s)
	}
	time.Sleep(time.Second) // what they do at their start is over
	procs, err := hoststate.Descendants()
	if err != nil {
		return row{}, err
	}
	if len(procs) < each*many {
		return row{}, fmt.Errorf("%d sandboxes have only %d processes: they are looked for in the wrong place", many, len(procs))
	}
	var sum int64
	var errs []error
	for _, pid := range procs {
		n, err := hoststate.PrivateDirty(pid)
		errs = append(errs, err)
		sum += n
	}
	if err := errors.Join(errs...); err != nil {
		return row{}, err
	}
	return row{
		Name:   fmt.Sprintf("idle sandbox, mean of %d", many),
		Figure: fmt.Sprintf("%.1f processes each", float64(len(procs))/float64(many)),
		Value:  mib(sum) / float64(many), Unit: "MiB Private_Dirty",
	}, nil
}

// benchID makes the name of a sandbox: 'i' and 20 characters.
func benchID(n int) tranca.ID { return tranca.ID(fmt.Sprintf("ibench%015d", n)) }
