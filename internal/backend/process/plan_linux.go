package process

import (
	"tranca"
	"tranca/internal/confine"
	"tranca/internal/linux/seccomp"
)

// agentThreads is the least that the agent has in use, with the code's init.
const agentThreads = 6

// plan is one sandbox before it is made.
type plan struct{ confine.Plan }

// unixSockets says whether programs may make unix sockets. A host folder may
// hold, or come to hold, sockets of the host's services, and no mount flag
// keeps a program from connecting to one: so with mounts there are none.
func unixSockets(p *tranca.Policy) bool { return len(p.Mounts) == 0 }

// newPlan turns a policy into a boot message, but for the mounts.
func (b *Backend) newPlan(spec *tranca.Spec) (*plan, error) {
	p := &spec.Policy
	filter, err := b.filter(seccomp.Profile{UnixSockets: unixSockets(p)})
	if err != nil {
		return nil, err
	}
	agentFilter, err := b.filter(seccomp.Profile{Agent: true})
	if err != nil {
		return nil, err
	}
	pl := &plan{b.host.NewPlan(p)}
	pl.Boot.Filter, pl.Boot.AgentFilter = filter, agentFilter
	pl.Boot.Landlock = p.MinLandlockABI
	pl.Boot.Rlimits = confine.Rlimits(p.Limits, b.perProcess(p.Limits))
	if p.Waives(tranca.ItemLandlock) && !b.report.Holds(tranca.ItemLandlock) {
		pl.Boot.Landlock = -1
	}
	if err := b.tree.AddTo(&pl.Boot, spec); err != nil {
		return nil, err
	}
	return pl, nil
}

// ownThreads is what the kernel counts against the code's RLIMIT_NPROC beside
// the code: the agent's threads, where both are one user.
func (b *Backend) ownThreads() int64 {
	if b.host.IDs != nil {
		return 0
	}
	return agentThreads
}

func (b *Backend) perProcess(l tranca.Limits) confine.PerProcess {
	s := b.host.Support
	p := confine.PerProcess{Memory: !s.Memory.Held, CPU: !s.CPUTime.Held}
	if !s.PIDs.Held {
		p.Processes = l.Processes + b.ownThreads()
	}
	return p
}

// statement says how each item of the policy is enforced by this plan.
func (b *Backend) statement(pl *plan) []tranca.Enforcement {
	out := b.host.Statement(&b.report, &pl.Plan)
	for i := range out {
		if out[i].Item == tranca.ItemIPC && !unixSockets(pl.Policy) {
			out[i].Mechanism += "; no unix sockets, since a mount may hold the host's"
		}
	}
	return out
}
