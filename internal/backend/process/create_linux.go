package process

import (
	"context"
	"os"

	"tranca"
	"tranca/internal/confine"
	"tranca/internal/linux/cleanup"
	"tranca/internal/linux/forkexec"
	"tranca/internal/weaken"
)

// boot makes one sandbox. The hook is called when it is gone; it may be nil. On
// error nothing of it is left.
func (b *Backend) boot(ctx context.Context, spec *tranca.Spec, closed func()) (*confine.Box, error) {
	pl, err := b.newPlan(spec)
	if err != nil {
		return nil, err
	}
	stated := b.statement(pl)
	if weaken.Enabled {
		b.takeAway(pl)
	}
	if b.weaken != nil {
		b.weaken(pl)
	}
	var cu cleanup.Stack
	defer cu.Clean()
	a, err := b.shelf.Take(pl.Groups)
	if err != nil {
		return nil, err
	}
	cu.Add(func() { _ = a.GiveBack() })
	if err := b.host.Prepare(ctx, &pl.Plan, a, &cu); err != nil {
		return nil, err
	}
	m := confine.NewBox(b.host, pl.Policy.Limits, a)
	if err := b.start(ctx, m, pl); err != nil {
		return nil, err
	}
	cu.Release()
	m.Watch(stated, closed)
	return m, nil
}

// start forks the agent, maps its users, tells it what to build and takes its
// answer.
func (b *Backend) start(ctx context.Context, m *confine.Box, pl *plan) error {
	spawn := b.spawner.For(m.Allotment, &pl.Plan)
	a, err := confine.StartAgent(ctx, spawn, &pl.Boot,
		func(files []*os.File) (*forkexec.Script, error) {
			return pl.Script(m.Allotment, true, files, b.image, []string{"init"}, confine.AgentEnv)
		},
		func(ctx context.Context, pid int) error { return b.host.MapUsers(ctx, pid, m.Allotment, &pl.Plan) })
	pl.CloseMounts()
	if err != nil {
		return confine.Refusal(Name, b.host.Root, err)
	}
	m.Attend("guest agent", a.Child, a.Diagnosis)
	m.Adopt(a.Stream, a.Scratch)
	return nil
}
