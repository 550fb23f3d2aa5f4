package report

import (
	"fmt"
	"strings"
)

// Narrow returns a report of those columns and probes that are kept, and names
// what was left out: "" where that is nothing. The report itself stays.
func (r *Report) Narrow(column func(*Column) bool, probe func(*Probe) bool) (_ *Report, left string) {
	n := *r
	n.Columns, n.Probes, n.Cells = nil, nil, nil
	var out []string
	columns := map[string]bool{}
	for i := range r.Columns {
		if c := &r.Columns[i]; column(c) {
			columns[c.Name] = true
			n.Columns = append(n.Columns, *c)
		} else if c.Missing == "" {
			out = append(out, c.Name)
		}
	}
	for i := range r.Probes {
		if p := &r.Probes[i]; probe(p) {
			n.Probes = append(n.Probes, *p)
		}
	}
	kept := n.ids()
	for _, c := range r.Cells {
		if columns[c.Column] && kept[c.Probe] {
			n.Cells = append(n.Cells, c)
		}
	}
	if dropped := len(r.Probes) - len(n.Probes); dropped > 0 {
		out = append(out, fmt.Sprintf("%s of %d", count(dropped, "probe"), len(r.Probes)))
	}
	return &n, strings.Join(out, ", ")
}
