package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"tranca/internal/bench"
	"tranca/internal/terminal"
)

// table is one of the tables: a row for each subject that has any of it.
type table struct {
	title   string
	columns []column
}

// column is a cell of each subject; "" where there is nothing to say.
type column struct {
	head string
	cell func(*bench.Subject) string
}

// none stands where a subject has no figure.
const none = "-"

func tables() []table {
	return []table{
		{"Starts", []column{
			{"isolation", isolation},
			quantile("first byte", bench.FirstByte, 50), ratio("x bare", bench.FirstByte),
			quantile("whole p50", bench.Whole, 50), quantile("p90", bench.Whole, 90), quantile("p99", bench.Whole, 99),
			quantile("max", bench.Whole, 100), ratio("x bare (95 %)", bench.Whole),
		}},
		{"Sandboxes that stay", []column{
			quantile("create", bench.Create, 50), quantile("second command", bench.Second, 50), ratio("x bare start", bench.Second),
			quantile("destroy", bench.Destroy, 50), quantile("p99", bench.Destroy, 99), quantile("idle memory", bench.IdleMemory, 50),
		}},
		{"Programs, x bare (95 %)", []column{
			program("compute", bench.Compute), program("system calls", bench.Syscalls),
			program("forks", bench.Forks), program("small files", bench.Files),
		}},
		{"Starts in a second", []column{
			quantile("1 caller", bench.Throughput1, 50), ratio("x bare", bench.Throughput1),
			quantile("8 callers", bench.Throughput8, 50), ratio("x bare", bench.Throughput8),
			quantile("64 callers", bench.Throughput64, 50), ratio("x bare", bench.Throughput64),
		}},
		{"Data", []column{
			quantile("output", bench.Output, 50), ratio("x bare", bench.Output),
			quantile("file data", bench.FileData, 50), ratio("x bare", bench.FileData),
		}},
	}
}

func isolation(s *bench.Subject) string {
	level := s.Isolation
	switch {
	case level == "":
		level = "none"
	case s.Kind == bench.KindBaseline:
		level = "like " + level
	}
	return level
}

func quantile(head string, name bench.MeasureName, p int) column {
	meaning, _ := bench.MeaningOf(name)
	return column{head, func(s *bench.Subject) string {
		m := s.Measure(name)
		if m == nil {
			return none
		}
		v := map[int]float64{50: m.P50, 90: m.P90, 99: m.P99, 100: m.Max}[p]
		return meaning.Unit.Format(v)
	}}
}

func ratio(head string, name bench.MeasureName) column {
	return column{head, func(s *bench.Subject) string {
		m := s.Measure(name)
		if m == nil || m.Ratio == nil {
			return none
		}
		return m.Ratio.String()
	}}
}

// program is ratio, or the time itself where one sample is all there is.
func program(head string, name bench.MeasureName) column {
	by := ratio(head, name)
	return column{head, func(s *bench.Subject) string {
		if m := s.Measure(name); m != nil && m.Ratio == nil {
			return bench.Nanoseconds.Format(m.P50) + ", once"
		}
		return by.cell(s)
	}}
}

// rows are the cells of a table: its head, and a row for each subject that has
// something to show in it.
func (t table) rows(r *bench.Result) [][]string {
	head := []string{""}
	for _, c := range t.columns {
		head = append(head, c.head)
	}
	all := [][]string{head}
	for i := range r.Subjects {
		s := &r.Subjects[i]
		row, shows := []string{s.Name}, false
		for _, c := range t.columns {
			cell := c.cell(s)
			shows = shows || cell != none && c.head != "isolation"
			row = append(row, cell)
		}
		if shows {
			all = append(all, row)
		}
	}
	return all
}

// Table writes the result for a terminal.
func Table(w io.Writer, r *bench.Result) error {
	var b strings.Builder
	b.WriteString(headline(r) + "\n")
	for _, t := range tables() {
		rows := t.rows(r)
		if len(rows) == 1 {
			continue
		}
		b.WriteString("\n" + t.title + "\n")
		tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		for _, row := range rows {
			for i, cell := range row {
				row[i] = terminal.Clean(cell)
			}
			fmt.Fprintln(tw, "  "+strings.TrimRight(strings.Join(row, "\t"), "\t"))
		}
		_ = tw.Flush() // a Builder has no errors
	}
	for _, n := range remarks(r) {
		b.WriteString("\n" + n.title + "\n")
		for _, line := range n.lines {
			b.WriteString("  " + terminal.Clean(line) + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// headline says when and where it was.
func headline(r *bench.Result) string {
	h := r.Host
	kind := "full run"
	if r.Quick {
		kind = "quick run"
	}
	if r.Partial {
		kind = "a partial result: the run was stopped before its end"
	}
	return terminal.Clean(fmt.Sprintf("tranca %s, %s; %s, Linux %s, %s, %d CPUs (%s), %s of memory, user id %d, load %.2f; %d rounds, seed %d, %s",
		r.Tranca, r.Started.Format("2006-01-02 15:04"), h.System, h.Kernel, h.Arch, h.CPUs, h.CPU,
		bench.Bytes.Format(float64(h.Memory)), h.UserID, h.LoadBefore, r.Rounds, r.Seed, kind))
}

// remark is what a reader must know beside the figures.
type remark struct {
	title string
	lines []string
}

func remarks(r *bench.Result) []remark {
	var all []remark
	add := func(title string, lines []string) {
		if len(lines) > 0 {
			all = append(all, remark{title, lines})
		}
	}
	var absent, waived, left, unseen []string
	for i := range r.Subjects {
		s := &r.Subjects[i]
		if s.Unavailable != "" {
			absent = append(absent, s.Name+": "+s.Unavailable)
			continue
		}
		absent = append(absent, gaps(s)...)
		if len(s.Waived) > 0 {
			waived = append(waived, fmt.Sprintf("%s: %v", s.Name, s.Waived))
		}
		switch {
		case s.LeftChecked && len(s.Left) == 0:
			left = append(left, s.Name)
		case !s.LeftChecked && s.Kind != bench.KindBare:
			unseen = append(unseen, s.Name)
		}
	}
	add("Not measured", absent)
	add("Waived, so not enforced and not paid for", waived)
	var after []string
	if len(left) > 0 {
		after = append(after, "nothing by "+strings.Join(left, ", "))
	}
	if len(unseen) > 0 {
		after = append(after, "not looked at for "+strings.Join(unseen, ", "))
	}
	add("Left on the host after the end", after)
	add("Baseline", []string{r.Trust.String()})
	if r.Harness.EmptyNS > 0 {
		add("Harness", []string{r.Harness.String()})
	}
	if bad := r.Sound(); len(bad) > 0 {
		add("THIS RESULT DOESN'T STAND AS IT IS", bad)
	}
	return all
}

// gaps lists what a subject that runs has no figures for, those of one reason in
// one line.
func gaps(s *bench.Subject) []string {
	var order []string
	of := map[string][]string{}
	for _, m := range s.Measures {
		if m.Missing == "" {
			continue
		}
		if of[m.Missing] == nil {
			order = append(order, m.Missing)
		}
		of[m.Missing] = append(of[m.Missing], title(m.Name))
	}
	var lines []string
	for _, why := range order {
		lines = append(lines, fmt.Sprintf("%s, %s: %s", s.Name, strings.Join(of[why], ", "), why))
	}
	return lines
}
