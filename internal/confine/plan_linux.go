package confine

import (
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/guest/bootspec"
	"tranca/internal/linux/cgroup"
)

const (
	// SearchPath is where programs are looked up inside.
	SearchPath = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
	// agentMemory is what the agent may use beyond the files that it writes
	// for its host, which count as its memory.
	agentMemory    = 64 << 20
	agentProcesses = 128
	// lockedMemory and queueMemory bound kernel memory that a user may pin.
	lockedMemory = 64 << 10
	queueMemory  = 64 << 10
	stackSize    = 8 << 20
	// pendingSignals bounds queued signals, which are kernel memory.
	pendingSignals = 1024
)

// BootTime bounds the building of a sandbox, KillTime the killing of its
// programs, destroyTime its destruction.
const (
	BootTime    = 20 * time.Second
	KillTime    = 10 * time.Second
	destroyTime = 20 * time.Second
)

// Plan is one sandbox before it is made.
type Plan struct {
	Policy *tranca.Policy
	Boot   bootspec.Spec
	Groups cgroup.Limits
	Single bool    // only the caller's own user is to be had
	Spaces uintptr // the namespaces, as clone flags
	// Callers gives the code the caller's own user on the host.
	Callers bool

	sources  []*Source // one for each mount
	mountFDs []int     // detached mounts to pass
}

// NewPlan turns a policy into a boot message, but for the mounts and what runs
// inside.
func (h *Host) NewPlan(p *tranca.Policy) Plan {
	l := p.Limits
	pl := Plan{Policy: p, Single: h.IDs == nil, Spaces: Namespaces, Groups: h.GroupLimits(l)}
	pl.Boot = bootspec.Spec{
		CodeUID: p.User.UID, CodeGID: p.User.GID,
		Hostname:      p.Hostname,
		ScratchSize:   uint64(l.Disk.Size),
		ScratchInodes: uint64(l.Disk.Inodes),
		Env:           Environment(p),
		Path:          SearchPath,
		Workdir:       p.Workdir,
		DeathSignal:   int(unix.SIGKILL),
	}
	if pl.Single {
		pl.Boot.AgentUID = p.User.UID
	}
	return pl
}

// number tells the boot message at which descriptors the mounts will be.
func (pl *Plan) number(first int) {
	i := first
	for j := range pl.Boot.Binds {
		if pl.Boot.Binds[j].FD != 0 {
			pl.Boot.Binds[j].FD = i
			i++
		}
	}
	if pl.Boot.ScratchFD != 0 {
		pl.Boot.ScratchFD = i
	}
}

// CloseMounts closes what was opened for the mounts.
func (pl *Plan) CloseMounts() {
	for _, fd := range pl.mountFDs {
		unix.Close(fd)
	}
	pl.mountFDs = nil
	for _, s := range pl.sources {
		s.Close()
	}
	pl.sources = nil
}

// GroupLimits asks of the cgroup what it can hold here; what it can't was
// waived, or the policy would have been refused.
func (h *Host) GroupLimits(l tranca.Limits) cgroup.Limits {
	var c cgroup.Limits
	s := h.Support
	if s.Memory.Held {
		c.Memory, c.AgentMemory = l.Memory, agentMemory
		if l.Disk.Backing == tranca.BackingMemory {
			c.AgentMemory += l.Disk.Size // files that the host writes count as the agent's
		}
	}
	if s.PIDs.Held {
		c.Processes, c.AgentProcesses = l.Processes, agentProcesses
	}
	if s.CPU.Held {
		c.MilliCPUs = l.MilliCPUs
	}
	return c
}

// SharesUser reports whether the code gets the caller's user: what an
// unprivileged caller mounted is the caller's, and only root can map owners.
func (h *Host) SharesUser(p *tranca.Policy) bool { return !h.Root && len(p.Mounts) > 0 }

// Environment is the whole environment of the code, sorted.
func Environment(p *tranca.Policy) []string {
	env := map[string]string{
		"HOME": "/work", "PATH": SearchPath, "USER": p.User.Name, "LOGNAME": p.User.Name,
		"LANG": "C.UTF-8", "TMPDIR": "/tmp",
	}
	maps.Copy(env, p.Env)
	var out []string
	for _, k := range slices.Sorted(maps.Keys(env)) {
		out = append(out, k+"="+env[k])
	}
	return out
}

// PerProcess names limits of the tree that only per-process ones stand in for,
// because there is no cgroup for them.
type PerProcess struct {
	Memory, CPU bool
	// Processes is the bound on what the kernel counts for the user; 0 is none.
	Processes int64
}

// Rlimits are the kernel's per-process limits, within what this process may
// set at all.
func Rlimits(l tranca.Limits, p PerProcess) []bootspec.Rlimit {
	var lim []bootspec.Rlimit
	// What the hard limit of this process forbids to raise stays lower.
	set := func(resource int, soft, hard uint64) {
		most := HardLimit(resource)
		lim = append(lim, bootspec.Rlimit{Resource: resource, Soft: min(soft, most), Hard: min(hard, most)})
	}
	same := func(resource int, value uint64) { set(resource, value, value) }
	same(unix.RLIMIT_NOFILE, uint64(l.OpenFiles))
	same(unix.RLIMIT_FSIZE, uint64(l.FileSize))
	// Not 0: where kernel.core_pattern is a pipe, the kernel starts the host's
	// handler for a crash whatever the limit, but for the one value by which it
	// knows the handler itself. A file of one byte is never written either.
	same(unix.RLIMIT_CORE, 1)
	same(unix.RLIMIT_MEMLOCK, lockedMemory)
	same(unix.RLIMIT_MSGQUEUE, queueMemory)
	same(unix.RLIMIT_STACK, stackSize)
	same(unix.RLIMIT_SIGPENDING, pendingSignals)
	if p.Memory {
		same(unix.RLIMIT_AS, uint64(l.Memory))
	}
	if p.CPU {
		// SIGXCPU at the limit tells why; SIGKILL a second later if ignored.
		seconds := uint64((l.CPUTime + time.Second - 1) / time.Second)
		set(unix.RLIMIT_CPU, seconds, seconds+1)
	}
	if p.Processes > 0 {
		same(unix.RLIMIT_NPROC, uint64(p.Processes))
	}
	return lim
}

// HardLimit is what this process could set at most.
func HardLimit(resource int) uint64 {
	var r unix.Rlimit
	if unix.Getrlimit(resource, &r) != nil {
		return ^uint64(0)
	}
	return r.Max
}
