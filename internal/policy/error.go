package policy

import (
	"fmt"
	"strconv"
	"strings"

	"tranca"
	"tranca/internal/spelling"
)

// Error is one thing that is wrong with a policy, a flag or a unit. It wraps
// [tranca.ErrInvalid].
type Error struct {
	// File is the name that was given to [Parse]; empty where the value did
	// not come from a file.
	File string
	// Line and Column count from 1; 0 where the place is not known. Columns
	// count characters, not bytes.
	Line, Column int
	// Path is the field: "limits.memory", "mounts[1].target". Empty where the
	// error concerns no one field.
	Path string
	// Message says what is wrong, and what is right.
	Message string
	// Suggestion is the nearest right word or value, or empty.
	Suggestion string
}

// Error returns one line, "file:line:column: path: message; did you mean
// "x"?", without the parts that are not known.
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File + ":")
		if e.Line > 0 {
			fmt.Fprintf(&b, "%d:%d:", e.Line, e.Column)
		}
		b.WriteByte(' ')
	}
	if e.Path != "" {
		b.WriteString(e.Path + ": ")
	}
	b.WriteString(e.Message)
	if e.Suggestion != "" {
		fmt.Fprintf(&b, "; did you mean %q?", e.Suggestion)
	}
	return b.String()
}

// Unwrap returns [tranca.ErrInvalid].
func (e *Error) Unwrap() error { return tranca.ErrInvalid }

// at returns the error with the field that it concerns.
func (e *Error) at(path string) *Error {
	c := *e
	c.Path = path
	return &c
}

// Errors is all that is wrong with a policy, in the order of the file. It
// holds at least one and at most [MaxErrors] errors.
type Errors []*Error

// MaxErrors bounds how many errors are reported at once, since a hostile file
// can hold as many as it has bytes.
const MaxErrors = 20

// Error returns the errors, one a line.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the single errors.
func (e Errors) Unwrap() []error {
	all := make([]error, len(e))
	for i, one := range e {
		all[i] = one
	}
	return all
}

func errorf(path, format string, args ...any) *Error {
	return &Error{Path: path, Message: fmt.Sprintf(format, args...)}
}

// quote makes hostile text fit for one line of a message.
func quote(s string) string {
	const longest = 60
	r := []rune(s)
	if len(r) > longest {
		return strconv.Quote(string(r[:longest])) + "..."
	}
	return strconv.Quote(s)
}

// nearest returns the word that s is most likely a misspelling of, or "".
func nearest(s string, words []string) string {
	return spelling.Nearest(s, words, min(2, len(s)/3))
}
