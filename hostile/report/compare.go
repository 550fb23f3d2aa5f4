package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"tranca"
)

// ChangesSchema names the JSON form of [Changes].
const ChangesSchema = "tranca.hostile.changes/1"

// Changes is what differs between two runs.
type Changes struct {
	Schema string `json:"schema"`
	Before Run    `json:"before"`
	After  Run    `json:"after"`
	// Regressions counts what got worse, in all the lists below.
	Regressions int `json:"regressions"`
	// Cells whose verdict differs, those of one run included where both have
	// the probe and the column.
	Cells []Change `json:"cells"`
	// Promises that a backend makes in one run only.
	Promises []PromiseChange `json:"promises"`
	// Columns and Probes that are in one run only.
	Columns []Presence `json:"columns"`
	Probes  []Presence `json:"probes"`
	// Notes say what makes the runs differ besides the boundaries: another host,
	// another user, other programs, a run that was stopped.
	Notes []string `json:"notes"`
}

// Run is one of two runs that are compared.
type Run struct {
	Began   time.Time `json:"began"`
	Version string    `json:"version"`
	Host    Host      `json:"host"`
	Partial bool      `json:"partial,omitempty"`
}

// Change is a cell that differs. A verdict is empty where the cell was not run.
type Change struct {
	Probe      string  `json:"probe"`
	Column     string  `json:"column"`
	Before     Verdict `json:"before,omitempty"`
	After      Verdict `json:"after,omitempty"`
	Regression bool    `json:"regression"`
	// Why is that of the later cell.
	Why string `json:"why,omitempty"`
}

// PromiseChange is a guarantee that a backend promises in one run only.
type PromiseChange struct {
	Column string      `json:"column"`
	Item   tranca.Item `json:"item"`
	// Held says that it is promised now. If not, it is a regression.
	Held bool   `json:"held"`
	Why  string `json:"why,omitempty"`
}

// Presence is a column or probe that is in one run only.
type Presence struct {
	Name string `json:"name"`
	// There says that it is new. If not, it is a regression.
	There bool   `json:"there"`
	Why   string `json:"why,omitempty"`
}

// Compare says what changed from one run to another. A regression is: a cell
// that became escaped, failed or unknown, or worse among these, unless that is
// what is expected of it; one that was held as promised and is n/a; a cell that now makes the run fail; a control or
// reference that no longer escapes; a promise that is gone or waived; a column or
// a probe that is gone; and a cell that was not run though the run was not
// stopped.
func Compare(before, after *Report) Changes {
	c := Changes{
		Schema: ChangesSchema, Before: runOf(before), After: runOf(after),
		Cells: []Change{}, Promises: []PromiseChange{}, Columns: []Presence{}, Probes: []Presence{},
		Notes: list(notes(before, after)),
	}
	c.compareColumns(before, after)
	c.compareProbes(before, after)
	c.compareCells(before, after)
	return c
}

func runOf(r *Report) Run { return Run{r.Began, r.Version, r.Host, r.Partial} }

func (c *Changes) compareColumns(before, after *Report) {
	for i := range before.Columns {
		old := &before.Columns[i]
		now := after.Column(old.Name)
		switch {
		case old.Missing != "":
		case now == nil:
			c.gone(&c.Columns, old.Name, "")
		case now.Missing != "":
			c.gone(&c.Columns, old.Name, now.Missing)
		default:
			c.comparePromises(old, now)
		}
	}
	for i := range after.Columns {
		now := &after.Columns[i]
		if old := before.Column(now.Name); now.Missing == "" && (old == nil || old.Missing != "") {
			c.Columns = append(c.Columns, Presence{Name: now.Name, There: true})
		}
	}
}

func (c *Changes) compareProbes(before, after *Report) {
	old, now := before.ids(), after.ids()
	for _, p := range before.Probes {
		if !now[p.ID] {
			c.gone(&c.Probes, p.ID, "")
		}
	}
	for _, p := range after.Probes {
		if !old[p.ID] {
			c.Probes = append(c.Probes, Presence{Name: p.ID, There: true})
		}
	}
}

func (c *Changes) gone(to *[]Presence, name, why string) {
	*to = append(*to, Presence{Name: name, Why: why})
	c.Regressions++
}

func (r *Report) ids() map[string]bool {
	all := make(map[string]bool, len(r.Probes))
	for _, p := range r.Probes {
		all[p.ID] = true
	}
	return all
}

func (c *Changes) comparePromises(old, now *Column) {
	if old.Kind != ColumnBackend || now.Kind != ColumnBackend {
		return
	}
	for _, item := range tranca.Items() {
		had, has := old.Promises(item), now.Promises(item)
		if had == has {
			continue
		}
		change := PromiseChange{Column: now.Name, Item: item, Held: has}
		if !has {
			change.Why = now.WhyNot(item)
			c.Regressions++
		}
		c.Promises = append(c.Promises, change)
	}
}

