package main

import (
	"context"
	"os"
	"path/filepath"

	"tranca"
	"tranca/bench/sample"
	"tranca/internal/backend/gvisor"
)

// The subjects of the gVisor rows.
const (
	gvisorCold  = "gVisor: engine, cold"
	gvisorWhole = "gVisor: bin/tranca run, whole process"
	runscDo     = "gVisor: `runsc do` of the same version and platform"
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
	ours, err := over(ctx, b, o.gvisorPolicy())
	if err != nil {
		return err
	}
	defer ours.close()
	command, err := o.runs("gvisor")
	if err != nil {
		return err
	}
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
		{Name: gvisorWhole, Do: command},
	}
	times, err := sample.Interleave(ctx, subjects, o.warm, max(o.rounds/4, 1), o.seed)
	if err != nil {
		return err
	}
	rep.beside("gvisor", "x runsc do", times, runscDo, map[string]float64{gvisorCold: 1.2}, gvisorCold, gvisorWhole, runscDo)
	idle, err := idleRow(ctx, b, ours.policy, min(o.idle, 10), 3)
	if err != nil {
		return err
	}
	idle.Part, idle.Name, idle.Target = "gvisor", "gVisor: "+idle.Name, mostIdleGVisor
	rep.Rows = append(rep.Rows, idle)
	return nil
}
