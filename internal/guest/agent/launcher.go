package agent

import "os"

// Launcher starts one confined program. It is safe for concurrent use.
type Launcher interface {
	// Launch starts the program and returns once it is known to run, or an
	// error that wraps the errno with which that failed. It keeps none of the
	// program's files; the caller closes them.
	Launch(Program) (Child, error)
}

// Program is what to start. Nothing of it was checked but that it holds no NUL.
type Program struct {
	// Path is absolute or relative to Dir.
	Path string
	// Args holds the program's own name first.
	Args, Env []string
	// Dir is absolute.
	Dir string
	// The standard files. They block; none is nil.
	Stdin, Stdout, Stderr *os.File
	// Terminal says that they are a terminal, which becomes the program's
	// controlling one.
	Terminal bool
	// Polled says that so many programs run that waiting for this one should
	// cost no thread.
	Polled bool
	// EndGroup kills what is left of its process group when it has ended, before
	// it is reaped: until then no other group can have its name.
	EndGroup bool
}

// Child is a program that was started.
type Child interface {
	// PID is the process id as the code sees it.
	PID() int
	// Wait returns how the program ended. It is called once.
	Wait() (Status, error)
	// Signal sends a signal to the program or to its process group. It returns
	// ESRCH after the end, never reaching another process that got the id.
	// Safe for concurrent use, also beside Wait.
	Signal(sig int, group bool) error
}

// Status is how a program ended.
type Status struct {
	// Code is the exit code, or -1 if a signal ended the program.
	Code int
	// Signal is that signal, or 0.
	Signal int
}

// Killer is the ability of a launcher to end every program at once, those
// included that have left their process groups. Hosts that can do it from
// outside never ask.
type Killer interface {
	// KillAll returns when all have been killed; they may not have been
	// reaped.
	KillAll() error
}
