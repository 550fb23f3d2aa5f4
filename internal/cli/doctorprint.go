package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tranca"
	"tranca/internal/hostcheck"
	"tranca/internal/terminal"
)

// printReport draws the report for a person.
func (a *app) printReport(d diagnosis, all bool) {
	p := newPalette(a.Stdout, a.Getenv)
	who := "as root"
	if d.Host.UID != 0 {
		who = fmt.Sprintf("as user %d", d.Host.UID)
	}
	fmt.Fprintf(a.Stdout, "%s, Linux %s, %s, %s\n", d.Host.System, d.Host.Kernel, d.Host.Arch, who)
	fmt.Fprintln(a.Stdout)
	for i, v := range d.Backends {
		if all && i > 0 {
			fmt.Fprintln(a.Stdout)
		}
		a.printBackend(p, v, all)
	}
	a.printMends(d)
	a.printHostChecks(p, d, all)
	fmt.Fprintln(a.Stdout)
	switch d.Status {
	case doctorAll:
		fmt.Fprintln(a.Stdout, p.good("Every backend is usable, with all of its guarantees."))
	case doctorSome:
		fmt.Fprintln(a.Stdout, p.fair("Usable in part: what is missing is refused, never skipped in silence."))
	default:
		fmt.Fprintln(a.Stdout, p.bad("Nothing can be run here: no backend is usable."))
	}
}

func (a *app) printBackend(p palette, v backendView, all bool) {
	if !v.Usable {
		fmt.Fprintf(a.Stdout, "%s %s  not usable\n", p.no(), p.bold(v.Backend))
		if len(v.Problems) == 0 {
			indent(a.Stdout, "why", v.Error)
		}
		for _, problem := range v.Problems {
			fmt.Fprintf(a.Stdout, "  %s %-20s %s\n", p.no(), problem.Item, terminal.Clean(problem.Missing))
		}
		return
	}
	held, required := 0, 0
	for _, g := range v.Guarantees {
		if g.Required {
			required++
		}
		if g.Required && g.Held {
			held++
		}
	}
	fmt.Fprintf(a.Stdout, "%s %s  isolation level %s, %d of %d guarantees\n",
		p.yes(), p.bold(v.Backend), v.Level, held, required)
	for _, g := range v.Guarantees {
		if all || g.Required && !g.Held {
			a.printGuarantee(p, g)
		}
	}
	a.printFacts(v, all)
	for _, hole := range v.Advisories {
		a.printAdvisory(p, hole)
	}
}

func (a *app) printFacts(v backendView, all bool) {
	if !all {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(v.Facts)) {
		fmt.Fprintf(a.Stdout, "    %s: %s\n", key, terminal.Clean(v.Facts[key]))
	}
}

// printAdvisory tells of a known hole. One that is open is no missing
// guarantee: the policy says whether it is refused.
func (a *app) printAdvisory(p palette, hole hostcheck.Advisory) {
	mark := p.open()
	if hole.Patched == "" {
		mark = p.fair("!")
	}
	fmt.Fprintf(a.Stdout, "  %s %s\n", mark, terminal.Clean(hole.String()))
	tried := "behaviour: " + hole.Behaviour
	if len(hole.Probes) > 0 {
		tried += "; from inside: " + strings.Join(hole.Probes, ", ")
	}
	fmt.Fprintf(a.Stdout, "      %s\n", terminal.Clean(tried))
}

func (a *app) printGuarantee(p palette, g guaranteeView) {
	mark, text := p.yes(), g.Mechanism
	switch {
	case !g.Held && g.Required:
		mark, text = p.no(), g.Missing
	case !g.Held:
		mark, text = p.open(), g.Missing
	}
	fmt.Fprintf(a.Stdout, "  %s %-20s %s\n", mark, g.Item, terminal.Clean(text))
}

