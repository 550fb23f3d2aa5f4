package gvisor

import (
	"context"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/confine"
	"tranca/internal/guest/bootspec"
	"tranca/internal/guest/sentryspec"
	"tranca/internal/linux/cgroup"
	"tranca/internal/linux/cleanup"
	"tranca/internal/linux/forkexec"
	"tranca/internal/weaken"
)

// plan is one sandbox before it is made. Its Boot is what the file server
// builds.
type plan struct {
	confine.Plan
	agent  bootspec.Spec   // what the guest agent is told, inside
	kernel sentryspec.Spec // what the Sentry is told
	spaces uintptr         // the Sentry's namespaces, as clone flags
	device string          // what the platform needs, or the empty device
}

// groupsOf are the bounds of a policy's control groups.
func (b *Backend) groupsOf(p *tranca.Policy) cgroup.Limits {
	return groupLimits(p.Limits, b.host.GroupLimits(p.Limits))
}

// newPlan turns a policy into the three boot messages, but for the mounts.
func (b *Backend) newPlan(spec *tranca.Spec) (*plan, error) {
	p := &spec.Policy
	filter, err := b.codeFilter()
	if err != nil {
		return nil, err
	}
	pl := &plan{Plan: b.host.NewPlan(p), device: os.DevNull, spaces: confine.Namespaces}
	pl.Groups = b.groupsOf(p)
	if err := b.tree.AddTo(&pl.Boot, spec); err != nil {
		return nil, err
	}
	// The Sentry has devices of its own.
	pl.Boot.Binds = slices.DeleteFunc(pl.Boot.Binds, func(m bootspec.Bind) bool { return m.Device })
	pl.agent = bootspec.Spec{
		Contained: true, CodeUID: p.User.UID, CodeGID: p.User.GID,
		Filter: filter, Rlimits: confine.Rlimits(p.Limits, b.perProcess()),
		Env: pl.Boot.Env, Path: pl.Boot.Path, Workdir: pl.Boot.Workdir,
		GuestProcesses: uint64(p.Limits.Processes), Landlock: -1,
	}
	pl.kernel = sentryspec.Spec{
		UID: sentryID, GID: sentryID, Hostname: p.Hostname, Platform: b.options.Platform,
		CPUs: cpus(p.Limits), Memory: uint64(p.Limits.Memory), Shared: len(p.Mounts) > 0,
		AgentEnv: confine.AgentEnv, Debug: b.options.DebugLog != "",
	}
	pl.moveRlimits()
	if b.options.Platform == KVM {
		pl.device = kvmDevice
	}
	return pl, nil
}

// perProcess says which limits of the tree no control group keeps, so that each
// process has them by itself: what is waived on such a host still has that.
func (b *Backend) perProcess() confine.PerProcess {
	s := b.host.Support
	return confine.PerProcess{Memory: !s.Memory.Held, CPU: !s.CPUTime.Held}
}

// moveRlimits gives the Sentry those that gVisor lets nobody set inside.
func (pl *plan) moveRlimits() {
	pl.agent.Rlimits = slices.DeleteFunc(pl.agent.Rlimits, func(r bootspec.Rlimit) bool {
		switch r.Resource {
		case unix.RLIMIT_SIGPENDING:
			pl.kernel.PendingSignals = r.Hard
		case unix.RLIMIT_MSGQUEUE:
			pl.kernel.QueueMemory = r.Hard
		default:
			return false
		}
		return true
	})
}

// boot makes one sandbox. The hook is called when it is gone; it may be nil. On
// error nothing of it is left.
func (b *Backend) boot(ctx context.Context, spec *tranca.Spec, closed func()) (*box, error) {
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
	m := &box{Box: confine.NewBox(b.host, pl.Policy.Limits, a)}
	if err := b.start(ctx, m, pl); err != nil {
		return nil, confine.Refusal(Name, b.host.Root, err)
	}
	cu.Release()
	m.Watch(stated, closed)
	return m, nil
}

// start starts file server and Sentry side by side, and talks to the agent
// inside.
func (b *Backend) start(ctx context.Context, m *box, pl *plan) error {
	var cu cleanup.Stack
	defer cu.Clean()
	defer pl.CloseMounts()
	ours, theirs, err := connections(len(sentryspec.Mounts(pl.kernel.Omit)))
	if err != nil {
		return err
	}
	cu.Add(func() { closeAll(ours); closeAll(theirs) })
	k, err := b.forkKernel(m, pl, ours)
	if err != nil {
		return err
	}
	cu.Add(k.abandon)
	closeAll(ours)
	told := make(chan error, 1)
	go func() { told <- k.tell(ctx, b, m, pl) }()
	spawn := b.spawner.For(m.Allotment, &pl.Plan)
	files, err := confine.StartAgent(ctx, spawn, &pl.Boot,
		func(fds []*os.File) (*forkexec.Script, error) {
			return pl.Script(m.Allotment, false, append(fds, theirs...), b.sentry,
				[]string{sentryspec.Process, sentryspec.FilesCommand}, processEnv)
		},
		func(ctx context.Context, pid int) error { return b.host.MapUsers(ctx, pid, m.Allotment, &pl.Plan) })
	closeAll(theirs)
	if err != nil {
		k.hurry()
		<-told
		return fmt.Errorf("file server: %w", err)
	}
	cu.Add(files.Abandon)
	if err := <-told; err != nil {
		return fmt.Errorf("gVisor: %w", err)
	}
	agent := confine.Agent{Child: k.child, Stream: k.stream, Diagnosis: k.diagnosis}
	if err := agent.Converse(ctx, &pl.agent); err != nil {
		return err
	}
	cu.Release()
	m.adopt(k, files)
	return nil
}

// connections are those between Sentry and file server: one end of each for
// the Sentry, the other for the file server.
func connections(n int) (sentry, files []*os.File, err error) {
	for range n {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			closeAll(sentry)
			closeAll(files)
			return nil, nil, os.NewSyscallError("socketpair", err)
		}
		sentry = append(sentry, os.NewFile(uintptr(fds[0]), "connection"))
		files = append(files, os.NewFile(uintptr(fds[1]), "connection"))
	}
	return sentry, files, nil
}

// closeAll closes files. Those that were closed stay that.
func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
