package container

import (
	"time"

	"tranca"
	"tranca/internal/backend/container/docker"
	"tranca/internal/guest/bootspec"
)

// The kernel's numbers of the limits, which are the container's whatever this
// program runs on.
const (
	rlimitCPU        = 0
	rlimitFileSize   = 1
	rlimitStack      = 3
	rlimitCore       = 4
	rlimitProcesses  = 6
	rlimitOpenFiles  = 7
	rlimitMemoryLock = 8
	rlimitMemory     = 9
	rlimitSignals    = 11
	rlimitQueues     = 12
)

// What bounds kernel memory that a user may pin.
const (
	lockedMemory   = 64 << 10
	queueMemory    = 64 << 10
	stackSize      = 8 << 20
	pendingSignals = 1024
	mostTasks      = 4096
)

// perProcess is a limit that holds for each process of the container, the
// guest agent included.
type perProcess struct {
	name     string // the engine's
	resource int
	value    uint64
}

func (b *Backend) perProcess(l tranca.Limits) []perProcess {
	return []perProcess{
		// Not 0: where kernel.core_pattern is a pipe, the kernel starts the
		// host's handler for a crash whatever the limit, but for the one value
		// by which it knows the handler itself.
		{"core", rlimitCore, 1},
		{"fsize", rlimitFileSize, uint64(l.FileSize)},
		{"memlock", rlimitMemoryLock, lockedMemory},
		{"msgqueue", rlimitQueues, queueMemory},
		{"sigpending", rlimitSignals, pendingSignals},
		{"stack", rlimitStack, stackSize},
	}
}

// ulimits are those of the container. They are given one and all, as an
// engine's defaults may be above what the host lets anybody set.
func (b *Backend) ulimits(p *tranca.Policy) []docker.Ulimit {
	var all []docker.Ulimit
	add := func(name string, resource int, value uint64) {
		v := int64(min(value, hardLimit(resource), 1<<62))
		all = append(all, docker.Ulimit{Name: name, Soft: v, Hard: v})
	}
	for _, l := range b.perProcess(p.Limits) {
		add(l.name, l.resource, l.value)
	}
	add("nofile", rlimitOpenFiles, max(agentFiles, uint64(p.Limits.OpenFiles)))
	// The agents of all containers are one user, in some engines of one user
	// namespace: this only keeps an engine from asking for more than there is.
	add("nproc", rlimitProcesses, mostTasks)
	return all
}

// rlimits are those of each program, which the agent sets.
func (b *Backend) rlimits(e *engine, p *tranca.Policy) []bootspec.Rlimit {
	var all []bootspec.Rlimit
	add := func(resource int, soft, hard uint64) {
		most := hardLimit(resource)
		all = append(all, bootspec.Rlimit{Resource: resource, Soft: min(soft, most), Hard: min(hard, most)})
	}
	for _, l := range b.perProcess(p.Limits) {
		add(l.resource, l.value, l.value)
	}
	add(rlimitOpenFiles, uint64(p.Limits.OpenFiles), uint64(p.Limits.OpenFiles))
	// What the engine has no control group for, limits of each process stand
	// in for.
	if !b.holds(e, tranca.ItemMemory) {
		add(rlimitMemory, uint64(p.Limits.Memory), uint64(p.Limits.Memory))
	}
	if !b.holds(e, tranca.ItemCPUTime) {
		seconds := uint64((p.Limits.CPUTime + time.Second - 1) / time.Second)
		add(rlimitCPU, seconds, seconds+1) // SIGXCPU tells why; SIGKILL if ignored
	}
	if !e.boundsTasks() {
		add(rlimitProcesses, uint64(p.Limits.Processes), uint64(p.Limits.Processes))
	}
	return all
}
