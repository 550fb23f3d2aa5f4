package gvisor

import (
	"math"
	"runtime"

	"tranca"
	"tranca/internal/linux/cgroup"
)

// What gVisor uses itself is not the program's, so that the group's bounds are
// the policy's and something more. TestOverhead measures it anew. Found were:
// 12 MiB and 29 tasks for an idle sandbox, agent and file server included; some
// 35 MiB after a program that had made and looked at ten thousand files, which
// both remember; 10 MiB more for 400 MiB in one process; two tasks and half a
// MiB for each process that does nothing.
//
// A process that was forked and goes on costs more, since gVisor copies what it
// writes to in pieces of 2 MiB, and not of a page: 5 MiB for one of Python's.
// Most of that counts as the program's, as the rest of its memory does. What is
// added for processes is bounded by half of the program's own limit, since one
// that starts none has it for itself.
const (
	// sentryMemory is what Sentry, file server and agent may need beside the
	// program.
	sentryMemory = 64 << 20
	// sentryShare is one part in so many of the program's memory.
	sentryShare = 32
	// processMemory is added for each process that the policy allows.
	processMemory = 1 << 20
	// sentryTasks are the threads of Sentry and stubs before any program.
	sentryTasks = 64
	// tasksEach is how many tasks of the host one of the program's is at most:
	// two in its stub, and one of the Sentry's.
	tasksEach = 3
)

// groupLimits are the bounds of the host's groups over a policy's limits.
func groupLimits(l tranca.Limits, asked cgroup.Limits) cgroup.Limits {
	// There is one group: Sentry, stubs and file server.
	asked.AgentMemory, asked.AgentProcesses = 0, 0
	if asked.Memory > 0 {
		asked.Memory = add(l.Memory, sentryMemory, l.Memory/sentryShare, min(l.Processes*processMemory, l.Memory/2))
	}
	if asked.Processes > 0 {
		asked.Processes = add(sentryTasks, l.Processes*tasksEach)
	}
	return asked
}

// add stays at the highest number where there is none higher.
func add(terms ...int64) int64 {
	var sum int64
	for _, t := range terms {
		if t < 0 || sum > math.MaxInt64-t {
			return math.MaxInt64
		}
		sum += t
	}
	return sum
}

// cpus is how many processors the programs see: as many as their share fills.
func cpus(l tranca.Limits) int {
	return int(max(1, min((l.MilliCPUs+999)/1000, int64(runtime.NumCPU()))))
}
