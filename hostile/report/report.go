// Package report is what a run of the hostile suite found, as data: the matrix
// of probes and columns with the evidence for each cell, its JSON form, its
// page, and what changed between two runs.
package report

import (
	"time"

	"tranca"
)

// Schema names the JSON form. A report of another one is not read.
const Schema = "tranca.hostile/1"

// Report is one run of the suite.
type Report struct {
	Schema string    `json:"schema"`
	Began  time.Time `json:"began"`
	// Seconds is how long it took.
	Seconds float64 `json:"seconds"`
	// Version is that of tranca.
	Version string `json:"version"`
	Host    Host   `json:"host"`
	// Partial says that the run was interrupted; Stopped says by what.
	Partial bool   `json:"partial,omitempty"`
	Stopped string `json:"stopped,omitempty"`
	// Columns in the order in which they are shown, weakest first.
	Columns []Column `json:"columns"`
	// Probes in the order of their ids.
	Probes []Probe `json:"probes"`
	// Cells, each for a probe and a column, in no order. One that is not there
	// was not run.
	Cells []Cell `json:"cells"`
}

// Host is what verdicts mean nothing without.
type Host struct {
	System string `json:"system"`
	Kernel string `json:"kernel"`
	Arch   string `json:"arch"`
	UserID int    `json:"user_id"`
	CPUs   int    `json:"cpus"`
}

// ColumnKind is what a column is.
type ColumnKind string

// The kinds of column.
const (
	// ColumnControl is the bare program in the disposable place: the control
	// behind every other column.
	ColumnControl ColumnKind = "control"
	// ColumnReference shows what a boundary is for.
	ColumnReference ColumnKind = "reference"
	// ColumnBackend is one of tranca's own.
	ColumnBackend ColumnKind = "backend"
	// ColumnAgainst is somebody else's sandbox, by a command.
	ColumnAgainst ColumnKind = "against"
)

// Column is one boundary.
type Column struct {
	// Name is what it is called in flags and tables: "process", "container
	// (runsc)".
	Name string     `json:"name"`
	Kind ColumnKind `json:"kind"`
	// Level is that of a backend.
	Level tranca.Level `json:"level,omitempty"`
	// Command and Tool are the command line and version of somebody else's.
	Command string `json:"command,omitempty"`
	Tool    string `json:"tool,omitempty"`
	// Guarantees are what it promises on this host; others have none. Waived are
	// the items that this run waived, which it therefore does not promise.
	Guarantees []tranca.Guarantee `json:"guarantees,omitempty"`
	Waived     []tranca.Item      `json:"waived,omitempty"`
	// Missing says why it was not run at all.
	Missing string `json:"missing,omitempty"`
}

// Probe is what the report says of a probe.
type Probe struct {
	ID        string      `json:"id"`
	Group     string      `json:"group"`
	Try       string      `json:"try"`
	Why       string      `json:"why"`
	Guarantee tranca.Item `json:"guarantee"`
	Severity  string      `json:"severity"`
	Rows      []string    `json:"rows"`
	// Program is the probe's file as it is written.
	Program string `json:"program"`
}

// Verdict is how one cell stands.
type Verdict string

// The verdicts, worst first.
const (
	// Escaped: the program got what the guarantee forbids.
	Escaped Verdict = "escaped"
	// Failed: it did not, but the result lied, it hung, or something was left.
	Failed Verdict = "failed"
	// Unknown: nothing is shown, for the reason in Why.
	Unknown Verdict = "unknown"
	// Limited: a limit stopped it, and the result says so.
	Limited Verdict = "limited"
	// Contained: it was denied, with its control escaped and its twin allowed.
	Contained Verdict = "contained"
	// NotApplicable: there is nothing to hold here, for the reason in Why.
	NotApplicable Verdict = "n/a"
)

// Verdicts lists them, worst first.
func Verdicts() []Verdict {
	return []Verdict{Escaped, Failed, Unknown, Limited, Contained, NotApplicable}
}

// Cell is one probe against one boundary.
type Cell struct {
	Probe   string  `json:"probe"`
	Column  string  `json:"column"`
	Verdict Verdict `json:"verdict"`
	// Why says how the verdict came about, in a sentence.
	Why string `json:"why"`
	// Promised says that the column promises the probe's guarantee here.
	Promised bool `json:"promised"`
	// Expected is the verdict that was to be expected, or empty where any was;
	// Because is the reason that the probe gives for it.
	Expected Verdict `json:"expected,omitempty"`
	Because  string  `json:"because,omitempty"`
	// Control says which run stands behind it: the column and its verdict.
	Control string `json:"control,omitempty"`
	// Unproven are the steps that did not get through in the control either, by
	// their names: that they were denied here shows nothing, and the verdict
	// stands on the others.
	Unproven []string `json:"unproven,omitempty"`
	// Evidence is what was seen, a line each.
	Evidence []string `json:"evidence,omitempty"`
	Seconds  float64  `json:"seconds"`
}

// Bad reports whether the cell makes the run fail: something escaped or failed,
// or is unknown, where it is promised, or it is not what is expected.
func (c *Cell) Bad() bool {
	if c.Promised && (c.Verdict == Escaped || c.Verdict == Failed || c.Verdict == Unknown) {
		return true
	}
	return c.Expected != "" && c.Expected != c.Verdict && c.Verdict != NotApplicable
}
