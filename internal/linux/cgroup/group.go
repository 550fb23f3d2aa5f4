package cgroup

import (
	"os"
	"time"
)

// Limits bound one sandbox. A zero field sets no bound, and asks for no
// group of the controllers that only that bound needs.
type Limits struct {
	// Memory is the bytes of the code's whole tree; no swap beside it.
	Memory int64
	// Processes bounds the code's processes and threads.
	Processes int64
	// MilliCPUs is the code's share of CPUs in thousandths.
	MilliCPUs int64
	// AgentMemory and AgentProcesses bound the guest agent, apart from the
	// code.
	AgentMemory    int64
	AgentProcesses int64
	// Owner is the user, as the host sees it, under whom the guest agent
	// starts programs: it is given the right to join the code's leaf. Nil
	// where the supervisor itself starts them.
	Owner *Owner
}

// Owner is a user of the host.
type Owner struct {
	UID uint32
	GID uint32
}

// Entry is the way into one leaf. Its files stay the group's: they are open
// until [Group.Destroy], and a process that gets them must not keep them when
// it becomes hostile code. A field that does not apply is nil.
//
// A process is in the leaf when it, or the thread that forked it, has written
// "0" to each of Tasks, and was started in Dir. (To write "0" into the v2
// cgroup.procs of Dir does the same, but waits for an RCU grace period.)
type Entry struct {
	// Tasks are the v1 "tasks" files. Writing "0" moves the calling thread
	// only, and takes some 50 µs each. Where Reopen is set the kernel asks
	// that the file was opened by the user who writes: the joining process
	// opens each anew by [Reopen], while it can still see the host's /proc.
	Tasks  []*os.File
	Reopen bool
	// Dir is the v2 folder for clone3 with CLONE_INTO_CGROUP (in Go:
	// SysProcAttr.UseCgroupFD). The kernel checks the rights of the caller,
	// not of the opener: the supervisor has them, and Limits.Owner has them
	// on the code's leaf, provided that the caller is itself in the agent's.
	// Where the tree is mounted with nsdelegate, as systemd does, the caller's
	// cgroup namespace must hold both leaves: a child makes one of its own
	// after its birth, not the caller before.
	Dir *os.File
	// Detached says that nothing above Dir can be reached from it. Only then
	// may it be handed into a sandbox; see [Detach].
	Detached bool
}

// Stats is what the kernel has counted for the code since [Group.Begin].
type Stats struct {
	// CPUTime is user and system time of the tree, the dead included.
	CPUTime time.Duration
	// CPUSpent is what counts against a limit: the same, and what was used
	// before where something of the code has lived on since.
	CPUSpent time.Duration
	// Memory is the bytes in use now.
	Memory int64
	// MemoryPeak is the highest use in bytes, -1 where the kernel can't tell
	// for this run alone.
	MemoryPeak int64
	// OOMKills counts processes that the kernel killed for want of memory.
	OOMKills int64
	// Refused counts forks that the bound on processes refused.
	Refused int64
	// Processes is the number of processes and threads now, zombies included.
	Processes int64
	// ProcessesPeak is the highest number; where the kernel has no such
	// counter, or the run stayed below an earlier one, the highest seen by
	// Stats, hence a lower bound.
	ProcessesPeak int64
}
