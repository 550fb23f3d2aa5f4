package process

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/guest/bootspec"
	"tranca/internal/linux/cgroup"
	"tranca/internal/linux/seccomp"
)

const (
	// searchPath is where programs are looked up inside.
	searchPath = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
	// agentMemory is what the agent may use beyond the files that it writes
	// for its host, which count as its memory.
	agentMemory    = 64 << 20
	agentProcesses = 128
	// agentThreads is the least that it has in use, with the code's init.
	agentThreads = 6
	// lockedMemory and queueMemory bound kernel memory that a user may pin.
	lockedMemory = 64 << 10
	queueMemory  = 64 << 10
	stackSize    = 8 << 20
	// pendingSignals bounds queued signals, which are kernel memory.
	pendingSignals = 1024
)

// bootTime bounds the building of a sandbox, killTime the killing of its
// programs, destroyTime its destruction.
const (
	bootTime    = 20 * time.Second
	killTime    = 10 * time.Second
	destroyTime = 20 * time.Second
)

// plan is one sandbox before it is made.
type plan struct {
	policy   *tranca.Policy
	boot     bootspec.Spec
	cgroups  cgroup.Limits
	single   bool     // only the caller's own user is to be had
	spaces   uintptr  // the namespaces, as clone flags
	sources  []source // opened mount sources, one for each mount
	mountFDs []int    // detached mounts to pass
}

// unixSockets says whether programs may make unix sockets. A host folder may
// hold, or come to hold, sockets of the host's services, and no mount flag
// keeps a program from connecting to one: so with mounts there are none.
func unixSockets(p *tranca.Policy) bool { return len(p.Mounts) == 0 }

// newPlan turns a policy into a boot message, but for the mounts.
func (b *Backend) newPlan(p *tranca.Policy) (*plan, error) {
	if p.Image != "host" {
		return nil, fmt.Errorf("%w: image %q: this backend has only \"host\"", tranca.ErrInvalid, p.Image)
	}
	filter, err := b.filter(seccomp.Profile{UnixSockets: unixSockets(p)})
	if err != nil {
		return nil, err
	}
	agentFilter, err := b.filter(seccomp.Profile{Agent: true})
	if err != nil {
		return nil, err
	}
	pl := &plan{policy: p, single: b.host.ids == nil, spaces: namespaces}
	l := p.Limits
	pl.boot = bootspec.Spec{
		CodeUID: p.User.UID, CodeGID: p.User.GID,
		Hostname:      p.Hostname,
		ScratchSize:   uint64(l.Disk.Size),
		ScratchInodes: uint64(l.Disk.Inodes),
		Filter:        filter,
		AgentFilter:   agentFilter,
		Landlock:      p.MinLandlockABI,
		Rlimits:       rlimits(l, b.perProcess(l)),
		Env:           environment(p),
		Path:          searchPath,
		Workdir:       p.Workdir,
		DeathSignal:   int(unix.SIGKILL),
	}
	if pl.single {
		pl.boot.AgentUID = p.User.UID
	}
	if p.Waives(tranca.ItemLandlock) && !b.host.holds(tranca.ItemLandlock) {
		pl.boot.Landlock = -1
	}
	pl.cgroups = b.groupLimits(l)
	if err := b.tree.addTo(&pl.boot, p); err != nil {
		return nil, err
	}
	if b.weaken != nil {
		b.weaken(pl)
	}
	return pl, nil
}

