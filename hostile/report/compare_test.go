package report_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tranca"
	"tranca/hostile/report"
	"tranca/hostile/report/reporttest"
)

// with returns the good run with one cell changed.
func with(column, probe string, f func(*report.Cell)) *report.Report {
	r := reporttest.Good()
	for i := range r.Cells {
		if c := &r.Cells[i]; c.Column == column && c.Probe == probe {
			f(c)
		}
	}
	return r
}

func became(column string, v report.Verdict) *report.Report {
	return with(column, "fs-01-ssh-key", func(c *report.Cell) { c.Verdict = v })
}

// promising returns the good run without one promise of process.
func promising(change func(*report.Column)) *report.Report {
	r := reporttest.Good()
	change(r.Column("process"))
	return r
}

func TestRegressions(t *testing.T) {
	good := reporttest.Good()
	for name, c := range map[string]struct {
		before, after *report.Report
		want          []string // the regressions
		other         int
	}{
		"the same":                          {good, reporttest.Good(), nil, 0},
		"contained, then escaped":           {good, became("process", report.Escaped), []string{"fs-01-ssh-key in process: contained -> escaped"}, 0},
		"contained, then failed":            {good, became("process", report.Failed), []string{"contained -> failed"}, 0},
		"contained, then unknown":           {good, became("process", report.Unknown), []string{"contained -> unknown"}, 0},
		"unknown, then escaped":             {became("bwrap", report.Unknown), became("bwrap", report.Escaped), []string{"unknown -> escaped"}, 0},
		"somebody else's, then worse":       {good, became("bwrap", report.Escaped), []string{"fs-01-ssh-key in bwrap: contained -> escaped"}, 0},
		"escaped, then contained":           {became("process", report.Escaped), good, nil, 1},
		"escaped, then unknown":             {became("process", report.Escaped), became("process", report.Unknown), nil, 1},
		"contained, then not there to hold": {good, became("process", report.NotApplicable), []string{"contained -> n/a"}, 0},
		"unknown, then as expected":         {became("subprocess", report.Unknown), good, nil, 1},
		"expected to escape, and contained": {good, became("subprocess", report.Contained), []string{"fs-01-ssh-key in subprocess: escaped -> contained"}, 0},
		"the control bites no more":         {good, became("none", report.Contained), []string{"fs-01-ssh-key in none: escaped -> contained"}, 0},
		"the control has what it lacked":    {became("none", report.Unknown), good, nil, 1},
		"the reference escapes no more": {good, with("docker run", "fs-01-ssh-key", func(c *report.Cell) {
			c.Verdict, c.Expected = report.Contained, ""
		}), []string{"in docker run: escaped -> contained"}, 0},
		"another expectation": {good, with("process", "fs-01-ssh-key", func(c *report.Cell) { c.Expected = report.Limited }), []string{"contained -> contained"}, 0},
		"a promise is gone": {good, promising(func(c *report.Column) {
			i := slices.IndexFunc(c.Guarantees, func(g tranca.Guarantee) bool { return g.Item == tranca.ItemMemory })
			c.Guarantees[i] = tranca.Guarantee{Item: tranca.ItemMemory, Missing: "no control group"}
		}), []string{"process no longer promises limits.memory: no control group"}, 0},
		"a promise is waived":     {good, promising(func(c *report.Column) { c.Waived = append(c.Waived, tranca.ItemPIDs) }), []string{"process no longer promises limits.processes: waived in this run"}, 0},
		"a promise is not listed": {good, promising(func(c *report.Column) { c.Guarantees = c.Guarantees[1:] }), []string{"process no longer promises isolation"}, 0},
		"a promise is new":        {good, promising(func(c *report.Column) { c.Waived = nil }), nil, 1},
		"a column is gone":        {good, without("process", ""), []string{"process: the column is gone"}, 0},
		"a column can't be run":   {good, missing("process"), []string{"process: the column is gone: it is broken"}, 0},
		"a column is new":         {without("process", ""), good, nil, 1},
		"a column can be run":     {missing("process"), good, nil, 1},
		"a column never could":    {missing("process"), missing("process"), nil, 0},
		"a probe is gone":         {good, without("", "fs-01-ssh-key"), []string{"fs-01-ssh-key: the probe is gone"}, 0},
		"a probe is new":          {without("", "fs-01-ssh-key"), good, nil, 1},
		"a new probe escapes":     {without("", "fs-01-ssh-key"), became("process", report.Escaped), []string{"not run -> escaped"}, 1},
		"a cell was not run":      {good, dropped("process", "fs-01-ssh-key"), []string{"contained -> not run"}, 0},
		"a cell is new":           {dropped("process", "fs-01-ssh-key"), good, nil, 1},
		"the run was stopped":     {good, reporttest.Partial(), nil, 0},
		"the earlier was stopped": {reporttest.Partial(), good, nil, 15},
	} {
		changes := report.Compare(c.before, c.after)
		text := textOf(t, &changes)
		if changes.Regressions != len(c.want) || !strings.Contains(text, number1(len(c.want), c.other)) {
			t.Errorf("%s: %d regressions, want %d and %d other changes:\n%s", name, changes.Regressions, len(c.want), c.other, text)
		}
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", name, want, text)
			}
		}
	}
}

