// Package forkexec starts a child process that makes a list of system calls
// between fork and exec, and nothing else.
//
// Go's own os/exec runs none of its caller's code in that gap, yet a locked
// process must there join cgroups, change its user, restrict itself and
// install its filter, each of which must not touch the parent's threads. Here
// the gap is data: a [Script] is a list of raw system calls with their
// arguments, made before the fork. The child walks the list, and an error
// comes back with the name of the step that failed.
//
// [Script.Spawn] uses vfork, so the child shares the parent's memory until it
// execs and the cost does not grow with the parent's size. [Script.Hold] forks
// in earnest and keeps the child for ever, without exec: a place holder that
// keeps namespaces alive or is the init of one.
package forkexec

import (
	"fmt"
	"syscall"
)

// Error is a system call that failed in the child, or the fork itself.
type Error struct {
	// Step names what was tried, in the words of the Script's methods.
	Step  string
	Errno syscall.Errno
}

// Error returns "step: errno text".
func (e *Error) Error() string { return fmt.Sprintf("%s: %v", e.Step, e.Errno) }

// Unwrap returns the errno.
func (e *Error) Unwrap() error { return e.Errno }

// Child is a started process that is not reaped yet.
type Child struct {
	// PID is the process id in the caller's pid namespace.
	PID int
	// Inner is the process id in the child's own pid namespace, where
	// the script asked for it.
	Inner int
	// Opened is the descriptor that the child opened, where the script asked
	// for it. The caller closes it.
	Opened int
	// PIDFD is a descriptor of the process, or -1. The caller closes it.
	PIDFD int
}