// Promises reports whether the column is a backend that promises the item here.
func (c *Column) Promises(item tranca.Item) bool {
	return c.Kind == ColumnBackend && c.WhyNot(item) == ""
}

// WhyNot says why a backend does not promise the item in this run; "" where it
// does.
func (c *Column) WhyNot(item tranca.Item) string {
	r := tranca.Report{Backend: c.Name, Guarantees: c.Guarantees}
	switch g := r.Find(item); {
	case !g.Held && g.Missing == "":
		return "not held on this host"
	case !g.Held:
		return g.Missing
	case slices.Contains(c.Waived, item):
		return "waived in this run"
	}
	return ""
}

func (c *Changes) compareCells(before, after *Report) {
	from, to := before.Matrix(), after.Matrix()
	ids := before.ids()
	for i := range after.Columns {
		column := &after.Columns[i]
		if column.Missing != "" {
			continue
		}
		old := before.Column(column.Name)
		known := old != nil && old.Missing == ""
		for _, p := range after.Probes {
			pair := pair{column.Kind, from.Cell(p.ID, column.Name), to.Cell(p.ID, column.Name)}
			differs, regression := pair.compare(known && ids[p.ID], after.Partial)
			if !differs {
				continue
			}
			change := Change{Probe: p.ID, Column: column.Name, Regression: regression}
			if pair.from != nil {
				change.Before = pair.from.Verdict
			}
			if pair.to != nil {
				change.After, change.Why = pair.to.Verdict, pair.to.Why
			}
			if regression {
				c.Regressions++
			}
			c.Cells = append(c.Cells, change)
		}
	}
}

// pair is one cell in two runs; nil where it was not run.
type pair struct {
	kind     ColumnKind
	from, to *Cell
}

// compare reports whether the cell is to be told of, and as a regression. known
// says that the earlier run has its column and probe, stopped that the later one
// was interrupted.
func (p pair) compare(known, stopped bool) (differs, regression bool) {
	switch {
	case p.from == nil && p.to == nil:
		return false, false
	case p.to == nil:
		return !stopped, !stopped
	case p.from == nil:
		return known || p.to.Bad(), p.to.Bad()
	case p.to.Bad() && !p.from.Bad():
		return true, true
	case p.from.Verdict == p.to.Verdict:
		return false, false
	}
	return true, p.worse()
}

func (p pair) worse() bool {
	from, to := p.from.Verdict, p.to.Verdict
	switch {
	case p.to.Expected == to && !p.to.Promised:
		return false
	case p.kind == ColumnControl || p.kind == ColumnReference:
		return from == Escaped && to != NotApplicable
	case p.from.Promised && to == NotApplicable && (from == Contained || from == Limited):
		return true // what was shown is shown no more
	}
	all := Verdicts()
	return slices.Index(all, to) < slices.Index(all, from) && slices.Contains([]Verdict{Escaped, Failed, Unknown}, to)
}

// notes says what differs besides the boundaries.
func notes(before, after *Report) []string {
	var all []string
	differ := func(what string, old, now any) {
		if old != now {
			all = append(all, fmt.Sprintf("%s differs: %v, before %v", what, now, old))
		}
	}
	differ("tranca's version", before.Version, after.Version)
	old, now := before.Host, after.Host
	differ("the host's system", old.System, now.System)
	differ("the host's kernel", old.Kernel, now.Kernel)
	differ("the host's architecture", old.Arch, now.Arch)
	differ("the user's id", old.UserID, now.UserID)
	differ("the number of CPUs", old.CPUs, now.CPUs)
	for i := range after.Columns {
		column := &after.Columns[i]
		if was := before.Column(column.Name); was != nil {
			differ("what "+column.Name+" is", string(was.Kind), string(column.Kind))
			differ("the tool behind "+column.Name, was.Tool, column.Tool)
			differ("the command of "+column.Name, was.Command, column.Command)
		}
	}
	if changed := otherPrograms(before, after); len(changed) > 0 {
		all = append(all, fmt.Sprintf("probes whose file differs: %s", some(changed, 10)))
	}
	for _, r := range []struct {
		report *Report
		which  string
	}{{before, "the earlier run"}, {after, "this run"}} {
		if r.report.Partial {
			all = append(all, r.which+" was stopped before its end: cells that it has not are not compared")
		}
	}
	return all
}

func otherPrograms(before, after *Report) []string {
	old := make(map[string]string, len(before.Probes))
	for _, p := range before.Probes {
		old[p.ID] = p.Program
	}
	var changed []string
	for _, p := range after.Probes {
		if program, ok := old[p.ID]; ok && program != p.Program {
			changed = append(changed, p.ID)
		}
	}
	return changed
}

// some lists up to so many words, and says how many more there are.
func some(words []string, most int) string {
	if len(words) <= most {
		return strings.Join(words, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:most], ", "), len(words)-most)
}
