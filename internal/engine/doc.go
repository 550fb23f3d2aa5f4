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
// # Bounds over all
//
// Two lines are waited in, both fair, bounded and cancellable. In the first a
// sandbox waits for its share of what all sandboxes may be and use together: it
// holds that until it is destroyed, be it for a run or for a session. In the
// second whatever is started or run waits for its turn. Who stands in the
// second line may hold a share, and who holds a turn never waits for a share, so
// that they can't wait for each other.
//
// # Sessions
//
// A [Session] is one sandbox that lives. It ends by its owner, by its time, by
// its idle time, with the engine, or when its machine dies; then everything
// that is asked of it says [tranca.ErrGone] and why, and it is never made anew
// in silence. One timer of the engine watches all of them: an idle session has
// no goroutine.
//
// Several programs may run in it at once: [Session.Run] is one that its caller
// waits for, [Session.Start] one that outlives the call. Each has its own wall
// clock; a [Process] keeps what it wrote last, so that any number of readers can
// follow it from any offset that is still kept. Ceilings hold over all of them.
// Stopping one of several kills its process group and itself; should it not
// die, the sandbox is destroyed, and the session with it.
//
// # What it costs
//
// A run needs no probe (reports are kept), no reflection and no look at the
// host's files unless the policy has a writable mount.
package engine
