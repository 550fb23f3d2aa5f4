package cli

import (
	"fmt"
	"strings"

	"tranca"
	"tranca/internal/advise"
	"tranca/internal/terminal"
)

// printAdvice shows an advice to a person. path is where its policy was written,
// or "".
func (a *app) printAdvice(v *advise.Advice, path string) {
	p := newPalette(a.Stdout, a.Getenv)
	fmt.Fprintf(a.Stdout, "For %s:\n\n", terminal.Clean(v.Answers.String()))
	if v.Recommended == nil {
		fmt.Fprintf(a.Stdout, "%s %s\n", p.no(), p.bold("nothing on this host may be recommended; floor "+v.Floor.String()))
	} else {
		fmt.Fprintf(a.Stdout, "%s %s\n", p.yes(), p.bold(fmt.Sprintf("backend %s, floor %s", v.Recommended.Backend, v.Floor)))
	}
	for _, r := range v.Reasons {
		fmt.Fprintf(a.Stdout, "  %-8s %s\n", r.From, terminal.Clean(r.Text))
	}
	for _, d := range v.Demands {
		a.printDemand(p, d)
	}
	a.printList("What it does not protect from:", v.NotProtected)
	a.printNext(v)
	a.printRejected(p, v)
	a.printList("Mind:", v.Notes)
	a.printPolicy(v, path)
}

func (a *app) printDemand(p palette, d advise.Demand) {
	mark := map[advise.Met]string{advise.Yes: p.yes(), advise.No: p.no(), advise.Unknown: "?"}[d.Met]
	fmt.Fprintf(a.Stdout, "  %s %s of %s: %s\n", mark, d.Name, d.Asked, d.Has)
	if d.Met == advise.No {
		fmt.Fprintf(a.Stdout, "      what helps: %s\n", d.Mend)
	}
}

func (a *app) printList(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(a.Stdout, "\n%s\n", title)
	for _, line := range lines {
		fmt.Fprintf(a.Stdout, "  - %s\n", terminal.Clean(line))
	}
}

func (a *app) printNext(v *advise.Advice) {
	n := v.Next
	if n == nil {
		return
	}
	name := n.Level.String()
	if n.Backend != "" && n.Backend != name {
		name = n.Backend + " (" + name + ")"
	}
	title := "The next rung up: "
	if v.Recommended == nil {
		title = "What would do: "
	}
	fmt.Fprintf(a.Stdout, "\n%s%s. %s\n", title, name, terminal.Clean(n.Price))
	for _, why := range n.Why {
		fmt.Fprintf(a.Stdout, "  - %s\n", terminal.Clean(why))
	}
	a.printMend(n.Mends)
}

// printMend shows what makes something available, line by line.
func (a *app) printMend(mends []string) {
	for _, mend := range mends {
		for line := range strings.Lines(mend) {
			fmt.Fprintf(a.Stdout, "      %s\n", terminal.Clean(strings.TrimRight(line, "\n")))
		}
	}
}

// printRejected tells of those that are strong enough and can't be had, or are
// broken; that a weaker one is too weak needs no word.
func (a *app) printRejected(p palette, v *advise.Advice) {
	first := true
	for _, r := range v.Rejected {
		shown := v.Next != nil && v.Next.Backend == r.Backend
		if r.Level <= tranca.LevelSubprocess || r.Level < v.Floor && len(r.Broken) == 0 || shown && len(r.Broken) == 0 {
			continue
		}
		if first {
			fmt.Fprintln(a.Stdout, "\nNot recommended:")
			first = false
		}
		fmt.Fprintf(a.Stdout, "  %s %s\n", p.no(), r.Backend)
		for _, why := range r.Why {
			fmt.Fprintf(a.Stdout, "    - %s\n", terminal.Clean(why))
		}
		a.printMend(r.Mends)
	}
}

func (a *app) printPolicy(v *advise.Advice, path string) {
	switch {
	case v.Policy == "":
	case path != "":
		fmt.Fprintf(a.Stdout, "\nThe policy is in %s: tranca run --policy %s\n", terminal.Clean(path), commandText([]string{path}))
	default:
		fmt.Fprintln(a.Stdout, "\nThe policy (--write FILE keeps it; tranca run --policy FILE uses it):")
		for line := range strings.Lines(v.Policy) {
			fmt.Fprintf(a.Stdout, "  %s", terminal.Clean(strings.TrimRight(line, "\n")))
			fmt.Fprintln(a.Stdout)
		}
	}
}
