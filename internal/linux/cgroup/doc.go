// Package cgroup puts a sandbox's programs into control groups, so that
// memory, processes and CPU are bounded for the whole tree, counted from
// outside, and the tree can be killed at once.
//
// It knows cgroup v1, pure v2, and the hybrid of both (v1 controllers beside
// a v2 tree without any). [Find] tries what works for this process; [Tree]
// makes groups there; [Group] is one sandbox.
//
// # Layout
//
// Each supervisor process owns one folder "tranca-ID" per hierarchy, named by
// its identity of package supervisor, so that the groups of a dead supervisor
// can be told from those of a live one. Below it each sandbox has two leaves:
// one for the code, and one for the guest agent, which must go on when the
// code has used up its memory or processes, and must not be throttled with
// it. A leaf exists only where its controller asks for one, and there is no
// folder around the two: each folder costs a start some 0.1 ms.
//
//	BASE/tranca-ID/NAME          the code  (v1: memory, pids, cpu, cpuacct)
//	BASE/tranca-ID/NAME.agent    the agent (v1: memory, pids)
//
// On a hybrid host v1 can do all that is needed, and v2 is left alone unless
// it is asked for. Then the v2 tree brings cgroup.kill and the CPU time of the
// code, and the agent lives in BASE/tranca-ID itself.
//
// # Killing
//
// Kill stops all forks by a bound of no processes, and then kills who is
// listed, until nobody is. That needs no freezer, and measured the same as
// freezing and as cgroup.kill: some 150 ms for 500 processes on two CPUs,
// below 400 ms with twenty busy programs beside. It gives the code hardly any
// CPU time until all are signalled, and the greatest share from then on.
// cgroup.kill is kept for the end of a sandbox, since on some kernels a group
// that was killed by it kills newcomers; see tryKill.
//
// # Joining
//
// Moving a process by its id from outside waits for an RCU grace period,
// some 10 ms. What is fast is a task that writes "0" into a v1 "tasks" file,
// and, under v2, a child that is born in its group (clone3 with
// CLONE_INTO_CGROUP). So a [Group] hands out descriptors for both; see
// [Entry] for who may use them.
package cgroup
