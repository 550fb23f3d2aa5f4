package suite

import (
	"slices"
	"strings"

	"tranca"
	"tranca/hostile"
	"tranca/hostile/report"
)

// ownKernel reports whether the code's system calls are not the host kernel's.
func ownKernel(c *report.Column) bool { return c.Level >= tranca.LevelGVisor }

// expect fills in what was to be expected.
func expect(cell *report.Cell, p *hostile.Probe, c *report.Column) {
	backend, _, _ := strings.Cut(c.Name, " (")
	if c.Kind == report.ColumnBackend && ownKernel(c) && backend == "container" {
		backend = "gvisor"
	}
	if e, ok := p.Expect[backend]; ok {
		cell.Expected, cell.Because = e.Verdict, e.Why
		// It is about more than what this backend promises by that item.
		cell.Promised = cell.Promised && e.Verdict != report.Escaped
		return
	}
	switch {
	case c.Kind == report.ColumnControl:
		cell.Expected, cell.Because = report.Escaped, "it has no boundary"
	case !cell.Promised:
	case p.Kernel && ownKernel(c):
		cell.Expected, cell.Because = report.NotApplicable, "its own kernel answers"
	case p.Limit != "" && !byRlimit(c, p.Guarantee):
		cell.Expected, cell.Because = report.Limited, "it promises "+string(p.Guarantee)
	case p.Limit != "": // told or not, as the kernel lets
	default:
		cell.Expected, cell.Because = report.Contained, "it promises "+string(p.Guarantee)
	}
}

// promisesAll reports whether a column holds every item for which something was
// refused, and holds none of them by refusing: then it refuses what it promises.
func promisesAll(c *report.Column, items []tranca.Item) bool {
	for _, item := range items {
		i := slices.IndexFunc(c.Guarantees, func(g tranca.Guarantee) bool { return g.Item == item })
		if i < 0 || !c.Promises(item) || strings.Contains(c.Guarantees[i].Mechanism, "is refused") {
			return false
		}
	}
	return true
}

// byRlimit reports whether a column holds an item by a limit of each process, as
// where a user has no control groups: the kernel then refuses, and keeps no
// count of it.
func byRlimit(c *report.Column, item tranca.Item) bool {
	if slices.Contains(c.Waived, item) {
		return true
	}
	for _, g := range c.Guarantees {
		if g.Item == item {
			return strings.Contains(g.Mechanism, "RLIMIT")
		}
	}
	return false
}
