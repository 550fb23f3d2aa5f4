package tranca

import (
	"context"
	"io"
	"strconv"
	"time"
)

// Command is a program to start.
type Command struct {
	// Args holds the program, absolute or looked up in the sandbox's PATH,
	// and its arguments. None may hold a NUL.
	Args []string
	// Env is added to the sandbox's environment.
	Env map[string]string
	// Dir is where it starts; empty means the policy's Workdir.
	Dir string
	// Stdin is read to its end and then closed; nil is an empty input. The
	// sandbox stops reading when the program ends; a Read that is under way
	// then is abandoned, not waited for.
	Stdin io.Reader
	// Stdout and Stderr take the output as it comes; nil discards it. Each is
	// written from one goroutine. A Write that blocks stops the program when
	// its pipe is full; a Write that fails discards the rest.
	Stdout, Stderr io.Writer
	// Terminal, where set, gives the program a terminal of this size as its
	// controlling one, standard input, output and error. All output then comes
	// by Stdout and Stderr stays empty; Stdin is what is typed, and its end is
	// no end of file but only that nothing more is typed. A backend without
	// terminals fails with [ErrUnsupported].
	Terminal *TerminalSize
	// EndGroup kills what the program has left in its process group, when it has
	// ended. What has left the group lives on.
	EndGroup bool
}

// TerminalSize is the size of a terminal in characters. Each is 1 to 65,535;
// what is not is [ErrInvalid].
type TerminalSize struct {
	Rows    uint16 `json:"rows"`
	Columns uint16 `json:"columns"`
}

// Resizer is an optional ability of a [Process] that was started with a
// terminal, found with [As].
type Resizer interface {
	// Resize changes the size of the program's terminal, which tells the
	// program by SIGWINCH. [ErrGone] if it has ended, [ErrUnsupported] if it
	// has no terminal.
	Resize(ctx context.Context, size TerminalSize) error
}

// Process is a started program. Safe for concurrent use.
type Process interface {
	// PID is the process id that the code itself sees.
	PID() int
	// Signal sends a signal to the process. [ErrGone] if it has ended.
	Signal(ctx context.Context, sig Signal) error
	// SignalGroup sends a signal to its process group.
	SignalGroup(ctx context.Context, sig Signal) error
	// Wait returns how the program ended, after all its output was written.
	// A program that fails is an Exit, never an error; an error means that it
	// is not known how it ended. It may be called often and returns the same.
	// If ctx ends first its error is returned and the program goes on.
	//
	// Descendants that hold the output open do not delay Wait for more than a
	// second after the program itself has ended.
	Wait(ctx context.Context) (Exit, error)
}

// Signal is a Linux signal number, 1 to 64.
type Signal int

// Signals that tranca itself uses.
const (
	SIGHUP  Signal = 1
	SIGINT  Signal = 2
	SIGKILL Signal = 9
	SIGTERM Signal = 15
	SIGXCPU Signal = 24
	SIGXFSZ Signal = 25
)

// Reason is why a run ended. It is found from outside the sandbox.
type Reason string

// The reasons. There are no others.
const (
	// EndExited: the program ended by itself, with whatever code.
	EndExited Reason = "exited"
	// EndSignaled: a signal ended it that no limit sent.
	EndSignaled Reason = "signaled"
	// EndWall, EndCPU, EndMemory, EndOutput: that limit ended it.
	EndWall   Reason = "limit:wall"
	EndCPU    Reason = "limit:cpu"
	EndMemory Reason = "limit:memory"
	EndOutput Reason = "limit:output"
	// EndClosed: its owner closed or cancelled it.
	EndClosed Reason = "closed"
	// EndError: the sandbox failed; nothing is known of the program.
	EndError Reason = "error"
)

// Limited reports whether a limit ended the run.
func (r Reason) Limited() bool {
	return r == EndWall || r == EndCPU || r == EndMemory || r == EndOutput
}

// Exit is how a run ended.
type Exit struct {
	// Code is the program's exit code, 0 to 255, where Reason is EndExited;
	// otherwise -1.
	Code int `json:"code"`
	// Signal is the signal that ended the program, or 0.
	Signal Signal `json:"signal"`
	Reason Reason `json:"reason"`
}

// Success reports whether the program ended by itself with code 0.
func (e Exit) Success() bool { return e.Reason == EndExited && e.Code == 0 }

// String returns the exit in a few words: "exit 3", "signal 11", "limit:wall".
func (e Exit) String() string {
	switch e.Reason {
	case EndExited:
		return "exit " + strconv.Itoa(e.Code)
	case EndSignaled:
		return "signal " + strconv.Itoa(int(e.Signal))
	}
	return string(e.Reason)
}

// LimitHit names a limit that refused the program something without ending
// it, as seen from outside.
type LimitHit string

// The limits that can be hit.
const (
	HitPIDs     LimitHit = "pids"
	HitDisk     LimitHit = "disk"
	HitInodes   LimitHit = "inodes"
	HitFiles    LimitHit = "files"
	HitFileSize LimitHit = "file_size"
	HitOutput   LimitHit = "output"
)

// Usage is what the programs in a sandbox used, counted from outside. A value
// that the backend cannot count is -1, never a guess.
type Usage struct {
	CPU           time.Duration
	MemoryPeak    int64
	ProcessesPeak int64
	// Hit lists limits that refused something, each once, in a fixed order.
	Hit []LimitHit
}
