package measure

import (
	"context"
	"io"

	"tranca/internal/bench"
)

// Subject is one thing to measure.
type Subject struct {
	// About is what is known of it beforehand. One that is Unavailable is
	// listed, and not opened.
	About bench.Subject
	// Open makes ready what it needs. The error says why it can't be measured
	// here.
	Open func(context.Context) (Runner, error)
}

// Runner runs Python programs, each in a sandbox of its own. Safe for
// concurrent use.
type Runner interface {
	// Run runs a program and returns when nothing of it is left. out takes its
	// output as it comes. A program that doesn't end well is an error.
	Run(ctx context.Context, code string, out io.Writer) error
	// Stream is Run for a program with much output. What it costs to start it
	// doesn't matter.
	Stream(ctx context.Context, code string, out io.Writer) error
	// Describe adds what is known after a run.
	Describe(*bench.Subject)
	// Close frees what Open made.
	Close(context.Context) error
}

// Keeper is an optional ability of a Runner: sandboxes that stay.
type Keeper interface {
	Keep(context.Context) (Kept, error)
}

// Kept is a sandbox that stays until Close.
type Kept interface {
	Run(ctx context.Context, code string, out io.Writer) error
	Close(context.Context) error
}