// groupLimits asks of the cgroup what it can hold here; what it can't was
// waived, or the policy would have been refused.
func (b *Backend) groupLimits(l tranca.Limits) cgroup.Limits {
	var c cgroup.Limits
	s := b.host.support
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

// ownThreads is what the kernel counts against the code's RLIMIT_NPROC beside
// the code: the agent's threads, where both are one user.
func (b *Backend) ownThreads() int64 {
	if b.host.ids != nil {
		return 0
	}
	return agentThreads
}

// environment is the whole environment of the code, sorted.
func environment(p *tranca.Policy) []string {
	env := map[string]string{
		"HOME": "/work", "PATH": searchPath, "USER": p.User.Name, "LOGNAME": p.User.Name,
		"LANG": "C.UTF-8", "TMPDIR": "/tmp",
	}
	maps.Copy(env, p.Env)
	var out []string
	for _, k := range slices.Sorted(maps.Keys(env)) {
		out = append(out, k+"="+env[k])
	}
	return out
}

// perProcess names limits of the tree that only per-process ones stand in for,
// because there is no cgroup for them.
type perProcess struct {
	memory, cpu bool
	// processes is the bound on what the kernel counts for the user; 0 is none.
	processes int64
}

func (b *Backend) perProcess(l tranca.Limits) perProcess {
	s := b.host.support
	p := perProcess{memory: !s.Memory.Held, cpu: !s.CPUTime.Held}
	if !s.PIDs.Held {
		p.processes = l.Processes + b.ownThreads()
	}
	return p
}

// rlimits are the kernel's per-process limits, within what this process may
// set at all.
func rlimits(l tranca.Limits, p perProcess) []bootspec.Rlimit {
	var lim []bootspec.Rlimit
	// What the hard limit of this process forbids to raise stays lower.
	set := func(resource int, soft, hard uint64) {
		most := hardLimit(resource)
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
	if p.memory {
		same(unix.RLIMIT_AS, uint64(l.Memory))
	}
	if p.cpu {
		// SIGXCPU at the limit tells why; SIGKILL a second later if ignored.
		seconds := uint64((l.CPUTime + time.Second - 1) / time.Second)
		set(unix.RLIMIT_CPU, seconds, seconds+1)
	}
	if p.processes > 0 {
		same(unix.RLIMIT_NPROC, uint64(p.processes))
	}
	return lim
}

// hardLimit is what this process could set at most.
func hardLimit(resource int) uint64 {
	var r unix.Rlimit
	if unix.Getrlimit(resource, &r) != nil {
		return ^uint64(0)
	}
	return r.Max
}

// statement says how each item of the policy is enforced by this plan.
func (b *Backend) statement(pl *plan) []tranca.Enforcement {
	var out []tranca.Enforcement
	for _, item := range tranca.Items() {
		g := b.host.report.Find(item)
		e := tranca.Enforcement{Item: item, Mechanism: g.Mechanism, Status: tranca.StatusEnforced}
		switch {
		case item == tranca.ItemMounts || item == tranca.ItemProtect || item == tranca.ItemMountDisk:
			if len(pl.policy.Mounts) == 0 {
				continue
			}
			e.Mechanism, e.Status = mountStatement(item, pl, e.Mechanism)
		case item == tranca.ItemUser && b.sharesUser(pl.policy) && g.Held:
			e.Status = tranca.StatusWaived
			e.Mechanism = "the code runs as the caller's own user, in namespaces of its own: so it may use what the operator mounted"
		case !g.Held && pl.policy.Waives(item):
			e.Status, e.Mechanism = tranca.StatusWaived, weaker(item, g.Missing)
		}
		if pl.policy.Limits.Disk.Backing == tranca.BackingFile {
			e.Mechanism = onDisk(item, e.Mechanism)
		}
		if item == tranca.ItemIPC && !unixSockets(pl.policy) {
			e.Mechanism += "; no unix sockets, since a mount may hold the host's"
		}
		out = append(out, e)
	}
	return out
}

// sharesUser reports whether the code gets the caller's user: what an
// unprivileged caller mounted is the caller's, and only root can map owners.
func (b *Backend) sharesUser(p *tranca.Policy) bool { return !b.host.root && len(p.Mounts) > 0 }

// onDisk says what bounds a writable space on disk.
func onDisk(item tranca.Item, mechanism string) string {
	switch item {
	case tranca.ItemDisk:
		return "size of an ext4 in an unnamed file on disk that holds /work, /tmp and /dev/shm"
	case tranca.ItemInodes:
		return "inode count of that ext4"
	}
	return mechanism
}

// weaker says what still stands of a waived item.
func weaker(item tranca.Item, missing string) string {
	switch item {
	case tranca.ItemMemory:
		return "RLIMIT_AS for each process; the tree is not bounded (" + missing + ")"
	case tranca.ItemCPUTime:
		return "RLIMIT_CPU for each process; the tree is not bounded (" + missing + ")"
	case tranca.ItemPIDs:
		return "RLIMIT_NPROC in the sandbox's own user namespace (" + missing + ")"
	case tranca.ItemUser:
		return "the code runs as the caller's own user, in namespaces of its own (" + missing + ")"
	}
	return "not enforced: " + missing
}

func mountStatement(item tranca.Item, pl *plan, mechanism string) (string, tranca.Status) {
	var rw []string
	for i := range pl.policy.Mounts {
		if m := &pl.policy.Mounts[i]; m.Writable {
			rw = append(rw, m.Target)
		}
	}
	switch {
	case item == tranca.ItemMountDisk && len(rw) > 0:
		return "no bound on what is written to " + strings.Join(rw, ", ") + ": the operator said so", tranca.StatusWaived
	case item == tranca.ItemMountDisk:
		return "all mounts are read-only", tranca.StatusEnforced
	case item == tranca.ItemProtect && len(rw) == 0:
		return "all mounts are read-only", tranca.StatusEnforced
	}
	return mechanism, tranca.StatusEnforced
}
