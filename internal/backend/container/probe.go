package container

import (
	"context"
	"fmt"

	"tranca"
)

// Probe makes a trial sandbox with the engine's default runtime. See
// [tranca.Backend].
func (b *Backend) Probe(ctx context.Context) (tranca.Report, error) {
	return b.ProbeRuntime(ctx, "")
}

// ProbeRuntime makes a trial sandbox by a runtime. See [tranca.RuntimeProber].
func (b *Backend) ProbeRuntime(ctx context.Context, name string) (tranca.Report, error) {
	if err := b.life.Enter(Name); err != nil {
		return tranca.Report{}, err
	}
	defer b.life.Leave()
	e, err := b.ready(ctx)
	if err != nil {
		return unusable(err), err
	}
	f, err := b.finding(ctx, e, e.runtimeFor(name))
	if err != nil {
		return b.reportOf(e), err
	}
	report := b.reportBy(e, name, f)
	if f.how != "" {
		return report, nil // that was a trial
	}
	spec := tranca.Spec{ID: tranca.NewID(), Policy: trialPolicy(name)}
	trial, err := b.bootBy(ctx, e, &spec, f)
	if err != nil {
		return report, err
	}
	// Also when the caller has gone: nothing of the trial may stay.
	if err := trial.Close(context.WithoutCancel(ctx)); err != nil {
		return report, fmt.Errorf("%w: trial sandbox: %w", tranca.ErrUnavailable, err)
	}
	return report, nil
}

// trialPolicy is the least that can be made.
func trialPolicy(runtime string) tranca.Policy {
	return tranca.Policy{
		Floor: tranca.LevelContainer, Image: tranca.ImageHost, Runtime: runtime, Hostname: "sandbox", Workdir: "/work",
		Network: tranca.NetworkNone, User: tranca.User{Name: "user", UID: 1000, GID: 1000},
		Waive: tranca.Waivable(), MinLandlockABI: 1,
		Limits: tranca.Limits{
			Memory: 64 << 20, Processes: 16, MilliCPUs: 1000, OpenFiles: 64, FileSize: 1 << 20,
			CPUTime: 1e9, Wall: 1e9,
			Disk: tranca.Disk{Size: 1 << 20, Inodes: 64, Backing: tranca.BackingMemory},
		},
	}
}
