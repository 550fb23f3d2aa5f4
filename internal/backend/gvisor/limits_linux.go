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
// The latter is not added but counts as the program's: else one process could
// have the memory of all those that the policy would let it start.
const (
	// sentryMemory is what Sentry, file server and agent may need beside the
	// program.
	sentryMemory = 64 << 20
	// sentryShare is one part in so many of the program's memory.
	sentryShare = 32
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
		asked.Memory = add(l.Memory, sentryMemory, l.Memory/sentryShare)
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
