package report

import (
	"bufio"
	"fmt"
	"io"

	"tranca/internal/terminal"
)

// WriteJSON writes the changes in the form that docs/HOSTILE.md describes. Lists
// are never null.
func (c *Changes) WriteJSON(w io.Writer) error { return writeJSON(w, c) }

// WriteText writes the changes for a person: regressions first. What came from
// files and sandboxes is made harmless for a terminal.
func (c *Changes) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	worse, other := c.lines()
	fmt.Fprintf(b, "Compared with the run of %s by tranca %s: %s, %s.\n",
		c.Before.Began.UTC().Format("2006-01-02 15:04 UTC"), terminal.Clean(c.Before.Version),
		count(len(worse), "regression"), count(len(other), "other change"))
	for _, note := range c.Notes {
		fmt.Fprintf(b, "  Mind: %s.\n", terminal.Clean(note))
	}
	for _, part := range []struct {
		title string
		lines []string
	}{{"Regressions:", worse}, {"Other changes:", other}} {
		if len(part.lines) > 0 {
			fmt.Fprintln(b, part.title)
		}
		for _, line := range part.lines {
			fmt.Fprintf(b, "  %s\n", terminal.Clean(line))
		}
	}
	return b.Flush()
}

// lines says each change, regressions and others.
func (c *Changes) lines() (worse, other []string) {
	add := func(regression bool, text, why string) {
		if why != "" {
			text += ": " + why
		}
		if regression {
			worse = append(worse, text)
		} else {
			other = append(other, text)
		}
	}
	for _, l := range []struct {
		what string
		all  []Presence
	}{{"column", c.Columns}, {"probe", c.Probes}} {
		for _, p := range l.all {
			state := "is gone"
			if p.There {
				state = "is new"
			}
			add(!p.There, fmt.Sprintf("%s: the %s %s", p.Name, l.what, state), p.Why)
		}
	}
	for _, p := range c.Promises {
		state := "no longer promises"
		if p.Held {
			state = "now promises"
		}
		add(!p.Held, fmt.Sprintf("%s %s %s", p.Column, state, p.Item), p.Why)
	}
	for _, x := range c.Cells {
		add(x.Regression, fmt.Sprintf("%s in %s: %s -> %s", x.Probe, x.Column, orNotRun(x.Before), orNotRun(x.After)), x.Why)
	}
	return worse, other
}

func orNotRun(v Verdict) string {
	if v == "" {
		return "not run"
	}
	return string(v)
}

// count is a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
