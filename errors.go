package tranca

import (
	"errors"
	"fmt"
	"strings"
)

// The classes of error. Every error that this module's public packages return
// wraps one of them or an error of the context it was given; test with
// [errors.Is]. A program that fails is never an error: it is an [Exit].
var (
	// ErrInvalid: the request or policy is malformed. Repeating it is useless.
	ErrInvalid = errors.New("invalid")
	// ErrRefused: policy or host do not allow it. See [RefusalError].
	ErrRefused = errors.New("refused")
	// ErrUnavailable: the backend cannot run on this host. See [RefusalError].
	ErrUnavailable = errors.New("unavailable")
	// ErrNotFound: no such file, interpreter, process or sandbox.
	ErrNotFound = errors.New("not found")
	// ErrExists: the file is already there.
	ErrExists = errors.New("already exists")
	// ErrGone: the sandbox or process existed and does no longer.
	ErrGone = errors.New("gone")
	// ErrBusy: the queue is full, or the sandbox is running something else.
	// Repeating it later may succeed.
	ErrBusy = errors.New("busy")
	// ErrClosed: the object was closed by its owner.
	ErrClosed = errors.New("closed")
	// ErrUnsupported: this backend does not have the ability.
	ErrUnsupported = errors.New("unsupported")
	// ErrProtocol: the other side of the guest stream broke the protocol. The
	// guest is not trusted, so this ends its sandbox.
	ErrProtocol = errors.New("guest broke the protocol")
	// ErrNoSpace: a bounded space inside the sandbox is full.
	ErrNoSpace = errors.New("no space left")
)

// Problem is one reason why something is refused.
type Problem struct {
	// Item is the policy item that cannot be had.
	Item Item `json:"item"`
	// Asked is what the policy or request asks, in words: "memory 256 MiB".
	Asked string `json:"asked"`
	// Missing is the mechanism that the host or the policy lacks.
	Missing string `json:"missing"`
	// Mend is one command or one change that mends it; empty if there is none.
	Mend string `json:"mend,omitempty"`
	// Waivable says that the operator may waive the item instead.
	Waivable bool `json:"waivable,omitempty"`
}

// Alternative is a weaker choice that was found usable on this host.
type Alternative struct {
	// Choice is what to write: "--backend subprocess".
	Choice string `json:"choice"`
	// GivesUp says what the choice no longer protects, in words.
	GivesUp string `json:"gives_up"`
}

// RefusalError says what was refused, why, and what mends it. It wraps
// [ErrRefused], or [ErrUnavailable] where Unavailable is set (and then both).
// It is safe to show to the operator; it is never shown to an agent.
type RefusalError struct {
	// Backend is the backend that was asked; empty if none was chosen.
	Backend string `json:"backend,omitempty"`
	// Problems holds at least one problem.
	Problems []Problem `json:"problems"`
	// Weaker holds choices that a probe found usable; it may be empty.
	Weaker []Alternative `json:"weaker,omitempty"`
	// Unavailable says that the backend cannot run here at all.
	Unavailable bool `json:"unavailable,omitempty"`
}

// Error returns one line that names the items and what is missing.
func (e *RefusalError) Error() string {
	var b strings.Builder
	b.WriteString("refused")
	if e.Backend != "" {
		fmt.Fprintf(&b, " by backend %s", e.Backend)
	}
	for i, p := range e.Problems {
		sep := "; "
		if i == 0 {
			sep = ": "
		}
		fmt.Fprintf(&b, "%s%s: %s", sep, p.Item, p.Missing)
	}
	return b.String()
}

// Is reports whether target is a class that this refusal belongs to.
func (e *RefusalError) Is(target error) bool {
	return target == ErrRefused || (e.Unavailable && target == ErrUnavailable)
}
