package gvisor

import (
	"math"
	"runtime"

	"tranca"
	"tranca/internal/linux/cgroup"
)

// What a Sentry uses itself is not the program's, so that the group's bounds
// are the policy's and something more. The figures are measured, by
// TestOverhead, and rounded up.
const (
	// sentryMemory is what an idle sandbox uses: Sentry, stubs and agent.
	sentryMemory = 64 << 20
	// sentryShare is what a Sentry needs to keep account of the program's
	// memory: one part in so many.
	sentryShare = 16
	// processMemory is what it needs for each process of the program.
	processMemory = 512 << 10
	// sentryTasks are the threads of an idle sandbox on the host.
	sentryTasks = 64
	// tasksEach is how many tasks of the host one process of the code needs at
	// most: its stub and that one's threads, and the Sentry's thread.
	tasksEach = 4
)

// groupLimits are the bounds of the host's groups over a policy's limits.
func groupLimits(l tranca.Limits, asked cgroup.Limits) cgroup.Limits {
	if asked.Memory > 0 {
		asked.Memory = add(l.Memory, sentryMemory, l.Memory/sentryShare, l.Processes*processMemory)
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