func textOf(t *testing.T, c *report.Changes) string {
	t.Helper()
	var b bytes.Buffer
	if err := c.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func number1(worse, other int) string {
	words := func(n int, word string) string {
		if n == 1 {
			return "1 " + word
		}
		return fmt.Sprintf("%d %ss", n, word)
	}
	return words(worse, "regression") + ", " + words(other, "other change") + "."
}

func without(column, probe string) *report.Report {
	r, _ := reporttest.Good().Narrow(func(c *report.Column) bool { return c.Name != column }, func(p *report.Probe) bool { return p.ID != probe })
	return r
}

func missing(column string) *report.Report {
	r := reporttest.Good()
	r.Column(column).Missing = "it is broken"
	r.Cells = slices.DeleteFunc(r.Cells, func(c report.Cell) bool { return c.Column == column })
	return r
}

func dropped(column, probe string) *report.Report {
	r := reporttest.Good()
	drop(r, column, probe)
	return r
}

// Another host, user, tool or program is told, since verdicts can't be compared as
// if nothing else had changed.
func TestCompareNotes(t *testing.T) {
	after := reporttest.Good()
	after.Host = report.Host{System: "Fedora Linux 44", Kernel: "6.19.1", Arch: "arm64", UserID: 1000, CPUs: 8}
	after.Version = "v1.3.0"
	after.Column("bwrap").Tool = "bubblewrap 0.11.0"
	after.Column("bwrap").Command = "bwrap python3 -"
	after.Probes[1].Program += "# changed\n"
	after.Partial = true
	changes := report.Compare(reporttest.Good(), after)
	for _, want := range []string{
		"tranca's version differs: v1.3.0, before v1.2.3", "the host's system differs: Fedora Linux 44", "the host's kernel differs: 6.19.1",
		"the host's architecture differs: arm64", "the user's id differs: 1000, before 0", "the number of CPUs differs: 8, before 2",
		"the tool behind bwrap differs: bubblewrap 0.11.0", "the command of bwrap differs", "probes whose file differs: fs-01-ssh-key",
		"this run was stopped before its end",
	} {
		if !slices.ContainsFunc(changes.Notes, func(n string) bool { return strings.Contains(n, want) }) {
			t.Errorf("no note says %q: %q", want, changes.Notes)
		}
	}
	if same := report.Compare(reporttest.Good(), reporttest.Good()); len(same.Notes) > 0 {
		t.Errorf("the same run has notes: %q", same.Notes)
	}
}

func TestChangesForms(t *testing.T) {
	after := reporttest.Bad()
	after.Columns = slices.DeleteFunc(after.Columns, func(c report.Column) bool { return c.Name == "docker run" })
	after.Cells = slices.DeleteFunc(after.Cells, func(c report.Cell) bool { return c.Column == "docker run" })
	after.Host.Kernel = "6.19.1"
	after.Column("process").Waived = []tranca.Item{tranca.ItemPIDs}
	after.Probes = append(after.Probes, report.Probe{ID: "x-\x1b[2J", Group: "Files", Guarantee: tranca.ItemFiles})
	changes := report.Compare(reporttest.Good(), after)
	golden(t, "changes.txt", []byte(textOf(t, &changes)))
	var b bytes.Buffer
	if err := changes.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, "changes.json", b.Bytes())
}

func TestNarrow(t *testing.T) {
	r, left := reporttest.Good().Narrow(
		func(c *report.Column) bool { return c.Kind == report.ColumnBackend },
		func(p *report.Probe) bool { return p.Group == "Files" })
	if len(r.Columns) != 3 || len(r.Probes) != 2 || len(r.Cells) != 4 {
		t.Errorf("%d columns, %d probes, %d cells", len(r.Columns), len(r.Probes), len(r.Cells))
	}
	if left != "none, docker run, bwrap, 2 probes of 4" {
		t.Errorf("left out: %q", left)
	}
	if whole := reporttest.Good(); len(whole.Cells) != 20 {
		t.Errorf("the whole has %d cells", len(whole.Cells))
	}
}
