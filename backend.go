package tranca

import (
	"context"
	"crypto/rand"
	"io"
	"os"
	"strings"
)

// ID names a sandbox: 'i' and 20 characters of [a-z0-9]. It is not a secret
// and grants nothing.
type ID string

// NewID returns an ID that nobody else has: 100 random bits.
func NewID() ID { return ID("i" + strings.ToLower(rand.Text())[:20]) }

// Backend makes sandboxes of one kind. Safe for concurrent use.
//
// An implementation from outside this module works like a built-in one when it
// passes the suite in tranca/backendtest.
type Backend interface {
	// Name is the word in policies and flags: lower case, stable.
	Name() string

	// Probe reports what the backend enforces on this host, found by trying.
	// An error that wraps [ErrUnavailable], best a [*RefusalError], says why
	// it can't run here at all. Probe leaves nothing behind, may be called
	// again at any time, and takes at most a few seconds.
	Probe(ctx context.Context) (Report, error)

	// Create makes a sandbox and returns when it can start processes. It
	// enforces every item of the policy that it does not waive, or fails with
	// a [*RefusalError]; it never falls back. On error nothing is left behind.
	// ctx bounds the creation only, not the sandbox's life.
	Create(ctx context.Context, spec Spec) (Sandbox, error)

	// Attach finds a sandbox that an earlier process of the same operator
	// made. A sandbox that died with its maker is [ErrGone].
	Attach(ctx context.Context, id ID) (Sandbox, error)

	// Close frees what the backend holds itself: pools, machines booted
	// ahead. It does not close sandboxes that it has given out. Idempotent.
	Close(ctx context.Context) error
}

// Reporter is an optional ability of a backend, found with [As]: to report what
// it tried when it was made, without the trial sandbox that Probe makes. That
// is enough where a sandbox is about to be made, since Create refuses whatever
// does not work.
type Reporter interface {
	Report() Report
}

// RuntimeProber is an optional ability of a backend, found with [As]: to make
// sandboxes by one of several runtimes, each with a level and guarantees of its
// own.
type RuntimeProber interface {
	// ProbeRuntime is [Backend.Probe] for sandboxes whose policy names this
	// runtime, found by a trial run with it. The report says the runtime's
	// name as [FactRuntime], as that of Probe does for the runtime that is
	// used where no policy names one. A runtime that isn't there is an error
	// that wraps [ErrUnavailable].
	ProbeRuntime(ctx context.Context, name string) (Report, error)
}

// Spec is what one sandbox is made from.
type Spec struct {
	ID ID
	// Policy is complete and was checked against the backend's Report.
	Policy Policy
	// Image is the root tree, or nil where the policy's image is [ImageHost].
	Image *Image
}

// Sandbox is one place where code runs. Safe for concurrent use.
type Sandbox interface {
	ID() ID

	// Enforcement says by which mechanism each item of the policy is
	// enforced, in the order of [Items]. It does not change.
	Enforcement() []Enforcement

	// Start starts a program. ctx bounds the start, not the program. Errors
	// wrap [ErrNotFound] (no such program), [ErrInvalid], [ErrGone] (the
	// sandbox has ended), or [ErrBusy] where as many run as the backend lets.
	//
	// Several programs may run at once. The policy's limits hold over all of
	// them together, and one that ends programs ends all. A program started
	// in an idle sandbox, where none that was started still runs, has fresh
	// counters.
	Start(ctx context.Context, cmd Command) (Process, error)

	// Files serves the sandbox's files as its user sees them.
	Files() Files

	// Usage is what the programs used since the sandbox was last idle, as
	// counted from outside. It works until Close.
	Usage(ctx context.Context) (Usage, error)

	// Kill ends every program in the sandbox, however many there are and
	// whatever they do, and returns when none is alive. The sandbox can be
	// used again. Idempotent.
	Kill(ctx context.Context) error

	// Close destroys the sandbox and returns when no process, mount, cgroup,
	// file or descriptor of it is left. Idempotent. If ctx ends first, the
	// destruction goes on and an error says what may remain.
	Close(ctx context.Context) error
}

// ChangeReader is an optional ability of a sandbox, found with [As]: to show
// what was written to its mounts of mode cow.
type ChangeReader interface {
	// OpenChanges opens the folder that holds what was written to the mount at
	// this target: the upper folder of an overlay whose marks are attributes of
	// the user ("user.overlay."). Everything in it is hostile, and while a
	// program runs it changes. It can be opened until Close, and read until the
	// caller closes it. Errors wrap [ErrNotFound] (no such mount), [ErrGone] or
	// [ErrUnsupported].
	OpenChanges(target string) (*os.File, error)
}

// ImageDigester is an optional ability of a sandbox, found with [As]: to say
// which image it runs where its [Spec] names none.
type ImageDigester interface {
	// ImageDigest returns a digest, or "" where there is no image.
	ImageDigest() string
}

// PortDialer is an optional ability of a sandbox, found with [As]: to reach
// what listens inside, through the stream to its guest agent. It makes no route
// into the sandbox, and no program inside can begin a connection by it.
type PortDialer interface {
	// Dial connects to a TCP port, 1 to 65,535, of the sandbox's loopback.
	// Errors wrap [ErrNotFound] (nothing listens), [ErrInvalid], [ErrBusy] (too
	// many connections) or [ErrGone]. ctx bounds the dial only.
	Dial(ctx context.Context, port int) (PortConn, error)
}

// PortConn is one connection to a port. One goroutine may read while another
// writes. Close ends both directions at once.
type PortConn interface {
	io.ReadWriteCloser
	// CloseWrite tells the other end that nothing more comes.
	CloseWrite() error
}

// As finds an optional ability of a backend or sandbox, also behind wrappers
// that have a method Unwrap() T with the wrapped value. It reports false where
// nobody in the chain has it.
func As[A, T any](v T) (A, bool) {
	for {
		if a, ok := any(v).(A); ok {
			return a, true
		}
		u, ok := any(v).(interface{ Unwrap() T })
		if !ok {
			var none A
			return none, false
		}
		v = u.Unwrap()
	}
}
