// Package machine is what a local backend makes: something booted that gives
// a byte stream to its guest agent, with limits that hold from outside.
//
// A backend implements [Machine]; package guest/host turns a Machine into a
// [tranca.Sandbox], the same way for all of them. So no backend has exec or
// file code of its own.
package machine

import (
	"context"
	"io"
	"os"

	"tranca"
)

// Machine is one booted sandbox as its host sees it. Safe for concurrent use,
// but for Stream, which has one owner.
type Machine interface {
	// Stream is the byte stream to the guest agent. Every byte that comes from
	// it is hostile. It ends when the agent does. Closing it makes the agent
	// end the sandbox.
	Stream() io.ReadWriteCloser

	// Begin resets clock, CPU time, peaks, OOM and refusal counters. It is
	// called before a program is started in an idle machine.
	Begin(ctx context.Context) error

	// Observe reads what the programs used since Begin.
	Observe(ctx context.Context) (Observation, error)

	// Limit delivers the reason when a limit that ends a run (CPU time or
	// memory) was passed since the last Begin, at most once per Begin; the
	// machine has then begun to kill the programs by itself. The channel
	// stays open and has room for one value.
	Limit() <-chan tranca.Reason

	// Kill ends every program, not the agent but where [KillByAgent] says so,
	// and returns when none lives.
	Kill(ctx context.Context) error

	// Close destroys the machine and returns when nothing of it is left.
	Close(ctx context.Context) error

	// Enforcement is what the machine enforces, in the order of tranca.Items.
	Enforcement() []tranca.Enforcement
}

// KillByAgent is the ability of a machine to say that its Kill would end the
// agent too, since the host has nothing by which to reach the programs alone.
// The agent is then asked first, and Kill is for one that does not answer.
type KillByAgent interface {
	// KillsAgent reports whether Kill ends the agent.
	KillsAgent() bool
}

// Obituary is the ability of a machine to say what its last words were, for one
// that has ended by itself.
type Obituary interface {
	// LastWords are bounded and hostile; they may be empty.
	LastWords() string
}

// ChangeReader is the ability of a machine to hand out what was written to its
// mounts of mode cow; see [tranca.ChangeReader].
type ChangeReader interface {
	OpenChanges(target string) (*os.File, error)
}

// Observation is what the host has counted.
type Observation struct {
	Usage tranca.Usage
	// Limit is EndCPU or EndMemory if such a limit was passed since Begin,
	// else empty. It is found by reading counters, so it is also right when a
	// program died of the limit before anyone was told.
	Limit tranca.Reason
}
