package cli

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"tranca"
	"tranca/hostile/report"
	"tranca/internal/terminal"
)

// hostileText writes a report of the hostile suite for a person.
type hostileText struct {
	bytes.Buffer
	p     palette
	found *report.Report
	cells report.Matrix
	// ran are the columns that were run.
	ran []*report.Column
}

func newHostileText(p palette, found *report.Report) *hostileText {
	return &hostileText{p: p, found: found, cells: found.Matrix(), ran: found.Ran()}
}

// write writes all of it, or only what is wrong.
func (t *hostileText) write(quiet bool) {
	if !quiet {
		t.head()
		t.matrix()
		t.tallies()
	}
	t.bad()
	if !quiet {
		t.promises()
	}
	t.conclusion(quiet)
}

func (t *hostileText) head() {
	h := t.found.Host
	who := "as root"
	if h.UserID != 0 {
		who = fmt.Sprintf("as user %d", h.UserID)
	}
	took := time.Duration(t.found.Seconds * float64(time.Second)).Round(time.Second)
	fmt.Fprintln(t, t.p.bold(fmt.Sprintf("%d probes, %d columns, in %s", len(t.found.Probes), len(t.ran), took)))
	fmt.Fprintf(t, "%s, Linux %s, %s, %d CPUs, %s\n",
		terminal.Clean(h.System), terminal.Clean(h.Kernel), terminal.Clean(h.Arch), h.CPUs, who)
}

// Names are cut to what a row of a table can bear.
const (
	longestID     = 40
	longestColumn = 32
)

func name(text string, most int) string { return terminal.Clean(cut(text, most)) }

// matrix writes a row for each probe and a sign for each column, whose names stand
// above it like stairs.
func (t *hostileText) matrix() {
	wide := 0
	for _, p := range t.found.Probes {
		wide = max(wide, utf8.RuneCountInString(name(p.ID, longestID)))
	}
	bar := "| "
	if t.p.unicode {
		bar = "│ "
	}
	fmt.Fprintln(t)
	for i, c := range t.ran {
		title := name(c.Name, longestColumn)
		if c.Kind != report.ColumnBackend {
			title += " (" + string(c.Kind) + ")"
		}
		fmt.Fprintln(t, strings.Repeat(" ", wide+4)+strings.Repeat(bar, i)+title)
	}
	for _, group := range report.Groups(t.found.Probes) {
		fmt.Fprintln(t, t.p.bold(terminal.Clean(group.Name)))
		for _, p := range group.Probes {
			t.row(p, wide)
		}
	}
	t.legend()
}

func (t *hostileText) row(p report.Probe, wide int) {
	id := name(p.ID, longestID)
	line := "  " + id + strings.Repeat(" ", wide-utf8.RuneCountInString(id)+2)
	var bad []string
	for _, c := range t.ran {
		sign := " "
		if cell := t.cells.Cell(p.ID, c.Name); cell != nil {
			sign = t.p.verdict(cell.Verdict, t.p.sign(cell.Verdict))
			if cell.Bad() {
				bad = append(bad, name(c.Name, longestColumn))
			}
		}
		line += sign + " "
	}
	if len(bad) > 0 {
		line += t.p.bad("< " + strings.Join(bad, ", "))
	}
	fmt.Fprintln(t, strings.TrimRight(line, " "))
}

func (t *hostileText) legend() {
	line := ""
	for _, v := range report.Verdicts() {
		line += "  " + t.p.verdict(v, t.p.sign(v)+" "+string(v))
	}
	for _, tally := range t.found.Tallies() {
		if tally.NotRun > 0 && t.found.Partial {
			line += "  blank: not run"
			break
		}
	}
	fmt.Fprintf(t, "\n%s\n", line)
}

// tallies counts the cells of each column.
func (t *hostileText) tallies() {
	head := []string{"COLUMN"}
	for _, v := range report.Verdicts() {
		head = append(head, strings.ToUpper(string(v)))
	}
	head = append(head, "NOT RUN", "WRONG")
	all := t.found.Tallies()
	var rows [][]string
	for _, c := range t.ran {
		tally := all[c.Name]
		row := []string{cut(c.Name, longestColumn)}
		for _, v := range report.Verdicts() {
			row = append(row, strconv.Itoa(tally.Verdicts[v]))
		}
		rows = append(rows, append(row, strconv.Itoa(tally.NotRun), strconv.Itoa(tally.Bad)))
	}
	fmt.Fprintln(t)
	_ = writeTable(t, head, rows) // a buffer takes all
	for _, c := range t.found.Columns {
		if c.Missing != "" {
			fmt.Fprintf(t, "%s was not run: %s\n", name(c.Name, longestColumn), terminal.Clean(c.Missing))
		}
	}
}

