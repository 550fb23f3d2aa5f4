package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"tranca"
)

// What Read takes at most. A full run is far below: 241 probes against seven
// columns made 1.1 MB.
const (
	maxBytes   = 64 << 20
	maxColumns = 100
	maxProbes  = 10_000
)

// Read reads a report that WriteJSON wrote. It takes at most 64 MiB, and checks
// that each cell is that of a probe and a column of the report, once. Fields that
// it does not know are left out. Errors wrap [tranca.ErrInvalid], but for those of
// r itself.
func Read(r io.Reader) (*Report, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read the report: %w", err)
	}
	if len(text) > maxBytes {
		return nil, invalid("it is larger than %d MiB", maxBytes>>20)
	}
	var head struct {
		Schema *string `json:"schema"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, invalid("it is no JSON of a report: %s", where(text, err))
	}
	if err := checkSchema(head.Schema); err != nil {
		return nil, err
	}
	var rep Report
	if err := json.Unmarshal(text, &rep); err != nil {
		return nil, invalid("%s", where(text, err))
	}
	if err := rep.check(); err != nil {
		return nil, err
	}
	return &rep, nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: not a report of `tranca hostile`: %s", tranca.ErrInvalid, fmt.Sprintf(format, args...))
}

func checkSchema(schema *string) error {
	switch {
	case schema == nil:
		return invalid("it names no schema; `tranca hostile --json` writes one that does")
	case *schema != Schema:
		return fmt.Errorf("%w: the report has the schema %s, and this tranca reads %s: make it again with `tranca hostile --json`, or use the tranca that wrote it",
			tranca.ErrInvalid, quote(*schema), Schema)
	}
	return nil
}

// where adds the line to an error of the decoder.
func where(text []byte, err error) string {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	at := int64(-1)
	switch {
	case errors.As(err, &syntax):
		at = syntax.Offset
	case errors.As(err, &kind):
		at = kind.Offset
	}
	if at < 0 || at > int64(len(text)) {
		return short(err.Error(), longestQuote)
	}
	line := 1
	for _, b := range text[:at] {
		if b == '\n' {
			line++
		}
	}
	return fmt.Sprintf("line %d: %s", line, short(err.Error(), longestQuote))
}

// quote is a name that somebody else wrote, as part of an error.
func quote(name string) string { return fmt.Sprintf("%q", short(name, longestQuote)) }

// longestQuote is how much is quoted of one text of a file.
const longestQuote = 200

// short is as much of a text as there is room for.
func short(text string, most int) string {
	if begin, left := upTo(text, most); left > 0 {
		return begin + "..."
	}
	return text
}

// check refuses what no run writes.
func (r *Report) check() error {
	if len(r.Columns) > maxColumns || len(r.Probes) > maxProbes {
		return invalid("it has %d columns and %d probes; at most %d and %d are read", len(r.Columns), len(r.Probes), maxColumns, maxProbes)
	}
	if !plausible(r.Seconds) {
		return invalid("it took %g seconds", r.Seconds)
	}
	columns, probes := map[string]bool{}, map[string]bool{}
	for _, c := range r.Columns {
		if c.Name == "" || columns[c.Name] {
			return invalid("the column %s is there twice, or has no name", quote(c.Name))
		}
		if !slices.Contains([]ColumnKind{ColumnControl, ColumnReference, ColumnBackend, ColumnAgainst}, c.Kind) {
			return invalid("the column %s is of the kind %s, which there is not", quote(c.Name), quote(string(c.Kind)))
		}
		columns[c.Name] = true
	}
	for _, p := range r.Probes {
		if p.ID == "" || probes[p.ID] {
			return invalid("the probe %s is there twice, or has no id", quote(p.ID))
		}
		probes[p.ID] = true
	}
	return r.checkCells(columns, probes)
}

func (r *Report) checkCells(columns, probes map[string]bool) error {
	seen := map[place]bool{}
	for i := range r.Cells {
		c := &r.Cells[i]
		at := place{c.Probe, c.Column}
		name := quote(c.Probe) + " in " + quote(c.Column)
		switch {
		case !columns[c.Column] || !probes[c.Probe]:
			return invalid("the cell of %s belongs to a probe or column that the report has not", name)
		case seen[at]:
			return invalid("the cell of %s is there twice", name)
		case !slices.Contains(Verdicts(), c.Verdict):
			return invalid("the cell of %s has the verdict %s, which there is not", name, quote(string(c.Verdict)))
		case c.Expected != "" && !slices.Contains(Verdicts(), c.Expected):
			return invalid("the cell of %s expects the verdict %s, which there is not", name, quote(string(c.Expected)))
		case !plausible(c.Seconds):
			return invalid("the cell of %s took %g seconds", name, c.Seconds)
		}
		seen[at] = true
	}
	return nil
}

func plausible(seconds float64) bool {
	return seconds >= 0 && !math.IsInf(seconds, 0) && !math.IsNaN(seconds)
}
