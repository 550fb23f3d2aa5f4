package cli

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"tranca"
)

// The exit statuses that tranca itself chooses. A program that ended by
// itself keeps its own, so a script that must tell them apart uses --json.
const (
	statusOK       = 0
	statusLimit    = 124
	statusFailed   = 125
	statusRefused  = 126
	statusNotFound = 127
	statusSignal   = 128 // and the signal's number
)

// statuses is what each command's help says about exit statuses.
var statuses = []struct{ status, meaning string }{
	{"124", "a limit ended the run: time, CPU time, memory or output"},
	{"125", "tranca itself failed, or the request is malformed"},
	{"126", "refused: the policy does not allow it, or this host can't enforce it"},
	{"127", "not found: the file, the program or the interpreter"},
	{"128+n", "signal n ended it: 130 is Ctrl-C, 137 a kill, 139 a crash"},
}

// errorStatus maps an error to an exit status.
func errorStatus(err error) int {
	var own *exitError
	var caught *signalError
	switch {
	case err == nil:
		return statusOK
	case errors.As(err, &own):
		return own.status
	case errors.As(err, &caught):
		return statusSignal + int(caught.signal)
	case brokenPipe(err):
		return statusSignal + int(syscall.SIGPIPE)
	case errors.Is(err, tranca.ErrRefused), errors.Is(err, tranca.ErrUnavailable):
		return statusRefused
	case errors.Is(err, tranca.ErrNotFound):
		return statusNotFound
	}
	return statusFailed
}

// exitStatus maps how a run ended to an exit status.
func exitStatus(e tranca.Exit) int {
	switch {
	case e.Reason == tranca.EndExited:
		return e.Code
	case e.Reason == tranca.EndSignaled:
		return statusSignal + int(e.Signal)
	case e.Reason.Limited():
		return statusLimit
	}
	return statusFailed
}

// statusHelp is the section on exit statuses of a command's help. Own rows
// come first.
func statusHelp(own ...string) string {
	var b strings.Builder
	b.WriteString("Exit status:")
	for _, line := range own {
		b.WriteString("\n  " + line)
	}
	for _, s := range statuses {
		fmt.Fprintf(&b, "\n  %-6s %s", s.status, s.meaning)
	}
	return b.String()
}

// exitError ends the command with a status. Everything was said already, so
// it prints nothing.
type exitError struct{ status int }

func (e *exitError) Error() string { return fmt.Sprintf("exit status %d", e.status) }

// exit returns an error that ends the command with status, or nil for 0.
func exit(status int) error {
	if status == statusOK {
		return nil
	}
	return &exitError{status}
}

// signalError is the reason of a context that a signal cancelled.
type signalError struct{ signal syscall.Signal }

func (e *signalError) Error() string { return "stopped by " + signalName(tranca.Signal(e.signal)) }

// usageError is a command line that makes no sense. It wraps
// [tranca.ErrInvalid].
type usageError struct {
	command string
	message string
}

func (e *usageError) Error() string {
	return e.message + "\nsee: " + e.command + " --help"
}

func (e *usageError) Unwrap() error { return tranca.ErrInvalid }
