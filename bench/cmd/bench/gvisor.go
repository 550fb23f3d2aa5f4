package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"tranca"
	"tranca/bench/hoststate"
	"tranca/bench/sample"
	"tranca/internal/backend"
	"tranca/internal/backend/gvisor"
	"tranca/internal/engine"
)

// The subjects of the gVisor rows.
const (
	gvisorCold = "gVisor: engine, cold"
	runscDo    = "gVisor: `runsc do` of the same version and platform"
)

// mostIdleGVisor bounds what an idle sandbox under gVisor has for itself, agent,
// launcher and file server included.
const mostIdleGVisor = 32

// gvisorPolicy is the default one, at gVisor's level.
func (o *options) gvisorPolicy() tranca.Policy {
	p := o.policy()
	p.Floor, p.Backend = tranca.LevelGVisor, gvisor.Name
	return p
}

// gvisor times one answer in a fresh sandbox beside `runsc do`, and adds up what
// idle sandboxes use.
func (o *options) gvisor(ctx context.Context, rep *report) error {
	b, err := gvisor.New(gvisor.Options{})
	if err != nil {
		return err
	}
	reg, err := backend.NewRegistry(b)
	if err != nil {
		return errors.Join(err, b.Close(ctx))
	}
	p := o.gvisorPolicy()
	e, err := engine.New(engine.Config{Backends: reg, Policy: p})
	if err != nil {
		return errors.Join(err, b.Close(ctx))
	}
	ours := &subject{engine: e, policy: p}
	defer ours.close()
	runtime, err := filepath.Abs(filepath.Join(filepath.Dir(o.tranca), "tranca-sentry"))
	if err != nil {
		return err
	}
	state, err := os.MkdirTemp("", "bench-runsc-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(state)
	// Without a network and in the caller's groups, which is the least that it
	// can be asked for.
	subjects := []sample.Subject{
		{Name: gvisorCold, Do: ours.answers},
		{Name: runscDo, Do: runs(runtime, "--root", state, "--platform", "systrap", "--network", "none",
			"--ignore-cgroups", "do", python, "-I", "-c", code)},
	}
	times, err := sample.Interleave(ctx, subjects, o.warm, max(o.rounds/4, 1), o.seed)
	if err != nil {
		return err
	}
	base := ms(times[runscDo].Percentile(50))
	for _, s := range subjects {
		rep.Times[s.Name] = times[s.Name]
		r := row{Part: "gvisor", Name: s.Name, Figure: quantiles(times[s.Name]), Value: ms(times[s.Name].Percentile(50)) / base, Unit: "x runsc do"}
		if s.Name == gvisorCold {
			r.Target = 1.2
		}
		rep.Rows = append(rep.Rows, r)
	}
	return o.idleGVisor(ctx, rep, b)
}

// idleGVisor makes sandboxes that run nothing, and adds up what their processes
// have for themselves.
func (o *options) idleGVisor(ctx context.Context, rep *report, b tranca.Backend) error {
	most := min(o.idle, 10)
	var boxes []tranca.Sandbox
	defer func() {
		for _, s := range boxes {
			_ = s.Close(context.WithoutCancel(ctx))
		}
	}()
	for n := range most {
		s, err := b.Create(ctx, tranca.Spec{ID: benchID(n), Policy: o.gvisorPolicy()})
		if err != nil {
			return err
		}
		boxes = append(boxes, s)
	}
	time.Sleep(time.Second) // what they do at their start is over
	procs, err := hoststate.Descendants()
	if err != nil {
		return err
	}
	if len(procs) < 3*most {
		return fmt.Errorf("%d sandboxes have only %d processes: they are looked for in the wrong place", most, len(procs))
	}
	var sum int64
	for _, pid := range procs {
		n, err := hoststate.PrivateDirty(pid)
		if err != nil {
			return err
		}
		sum += n
	}
	rep.Rows = append(rep.Rows, row{
		Part: "gvisor", Name: fmt.Sprintf("gVisor: idle sandbox, mean of %d", most),
		Figure: fmt.Sprintf("%.1f processes each", float64(len(procs))/float64(most)),
		Value:  float64(sum) / float64(most) / (1 << 20), Target: mostIdleGVisor, Unit: "MiB Private_Dirty",
	})
	return nil
}
