package tranca

import "time"

// SandboxInfo is what is known of a sandbox that lives for a session. It is
// the operator's view.
type SandboxInfo struct {
	ID        ID     `json:"id"`
	Profile   string `json:"profile"`
	Backend   string `json:"backend"`
	Isolation Level  `json:"isolation"`
	// Policy is the one that is in force, narrowed.
	Policy PolicyRef `json:"policy"`
	// Enforcement says by what each item is enforced.
	Enforcement []Enforcement `json:"enforcement"`
	Created     time.Time     `json:"created"`
	// Expires is when it is destroyed unless it is kept alive; the zero time is
	// never.
	Expires time.Time `json:"expires"`
	// IdleTimeoutMS destroys it when for so many milliseconds nothing was asked
	// of it and no call waited for it; 0 is never.
	IdleTimeoutMS int64 `json:"idle_timeout_ms"`
	// Metadata is the owner's, in his words.
	Metadata map[string]string `json:"metadata"`
	// Processes is how many programs run.
	Processes int `json:"processes"`
}

// ProcessID names one program of a sandbox: 'p' and a number. Unlike a pid it
// is never used again in that sandbox.
type ProcessID string

// ProcessInfo is what is known of a program that was started in a sandbox.
type ProcessInfo struct {
	ID  ProcessID `json:"id"`
	PID int       `json:"pid"`
	// Tag is the owner's name for it; several may have the same.
	Tag      string        `json:"tag,omitempty"`
	Args     []string      `json:"args"`
	Dir      string        `json:"dir,omitempty"`
	Started  time.Time     `json:"started"`
	Terminal *TerminalSize `json:"terminal,omitempty"`
	// Exit is nil while it runs.
	Exit *Exit `json:"exit,omitempty"`
	// Ended is when it ended; zero while it runs.
	Ended time.Time `json:"ended,omitzero"`
	// Stdout and Stderr are how many bytes it has written so far, and how many
	// of the first of them are no longer kept for replay.
	Stdout StreamInfo `json:"stdout"`
	Stderr StreamInfo `json:"stderr"`
}

// CreateRequest says what sandbox is made to live.
type CreateRequest struct {
	// Profile names one of the operator's policies; empty is the first one.
	Profile string
	// Narrow takes from it.
	Narrow Narrowing
	// TTL is how long it lives unless it is kept alive, and IdleTimeout how
	// long without a call; 0 is the operator's default for each. More than he
	// allows is [ErrInvalid].
	TTL, IdleTimeout time.Duration
	// Metadata is the owner's: at most 64 entries with keys of at most 128
	// bytes and values of at most 4096.
	Metadata map[string]string
}

// StartRequest is a program to start in a sandbox that lives.
type StartRequest struct {
	// Args holds the program and its arguments.
	Args []string
	// Env is added to the sandbox's environment; names that the policy sets are
	// [ErrRefused].
	Env map[string]string
	// Dir is where it starts; empty is the policy's folder.
	Dir string
	// Tag is the owner's name for it, of at most 256 bytes of printable UTF-8.
	// Several may have the same.
	Tag string
	// Terminal gives it a terminal of this size.
	Terminal *TerminalSize
	// Stdin keeps its standard input open for later writes; with a terminal
	// that is always so. Without it the input is empty.
	Stdin bool
	// Wall ends it after so long; 0 lets it live as long as its sandbox.
	Wall time.Duration
}

// StreamInfo is the state of one output stream.
type StreamInfo struct {
	// Written counts all bytes that the program wrote.
	Written int64 `json:"written"`
	// Dropped counts the bytes at its beginning that can't be read any more.
	Dropped int64 `json:"dropped"`
}