// Evidence is shown so far here; the report has all of it.
const (
	shownEvidence = 12
	shownLine     = 200
)

// bad says of each cell that makes the run fail what happened.
func (t *hostileText) bad() {
	for _, c := range t.found.BadCells() {
		fmt.Fprintf(t, "\n%s\n", t.p.bad(fmt.Sprintf("%s %s in %s: %s", t.p.sign(c.Verdict), terminal.Clean(c.Probe), terminal.Clean(c.Column), c.Verdict)))
		if p := t.found.Probe(c.Probe); p != nil {
			indent(t, "tries", wrap(p.Try))
			indent(t, "worth", wrap(p.Why))
			indent(t, "against", promise(c.Promised, p))
		}
		indent(t, "why", wrap(cut(c.Why, 2000)))
		if c.Expected != "" && c.Expected != c.Verdict {
			indent(t, "expected", wrap(strings.TrimSuffix(string(c.Expected)+": "+c.Because, ": ")))
		}
		indent(t, "control", c.Control)
		indent(t, "evidence", evidence(c.Evidence))
	}
}

func promise(promised bool, p *report.Probe) string {
	if promised {
		return string(p.Guarantee) + ", which is promised here; severity " + p.Severity
	}
	return string(p.Guarantee) + ", which is not promised here; severity " + p.Severity
}

func evidence(lines []string) string {
	var b strings.Builder
	for i, line := range lines {
		if i == shownEvidence {
			fmt.Fprintf(&b, "(%d more lines, which --json and --html have)\n", len(lines)-i)
			break
		}
		// One line stays one line: Clean shows its breaks.
		b.WriteString(terminal.Clean(cut(line, shownLine)) + "\n")
	}
	return b.String()
}

// promises says what each column does not promise.
func (t *hostileText) promises() {
	fmt.Fprintf(t, "\n%s\n", t.p.bold("What is not promised"))
	for _, c := range t.ran {
		title := name(c.Name, longestColumn)
		switch c.Kind {
		case report.ColumnControl:
			fmt.Fprintf(t, "  %s: anything. It is the control: what does not escape here proves nothing elsewhere.\n", title)
		case report.ColumnReference:
			fmt.Fprintf(t, "  %s: anything. It shows what a boundary is for.\n", title)
		case report.ColumnAgainst:
			fmt.Fprintf(t, "  %s: not known to tranca, so nothing here counts as wrong. %s\n", title, terminal.Clean(cut(c.Tool+": "+c.Command, 300)))
		default:
			t.notPromised(title, c)
		}
	}
}

// notPromised lists the items of a backend that are not held, by the reason.
func (t *hostileText) notPromised(title string, c *report.Column) {
	var order []string
	items := map[string][]string{}
	for _, item := range tranca.Items() {
		why := c.WhyNot(item)
		if why == "" {
			continue
		}
		if items[why] == nil {
			order = append(order, why)
		}
		items[why] = append(items[why], string(item))
	}
	if len(order) == 0 {
		fmt.Fprintf(t, "  %s: every item is promised. docs/SECURITY.md says how far each goes.\n", title)
		return
	}
	for _, why := range order {
		fmt.Fprintf(t, "  %s, because %s:\n", title, terminal.Clean(cut(why, 300)))
		for line := range strings.Lines(wrap(strings.Join(items[why], ", "))) {
			fmt.Fprintf(t, "    %s\n", strings.TrimSuffix(line, "\n"))
		}
	}
}

func (t *hostileText) conclusion(quiet bool) {
	if t.found.Partial {
		fmt.Fprintf(t, "\n%s\n", t.p.fair("Partial: the run was stopped"+terminal.Clean(cut(t.found.StoppedBy(), 200))+". What was not run is shown by nothing."))
	}
	say := t.p.good
	switch {
	case len(t.found.BadCells()) > 0:
		say = t.p.bad
	case t.found.Partial || quiet:
		return
	case t.found.Status() != 0:
		say = t.p.bad
	}
	fmt.Fprintf(t, "\n%s\n", say(t.found.Conclusion()))
}

// compared says what changed since another run.
func (t *hostileText) compared(changes *report.Changes) {
	fmt.Fprintln(t)
	_ = changes.WriteText(t) // a buffer takes all
}
