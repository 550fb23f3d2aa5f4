// Package engine is the one place that decides. It takes a request, narrows
// the operator's policy by it, checks what is left against what a probe found
// on this host, creates a sandbox, runs the program, finds the end reason,
// collects the changes in writable mounts, and destroys the sandbox.
//
// # Why a run ended
//
// Several things can be true at once: the wall clock runs out while the
// kernel kills for memory, or a program ends in the moment in which it is
// stopped. The reason is the first of these that holds:
//
//  1. limit:memory and limit:cpu, which the backend found by counters. They
//     are facts about what was used, whoever gave the last blow.
//  2. limit:output, where the policy ends runs by it. It too is a fact.
//  3. exited: the program ended by itself before a stop could take effect.
//  4. limit:wall or closed: whichever made the engine stop it first.
//  5. signaled: a signal that no limit sent.
//  6. error: the sandbox failed, and nothing is known of the program.
//
// # What it costs
//
// A run needs no probe (reports are kept), no reflection and no look at the
// host's files unless the policy has a writable mount.
package engine
