package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"tranca"
)

// Short returns the report with what a comparison needs alone: without the
// evidence, the reasons and the programs. It is what is kept in a repository.
func (r *Report) Short() *Report {
	s := *r
	s.Seconds = 0
	s.Columns = slices.Clone(r.Columns)
	for i := range s.Columns {
		s.Columns[i].Missing = short(s.Columns[i].Missing, longestQuote)
	}
	s.Probes = slices.Clone(r.Probes)
	for i := range s.Probes {
		s.Probes[i].Program, s.Probes[i].Why = "", ""
	}
	s.Cells = slices.Clone(r.Cells)
	for i := range s.Cells {
		c := &s.Cells[i]
		c.Evidence, c.Seconds = nil, 0
		if c.Verdict != NotApplicable && c.Verdict != Unknown {
			c.Why = ""
		}
	}
	slices.SortFunc(s.Cells, func(a, b Cell) int {
		return strings.Compare(a.Column+" "+a.Probe, b.Column+" "+b.Probe)
	})
	return &s
}

// WritePromises writes, as Markdown, for each item that a policy has the probes
// that try to break it, and how many of them each column held.
func (r *Report) WritePromises(w io.Writer) error {
	var b strings.Builder
	b.WriteString("| promise | probes |")
	for _, c := range r.Columns {
		fmt.Fprintf(&b, " %s |", c.Name)
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", len(r.Columns)) + "\n")
	m := r.Matrix()
	for _, item := range tranca.Items() {
		var ids []string
		for _, p := range r.Probes {
			if p.Guarantee == item {
				ids = append(ids, p.ID)
			}
		}
		fmt.Fprintf(&b, "| `%s` | %s |", item, strings.Join(ids, ", "))
		for i := range r.Columns {
			b.WriteString(" " + m.stands(&r.Columns[i], item, ids) + " |")
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// stands says in a few words how the probes of an item came out in a column.
func (m Matrix) stands(c *Column, item tranca.Item, ids []string) string {
	if c.Missing != "" {
		return "not run"
	}
	count := map[Verdict]int{}
	for _, id := range ids {
		if cell := m.Cell(id, c.Name); cell != nil {
			count[cell.Verdict]++
		}
	}
	var words []string
	if n := count[Contained] + count[Limited]; n > 0 {
		words = append(words, fmt.Sprintf("%d held", n))
	}
	for _, v := range []Verdict{Escaped, Failed, Unknown, NotApplicable} {
		if n := count[v]; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, v))
		}
	}
	text := strings.Join(words, ", ")
	if c.Kind == ColumnBackend && !c.Promises(item) {
		text += " (not promised)"
	}
	return text
}
