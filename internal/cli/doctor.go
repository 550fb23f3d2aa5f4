package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"tranca"
	"tranca/internal/hostsetup"
	"tranca/internal/policy"
	"tranca/internal/terminal"
)

const (
	doctorAll  = 0
	doctorSome = 1
	doctorNone = 2
)

const doctorHelp = `Tries each mechanism and says, for each backend, what it can enforce here, or
what is missing and what mends it. Known holes in the versions that are there
are named, with what the distribution did about them. It changes nothing.

Examples:
  tranca doctor
  tranca doctor --json

`

func (a *app) doctorCommand() *cli.Command {
	return &cli.Command{
		Name:  "doctor",
		Usage: "say what this host can enforce, and what mends the rest",
		Flags: []cli.Flag{jsonFlag("print as JSON")},
		Description: doctorHelp + "Exit status:\n" +
			"  0      every backend is usable, with all of its guarantees\n" +
			"  1      some: a backend or a guarantee is missing\n" +
			"  2      none: nothing can be run here\n" +
			"  125    tranca itself failed",
		Action: a.doctor,
	}
}

func (a *app) doctor(ctx context.Context, c *cli.Command) error {
	if err := noArguments(c); err != nil {
		return err
	}
	ctx, stop := interruptible(ctx, a.Quit)
	defer stop()
	probed := a.Probe(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	report := a.diagnose(probed)
	if c.Bool("json") {
		if err := a.printJSON(report); err != nil {
			return err
		}
	} else {
		a.printReport(report)
	}
	return exit(report.Status)
}

// diagnosis is what doctor prints.
type diagnosis struct {
	Host     hostFacts     `json:"host"`
	Backends []backendView `json:"backends"`
	// Status is the exit status.
	Status int `json:"status"`
}

type hostFacts struct {
	System string `json:"system"`
	Kernel string `json:"kernel"`
	Arch   string `json:"arch"`
	UID    int    `json:"uid"`
}

type backendView struct {
	Backend string       `json:"backend"`
	Level   tranca.Level `json:"level,omitempty"`
	Usable  bool         `json:"usable"`
	// Complete says that all that the level promises is held.
	Complete   bool            `json:"complete"`
	Guarantees []guaranteeView `json:"guarantees,omitempty"`
	// Problems say why it can't be used at all.
	Problems []tranca.Problem  `json:"problems,omitempty"`
	Error    string            `json:"error,omitempty"`
	Facts    map[string]string `json:"facts,omitempty"`
	// Advisories are known holes, those that the distribution mended included.
	Advisories []tranca.Advisory `json:"advisories,omitempty"`
}

type guaranteeView struct {
	tranca.Guarantee
	// Required says that the level promises it. What is not required may be
	// asked for by a policy all the same.
	Required bool `json:"required"`
}

func (a *app) diagnose(probed []Probed) diagnosis {
	distribution := hostsetup.ReadDistribution("/")
	d := diagnosis{Host: readHost(distribution), Status: doctorNone}
	complete := true
	for _, p := range probed {
		v := view(p, distribution)
		if v.Usable {
			d.Status = doctorSome
		}
		complete = complete && v.Complete
		d.Backends = append(d.Backends, v)
	}
	if complete && len(probed) > 0 {
		d.Status = doctorAll
	}
	return d
}

func readHost(d hostsetup.Distribution) hostFacts {
	h := hostFacts{System: d.Name, UID: os.Geteuid()}
	h.Kernel, h.Arch = kernel()
	return h
}

func view(p Probed, d hostsetup.Distribution) backendView {
	v := backendView{Backend: p.Backend, Level: p.Report.Level, Facts: p.Report.Facts, Advisories: p.Report.Advisories}
	if p.Err != nil {
		v.Error = p.Err.Error()
		var refusal *tranca.RefusalError
		if errors.As(p.Err, &refusal) {
			v.Problems = slices.Clone(refusal.Problems)
			for i := range v.Problems {
				v.Problems[i].Mend = d.Mend(v.Problems[i].Mend)
			}
		}
		return v
	}
	v.Usable, v.Complete = true, true
	required := policy.Required(p.Report.Level)
	for _, item := range tranca.Items() {
		g := guaranteeView{p.Report.Find(item), slices.Contains(required, item)}
		g.Mend = d.Mend(g.Mend)
		v.Guarantees = append(v.Guarantees, g)
		v.Complete = v.Complete && (g.Held || !g.Required)
	}
	return v
}

// printReport draws the report for a person.
func (a *app) printReport(d diagnosis) {
	p := newPalette(a.Stdout, a.Getenv)
	who := "as root"
	if d.Host.UID != 0 {
		who = fmt.Sprintf("as user %d", d.Host.UID)
	}
	fmt.Fprintf(a.Stdout, "%s, Linux %s, %s, %s\n", d.Host.System, d.Host.Kernel, d.Host.Arch, who)
	for _, v := range d.Backends {
		fmt.Fprintln(a.Stdout)
		a.printBackend(p, v)
	}
	a.printMends(d)
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

func (a *app) printBackend(p palette, v backendView) {
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
		a.printGuarantee(p, g)
	}
	for _, key := range slices.Sorted(maps.Keys(v.Facts)) {
		fmt.Fprintf(a.Stdout, "    %s: %s\n", key, terminal.Clean(v.Facts[key]))
	}
	for _, hole := range v.Advisories {
		a.printAdvisory(p, hole)
	}
}

// printAdvisory tells of a known hole. One that is open is no missing
// guarantee: the policy says whether it is refused.
func (a *app) printAdvisory(p palette, hole tranca.Advisory) {
	mark := p.open()
	if hole.Patched == "" {
		mark = p.fair("!")
	}
	fmt.Fprintf(a.Stdout, "  %s %s\n", mark, terminal.Clean(hole.String()))
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