// printHostChecks shows what was seen of the host, in the groups of the list.
func (a *app) printHostChecks(p palette, d diagnosis, all bool) {
	if len(d.Checks) == 0 {
		return
	}
	count := map[hostcheck.Verdict]int{}
	for _, c := range d.Checks {
		count[c.Result]++
	}
	fmt.Fprintf(a.Stdout, "\n%s %d checks: %d ok, %d weak, %d open, %d unknown\n", p.bold("The host itself."), len(d.Checks),
		count[hostcheck.OK], count[hostcheck.Weak], count[hostcheck.Open], count[hostcheck.Unknown])
	group := ""
	for _, c := range d.Checks {
		if !all && c.Result == hostcheck.OK {
			continue
		}
		if c.Group != group {
			group = c.Group
			fmt.Fprintf(a.Stdout, "  %s\n", terminal.Clean(group))
		}
		a.printHostCheck(p, c, all)
	}
	for _, l := range d.Lists {
		if l.Note != "" {
			fmt.Fprintf(a.Stdout, "  %s list of %s: %s\n", p.fair("!"), l.Name, terminal.Clean(l.Note))
		}
		if all {
			fmt.Fprintf(a.Stdout, "  list of %s: %s, %s\n", l.Name, terminal.Clean(l.Source), l.Date)
		}
	}
	if !all {
		fmt.Fprintln(a.Stdout, "  `tranca doctor --all` shows the rest, and the risk of each.")
	}
}

func (a *app) printHostCheck(p palette, c hostcheck.Result, all bool) {
	mark := map[hostcheck.Verdict]string{
		hostcheck.OK: p.yes(), hostcheck.Weak: p.fair("!"), hostcheck.Open: p.no(), hostcheck.Unknown: "?",
	}[c.Result]
	text := c.Seen
	if !all {
		text = cut(text, 160)
	}
	if len(c.Probes) > 0 {
		text += " (" + strings.Join(c.Probes, ", ") + ")"
	}
	fmt.Fprintf(a.Stdout, "    %s %-20s %s\n", mark, c.ID, terminal.Clean(text))
	if all {
		fmt.Fprintf(a.Stdout, "      %s: %s\n", terminal.Clean(c.Looks), terminal.Clean(c.Risk))
	}
	if all {
		for _, hole := range c.Advisories {
			fmt.Fprint(a.Stdout, "    ")
			a.printAdvisory(p, hole)
		}
	} else {
		a.printHoles(c.Advisories)
	}
	if c.Mend != "" && c.Result != hostcheck.OK {
		fmt.Fprintf(a.Stdout, "        %s\n", terminal.Clean(c.Mend))
	}
}

// printHoles names the open holes of one program, those that were tried alike
// together.
func (a *app) printHoles(holes []hostcheck.Advisory) {
	var order []string
	ids, probes := map[string][]string{}, map[string][]string{}
	for _, h := range holes {
		if h.Patched != "" {
			continue
		}
		if ids[h.Behaviour] == nil {
			order = append(order, h.Behaviour)
		}
		ids[h.Behaviour] = append(ids[h.Behaviour], h.ID)
		for _, id := range h.Probes {
			if !slices.Contains(probes[h.Behaviour], id) {
				probes[h.Behaviour] = append(probes[h.Behaviour], id)
			}
		}
	}
	for _, tried := range order {
		text := "version says " + strings.Join(ids[tried], ", ") + "; behaviour: " + tried
		if len(probes[tried]) > 0 {
			text += "; from inside: " + strings.Join(probes[tried], ", ")
		}
		fmt.Fprintf(a.Stdout, "        %s\n", terminal.Clean(text))
	}
}

// printMends lists each mend once, with what it is for.
func (a *app) printMends(d diagnosis) {
	var order []string
	items := map[string][]string{}
	add := func(backend string, item tranca.Item, mend string) {
		if mend == "" {
			return
		}
		if items[mend] == nil {
			order = append(order, mend)
		}
		items[mend] = append(items[mend], backend+" "+string(item))
	}
	for _, v := range d.Backends {
		for _, problem := range v.Problems {
			add(v.Backend, problem.Item, problem.Mend)
		}
		for _, g := range v.Guarantees {
			if !g.Held && g.Required {
				add(v.Backend, g.Item, g.Mend)
			}
		}
	}
	if len(order) == 0 {
		return
	}
	fmt.Fprintln(a.Stdout, "\nWhat mends it:")
	for _, mend := range order {
		for line := range strings.Lines(mend) {
			fmt.Fprintf(a.Stdout, "  %s\n", terminal.Clean(strings.TrimRight(line, "\n")))
		}
		fmt.Fprintf(a.Stdout, "      for %s\n", strings.Join(items[mend], ", "))
	}
	if d.Host.UID != 0 {
		fmt.Fprintln(a.Stdout, "  `tranca setup --print` shows what root can do about it once and for all.")
	}
}
