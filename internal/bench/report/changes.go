package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"tranca/internal/bench"
	"tranca/internal/terminal"
)

// Changes writes what has changed between two results: each figure that has, and
// how many have not.
func Changes(w io.Writer, old, now *bench.Result, all []bench.Change) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\nSince %s, tranca %s\n", old.Started.Format("2006-01-02 15:04"), terminal.Clean(old.Tranca))
	for _, line := range otherHost(old, now) {
		b.WriteString("  " + terminal.Clean(line) + "\n")
	}
	counts := map[bench.Verdict]int{}
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, c := range all {
		counts[c.Verdict]++
		if c.Verdict == bench.Same {
			continue
		}
		fmt.Fprintf(tw, "  %s\t%s\t%s\t%s\t->\t%s\t%s\n", c.Verdict, terminal.Clean(c.Subject),
			terminal.Clean(title(c.Measure)), value(c, c.Old), value(c, c.New), factor(c))
	}
	_ = tw.Flush() // a Builder has no errors
	fmt.Fprintf(&b, "  %d better, %d worse, %d the same within the noise, %d unclear, %d new, %d gone\n",
		counts[bench.Better], counts[bench.Worse], counts[bench.Same], counts[bench.Unclear], counts[bench.New], counts[bench.Gone])
	_, err := io.WriteString(w, b.String())
	return err
}

// otherHost says in what the two runs differ beside what is measured.
func otherHost(old, now *bench.Result) []string {
	var lines []string
	for _, f := range []struct{ what, old, now string }{
		{"kernel", old.Host.Kernel, now.Host.Kernel},
		{"processor", old.Host.CPU, now.Host.CPU},
		{"number of CPUs", fmt.Sprint(old.Host.CPUs), fmt.Sprint(now.Host.CPUs)},
		{"user id", fmt.Sprint(old.Host.UserID), fmt.Sprint(now.Host.UserID)},
	} {
		if f.old != f.now {
			lines = append(lines, fmt.Sprintf("another %s: %s before, %s now", f.what, f.old, f.now))
		}
	}
	if bad := old.Sound(); len(bad) > 0 {
		lines = append(lines, "the earlier result doesn't stand as it is: "+strings.Join(bad, "; "))
	}
	return lines
}

func title(name bench.MeasureName) string {
	m, _ := bench.MeaningOf(name)
	return m.Title
}

func value(c bench.Change, i *bench.Interval) string {
	if i == nil {
		return none
	}
	if c.Ratio {
		return i.String()
	}
	m, _ := bench.MeaningOf(c.Measure)
	return m.Unit.Format(i.Value)
}

func factor(c bench.Change) string {
	if c.Factor == 0 {
		return ""
	}
	return fmt.Sprintf("%+.0f %%", 100*(c.Factor-1))
}
