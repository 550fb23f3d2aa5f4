// Package attempt is the language in which hostile programs are written, and
// one of its two interpreters: the one that runs as a small static program. The
// other is [Python], for sandboxes that take nothing but Python. Both do the
// same acts and tell of them in the same lines.
//
// docs/PROBES.md describes every act. A program is data, so that the same bytes
// run behind every boundary, and a reader sees all that it tries.
package attempt

import (
	"slices"
	"strings"
)

// Program is what an interpreter is given, as JSON: the steps, in which every
// placeholder has been replaced, and the numbers of the system calls that they
// name.
type Program struct {
	Steps []Step `json:"steps"`
	// Calls has the number of each system call that a step names, so that the
	// interpreters need no table.
	Calls map[string]int64 `json:"calls,omitempty"`
	// Mark is a word of this run. It stands in the command line of every process
	// of the program, by which the host finds those that live on.
	Mark string `json:"mark"`
	// Within is set by the interpreter for its own children alone.
	Within *Within `json:"within,omitempty"`
}

// Within says what a child is to the program that started it.
type Within struct {
	// Step is the number that its lines bear.
	Step int `json:"step"`
	// Single makes it do its one step and hand the line back to its parent,
	// which alone knows whether the child died of it.
	Single bool `json:"single,omitempty"`
	// Session makes it fork once more, into a session of its own; Close makes it
	// close its standard streams.
	Session bool `json:"session,omitempty"`
	Close   bool `json:"close,omitempty"`
	// New has the kinds of namespaces that the child is to begin in; with Session
	// it is for the one that the child starts.
	New string `json:"new,omitempty"`
	// Until is when it ends by itself, in milliseconds since 1970.
	Until int64 `json:"until,omitempty"`
}

// Step is one act and how its outcome counts. Which fields an act uses stands
// in docs/PROBES.md; [Check] holds a step against that.
type Step struct {
	Do string `json:"do"`
	As string `json:"as,omitempty"`

	Reach bool `json:"reach,omitempty"`
	Setup bool `json:"setup,omitempty"`
	Need  bool `json:"need,omitempty"`
	Child bool `json:"child,omitempty"`

	Path     string   `json:"path,omitempty"`
	To       string   `json:"to,omitempty"`
	Data     string   `json:"data,omitempty"`
	Append   bool     `json:"append,omitempty"`
	Flags    string   `json:"flags,omitempty"`
	Mode     string   `json:"mode,omitempty"`
	Size     Bytes    `json:"size,omitempty"`
	Count    int      `json:"count,omitempty"`
	For      Millis   `json:"for,omitempty"`
	Every    Millis   `json:"every,omitempty"`
	Threads  int      `json:"threads,omitempty"`
	UID      int      `json:"uid,omitempty"`
	GID      int      `json:"gid,omitempty"`
	Args     []string `json:"args,omitempty"`
	Steps    []Step   `json:"steps,omitempty"`
	NoWait   bool     `json:"no_wait,omitempty"`
	Session  bool     `json:"session,omitempty"`
	Close    bool     `json:"close,omitempty"`
	NoTouch  bool     `json:"no_touch,omitempty"`
	New      string   `json:"new,omitempty"`
	PID      string   `json:"pid,omitempty"`
	Signal   int      `json:"signal,omitempty"`
	Code     int      `json:"code,omitempty"`
	Stream   string   `json:"stream,omitempty"`
	Field    string   `json:"field,omitempty"`
	Equals   *string  `json:"equals,omitempty"`
	Differs  *string  `json:"differs,omitempty"`
	Contains *string  `json:"contains,omitempty"`
	Network  string   `json:"network,omitempty"`
	Address  string   `json:"address,omitempty"`
	Name     string   `json:"name,omitempty"`
	Family   int      `json:"family,omitempty"`
	Type     int      `json:"type,omitempty"`
	Protocol int      `json:"protocol,omitempty"`
	Call     string   `json:"call,omitempty"`
	Number   int      `json:"number,omitempty"`
	Key      string   `json:"key,omitempty"`
}

// Bytes is a size. In a probe it may have a unit; in a program it is a number.
type Bytes int64

// Millis is a time in milliseconds. In a probe it may have a unit; in a program
// it is a number.
type Millis int64

// Line is one line of what an interpreter tells on standard output: JSON
// behind [Prefix], at the beginning of a line and written at once. Whatever
// else the program prints is not a line.
type Line struct {
	// Step counts from 0, and -1 is the last line, without which the program
	// did not come to its end. Steps of children and of repeat are told with
	// the number of the step that they belong to.
	Step int    `json:"step"`
	As   string `json:"as,omitempty"`
	OK   bool   `json:"ok"`
	// Errno is the name of the error, "EPERM", or words where it has none.
	Errno string `json:"errno,omitempty"`
	// Value is what the act brought, at most [MaxValue] bytes of it. Bytes that
	// are no printable ASCII stand as \xNN.
	Value string `json:"value,omitempty"`
}

// Words of lines whose step was not done to its end.
const (
	Died    = "it died"
	NotDone = "not done: the one before was the last"
)

// outcomes are the words for what an act found, where no number says it. Words of
// other kinds tell why it could not be done.
var outcomes = []string{
	Died, NotDone, "is not so", "no bytes came", "no such field", "other bytes are there", "other bytes came",
	"the answer is none", "the file is shorter", "no nameserver in /etc/resolv.conf",
}

// Fault reports whether a step could not be tried, which is something else than
// an attempt that failed: the interpreter lacks something, such as a module of
// Python, or was told what it can't read.
func (l Line) Fault() bool {
	number := strings.HasPrefix(l.Errno, "errno ") || strings.HasPrefix(l.Errno, "E") && strings.ToUpper(l.Errno) == l.Errno
	child := strings.HasPrefix(l.Errno, "SIG") || strings.HasPrefix(l.Errno, "exit ")
	return !l.OK && !number && !child && !slices.Contains(outcomes, l.Errno)
}

const (
	// Prefix begins each line.
	Prefix = "\x1eprobe "
	// MaxValue bounds Value.
	MaxValue = 256 << 10
)
