package tranca

import (
	"context"
	"io"
	"time"
)

// Request is code to run. It carries no policy: what it may do was settled by
// the operator, and Narrow can only take from it.
type Request struct {
	// Code is the program's text. It is empty only where Args name a command.
	Code string
	// Language is the interpreter: "python" (if empty), "sh", or another that
	// Languages of package tranca/local lists.
	Language string
	// Command, where set, is run instead of Code.
	Command []string
	// Args are given to the program.
	Args []string
	// Stdin is the program's standard input; nil is empty.
	Stdin io.Reader
	// Stdout and Stderr, where set, take the output as it comes, within the
	// limit. They must not block for long: what they do not take in time is
	// dropped from the stream, never from the Result.
	Stdout, Stderr io.Writer
	// Profile names one of the operator's policies; empty is the first one.
	Profile string
	Narrow  Narrowing
}

// Runner runs code. It is what surfaces are built on.
type Runner interface {
	// Run runs one request in a fresh sandbox and returns when nothing of it
	// is left. A program that fails, or that a limit ends, is a Result; an
	// error wraps one of this package's classes. If ctx ends, the run is
	// killed and its Result says [EndClosed].
	Run(ctx context.Context, req Request) (*Result, error)
}

// Denial is one refused act, in words that an agent can act on.
type Denial struct {
	// What was tried: "connect example.com:443".
	What string `json:"what"`
	// Rule that refused it: "network: none".
	Rule string `json:"rule"`
}

// EventKind is the kind of an [Event].
type EventKind string

// The kinds of event.
const (
	EventQueued  EventKind = "queued"
	EventCreated EventKind = "created"
	EventStarted EventKind = "started"
	EventDenied  EventKind = "denied"
	EventEnded   EventKind = "ended"
	EventClosed  EventKind = "closed"
)

// Event is one step in a sandbox's life, as the engine tells it to an
// observer. It holds no code, output or secret.
type Event struct {
	Time    time.Time `json:"time"`
	Kind    EventKind `json:"kind"`
	ID      ID        `json:"id"`
	Backend string    `json:"backend,omitempty"`
	Exit    *Exit     `json:"exit,omitempty"`
	Denial  *Denial   `json:"denial,omitempty"`
}
