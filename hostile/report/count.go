package report

import (
	"fmt"
	"strings"
)

// place is where a cell stands.
type place struct{ probe, column string }

// Matrix finds cells by probe and column. It is valid as long as the report's
// cells are not changed.
type Matrix struct {
	report *Report
	cells  map[place]*Cell
}

// Matrix returns a view of the report's cells.
func (r *Report) Matrix() Matrix {
	m := Matrix{r, make(map[place]*Cell, len(r.Cells))}
	for i := range r.Cells {
		c := &r.Cells[i]
		m.cells[place{c.Probe, c.Column}] = c
	}
	return m
}

// Cell returns the cell of a probe and a column, or nil where it was not run.
func (m Matrix) Cell(probe, column string) *Cell { return m.cells[place{probe, column}] }

// Tally is how the cells of one column stand.
type Tally struct {
	// Verdicts counts those of each verdict.
	Verdicts map[Verdict]int
	// Bad counts the cells that make the run fail.
	Bad int
	// NotRun counts the probes without a cell.
	NotRun int
}

// Tallies counts the cells of each column, by its name.
func (r *Report) Tallies() map[string]Tally {
	all := make(map[string]Tally, len(r.Columns))
	for _, c := range r.Columns {
		all[c.Name] = Tally{Verdicts: map[Verdict]int{}, NotRun: len(r.Probes)}
	}
	for i := range r.Cells {
		c := &r.Cells[i]
		t, ok := all[c.Column]
		if !ok {
			continue
		}
		t.Verdicts[c.Verdict]++
		t.NotRun--
		if c.Bad() {
			t.Bad++
		}
		all[c.Column] = t
	}
	return all
}

// BadCells returns the cells that make the run fail, by column and then probe in
// the report's order.
func (r *Report) BadCells() []*Cell {
	m := r.Matrix()
	var bad []*Cell
	for _, column := range r.Columns {
		for _, probe := range r.Probes {
			if c := m.Cell(probe.ID, column.Name); c != nil && c.Bad() {
				bad = append(bad, c)
			}
		}
	}
	return bad
}

// Ran returns the columns that were run.
func (r *Report) Ran() []*Column {
	var ran []*Column
	for i := range r.Columns {
		if c := &r.Columns[i]; c.Missing == "" {
			ran = append(ran, c)
		}
	}
	return ran
}

// Status is the exit status that the report stands for: 0 where each probe was
// run against each backend that is there and no cell is bad, else 1.
func (r *Report) Status() int {
	if r.Partial || len(r.Cells) == 0 {
		return 1
	}
	tallies := r.Tallies()
	tried := false
	for _, c := range r.Columns {
		tried = tried || c.Kind != ColumnControl && c.Missing == ""
	}
	if !tried {
		return 1 // a control alone proves nothing
	}
	for _, c := range r.Columns {
		t := tallies[c.Name]
		if t.Bad > 0 || (c.Kind == ColumnBackend && c.Missing == "" && t.NotRun > 0) {
			return 1
		}
	}
	return 0
}

// Conclusion says in a sentence what the report comes to.
func (r *Report) Conclusion() string {
	switch n := len(r.BadCells()); {
	case n == 1:
		return "1 cell is wrong."
	case n > 1:
		return fmt.Sprintf("%d cells are wrong.", n)
	case r.Partial:
		return "Nothing is wrong in what was run."
	case r.Status() != 0:
		return "Not every probe was run against every backend that is there."
	}
	return "Nothing escaped, failed or is unknown where it is promised."
}

// StoppedBy is what stopped the run, as it stands after "stopped": " by SIGINT", or
// "" where that is not known.
func (r *Report) StoppedBy() string {
	if by := strings.TrimPrefix(r.Stopped, "stopped by "); by != "" {
		return " by " + by
	}
	return ""
}

// Probe returns the probe with an id, or nil.
func (r *Report) Probe(id string) *Probe {
	for i := range r.Probes {
		if r.Probes[i].ID == id {
			return &r.Probes[i]
		}
	}
	return nil
}

// Column returns the column with a name, or nil.
func (r *Report) Column(name string) *Column {
	for i := range r.Columns {
		if r.Columns[i].Name == name {
			return &r.Columns[i]
		}
	}
	return nil
}

// Group is the probes of one group.
type Group struct {
	Name   string
	Probes []Probe
}

// Groups parts probes by their group, in the order in which the groups come.
func Groups(probes []Probe) []Group {
	var all []Group
	at := map[string]int{}
	for _, p := range probes {
		i, ok := at[p.Group]
		if !ok {
			i = len(all)
			at[p.Group] = i
			all = append(all, Group{Name: p.Group})
		}
		all[i].Probes = append(all[i].Probes, p)
	}
	return all
}
