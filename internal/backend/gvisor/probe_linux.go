package gvisor

import (
	"context"
	"fmt"
	"time"

	"tranca"
	"tranca/internal/backend/gvisor/image"
	"tranca/internal/confine"
)

// trialTime bounds the trial of a platform: one that the processor only claims
// to have hangs.
const trialTime = 10 * time.Second

// Probe boots a trial sandbox and reads back what the host's control groups
// did. See [tranca.Backend].
func (b *Backend) Probe(ctx context.Context) (tranca.Report, error) {
	if err := b.life.Enter(Name); err != nil {
		return tranca.Report{}, err
	}
	defer b.life.Leave()
	return b.report, b.tryOnce(ctx)
}

// Report says what was found when the backend was made. See [tranca.Reporter].
func (b *Backend) Report() tranca.Report { return b.report }

// tryOnce boots and closes the least that there is.
func (b *Backend) tryOnce(ctx context.Context) error {
	if err := confine.TooOld(Name); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, trialTime)
	defer cancel()
	trial, err := b.boot(ctx, &tranca.Spec{Policy: *trialPolicy()}, nil)
	if err != nil {
		return err
	}
	// Also when the caller has gone: nothing of the trial may stay.
	if err := trial.Close(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("%w: trial sandbox: %w", tranca.ErrUnavailable, err)
	}
	return nil
}

// usable refuses what can't work here. Making a sandbox is the trial itself,
// but for a platform that may hang.
func (b *Backend) usable(ctx context.Context) error {
	if err := confine.TooOld(Name); err != nil {
		return err
	}
	if b.options.Platform != KVM {
		return nil
	}
	b.trial.Do(func() {
		// Not in the caller's time: what is found holds for all.
		if err := b.tryOnce(context.WithoutCancel(ctx)); err != nil {
			b.refused = &tranca.RefusalError{Backend: Name, Unavailable: true, Problems: []tranca.Problem{{
				Item: tranca.ItemIsolation, Asked: "gVisor's KVM platform",
				Missing: "a trial sandbox did not boot with it: " + err.Error(),
				Mend:    "leave the platform out: systrap works everywhere",
			}}}
		}
	})
	return b.refused
}

// trialPolicy is the least that can be booted.
func trialPolicy() *tranca.Policy {
	return &tranca.Policy{
		Floor: tranca.LevelGVisor, Image: tranca.ImageHost, Hostname: "sandbox", Workdir: "/work",
		Network: tranca.NetworkNone, User: tranca.User{Name: "user", UID: 1000, GID: 1000},
		Waive: tranca.Waivable(),
		Limits: tranca.Limits{
			Memory: 64 << 20, Processes: 16, MilliCPUs: 1000, OpenFiles: 64, FileSize: 1 << 20,
			CPUTime: 10e9, Wall: 10e9,
			Disk: tranca.Disk{Size: 1 << 20, Inodes: 64, Backing: tranca.BackingMemory},
		},
	}
}

// findings says what a host gives. What every boot puts in place, or else
// fails, is held; the rest depends on what was found.
func (b *Backend) findings() tranca.Report {
	h := b.host
	held := func(item tranca.Item, mechanism string) tranca.Guarantee {
		return tranca.Guarantee{Item: item, Held: true, Mechanism: mechanism}
	}
	r := tranca.Report{Backend: Name, Level: tranca.LevelGVisor, Facts: b.facts(), Advisories: advisories(b.options.Advisories), Guarantees: []tranca.Guarantee{
		held(tranca.ItemIsolation, "gVisor: a kernel in user space ("+b.options.Platform+"), itself in namespaces of its own"),
		held(tranca.ItemFiles, "own root by pivot_root in the file server: read-only binds of a minimal host tree; the Sentry's own root is empty"),
		held(tranca.ItemMounts, h.MountMechanism()+", by the file server"),
		{Item: tranca.ItemMountDisk, Missing: "nothing bounds what is written to a host folder", Mend: "say `disk: unbounded` for the mount, or mount it read-only"},
		held(tranca.ItemProtect, "read-only binds over existing files; new ones are reported as changes"),
		held(tranca.ItemProcesses, "gVisor's own processes; Sentry and file server in pid namespaces of their own"),
		held(tranca.ItemIPC, "gVisor's own IPC and unix sockets; the host's are not connected to"),
		held(tranca.ItemNetwork, "gVisor's network stack with nothing but loopback, in a network namespace with nothing"),
		h.UserGuarantee(),
		held(tranca.ItemPrivileges, "no capability in any set, no_new_privs, inside and for the Sentry outside"),
		held(tranca.ItemSyscalls, "gVisor answers system calls; its own filter bounds the Sentry's; a seccomp allowlist inside"),
		{Item: tranca.ItemLandlock, Held: true, Mechanism: "not needed: the Sentry opens no file of the host"},
		held(tranca.ItemDevices, "gVisor's own /dev; no device of the host's"),
		held(tranca.ItemEnvironment, "own environment for each program; agent, Sentry and file server start with none of the host's"),
		held(tranca.ItemHostname, "gVisor's own uts namespace"),
		held(tranca.ItemLifetime, "parent death signal, end of the stream, pid namespace"),
		held(tranca.ItemWall, "monotonic clock of the supervisor, then kill of the tree"),
		h.CPUTimeGuarantee(),
		h.Feature(tranca.ItemCPUs, h.Support.CPU),
		b.memoryGuarantee(),
		held(tranca.ItemPIDs, "pids.max of a control group of gVisor's kernel, and a higher one of the host's around it"),
		held(tranca.ItemOpenFiles, "RLIMIT_NOFILE, by gVisor"),
		held(tranca.ItemFileSize, "RLIMIT_FSIZE, by gVisor"),
		held(tranca.ItemDisk, "size of the tmpfs that holds /work, /tmp and /dev/shm"),
		held(tranca.ItemInodes, "nr_inodes of that tmpfs"),
		held(tranca.ItemOutput, "the supervisor keeps the first bytes of each stream and drains the rest"),
	}}
	return r
}

// memoryGuarantee says what is bounded together.
func (b *Backend) memoryGuarantee() tranca.Guarantee {
	g := b.host.Feature(tranca.ItemMemory, b.host.Support.Memory)
	if g.Held {
		g.Mechanism += " over code and gVisor together, with gVisor's measured need added to the limit"
	}
	return g
}

func (b *Backend) facts() map[string]string {
	f := map[string]string{
		"kernel": confine.KernelRelease(), "cgroup": b.host.Support.Version, "platform": b.options.Platform,
		"gVisor": gVisorVersion, "known holes as of": b.options.Advisories.String(),

		tranca.FactMounts: confine.MountModes,
	}
	if digest, err := image.Digest(); err == nil {
		f["gVisor binary"] = digest
	}
	if b.host.SweepFault != "" {
		f["sweep"] = b.host.SweepFault
	}
	return f
}

// statement says how each item of the policy is enforced by this plan.
func (b *Backend) statement(pl *plan) []tranca.Enforcement {
	return b.host.Statement(&b.report, &pl.Plan)
}
