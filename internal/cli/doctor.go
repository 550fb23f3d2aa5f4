package cli

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/urfave/cli/v3"

	"tranca"
	"tranca/internal/hostcheck"
	"tranca/internal/hostsetup"
	"tranca/internal/policy"
)

const (
	doctorAll  = 0
	doctorSome = 1
	doctorNone = 2
)

const doctorHelp = `Tries each mechanism and says, for each backend, what it can enforce here, or
what is missing and what mends it. Then it looks at the host itself: settings of
the kernel, what the kernel gives a program without rights, engines, the
processor. Known holes in the versions that are there are named, with what the
distribution did about them and what was tried. It changes nothing.

It shows what is not as it should be; --all shows everything, with the risk of
each. What a check found does not change the exit status.

The lists of holes and checks are built in. A newer copy at
/etc/tranca/advisories.json or /etc/tranca/hostchecks.json counts instead, or
one that is named.

Examples:
  tranca doctor
  tranca doctor --all
  tranca doctor --json
  tranca doctor --advisories advisories.json

`

func (a *app) doctorCommand() *cli.Command {
	return &cli.Command{
		Name:  "doctor",
		Usage: "say what this host can enforce, and what mends the rest",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "all", Usage: "show what is as it should be, too"},
			jsonFlag("print as JSON"),
			&cli.StringFlag{Name: "advisories", Usage: "take known holes from `FILE`, where it is newer than the list that is built in", HideDefault: true},
			&cli.StringFlag{Name: "checks", Usage: "take checks of the host from `FILE`, likewise", HideDefault: true},
		},
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
	seen, err := a.inspect(ctx, InspectSetup{Advisories: c.String("advisories"), Checks: c.String("checks")})
	if err != nil {
		return err
	}
	report := a.diagnose(seen)
	if c.Bool("json") {
		if err := a.printJSON(report); err != nil {
			return err
		}
	} else {
		a.printReport(report, c.Bool("all"))
	}
	return exit(report.Status)
}

// inspect looks at the host, as far as this world can. What is half looked at
// because ctx ended is no finding.
func (a *app) inspect(ctx context.Context, setup InspectSetup) (seen Inspection, err error) {
	if a.Inspect == nil {
		seen.Probed = a.Probe(ctx)
	} else {
		seen, err = a.Inspect(ctx, setup)
	}
	if ctx.Err() != nil {
		return Inspection{}, context.Cause(ctx)
	}
	return seen, err
}

// diagnosis is what doctor prints.
type diagnosis struct {
	// Schema is "tranca.doctor/1"; docs/DOCTOR.md describes it.
	Schema   string        `json:"schema"`
	Host     hostFacts     `json:"host"`
	Backends []backendView `json:"backends"`
	// Checks are those of the host, in the order of their list.
	Checks []hostcheck.Result `json:"checks"`
	// Lists say which lists of data were used.
	Lists []ListInForce `json:"lists"`
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
	Advisories []hostcheck.Advisory `json:"advisories,omitempty"`
}

type guaranteeView struct {
	tranca.Guarantee
	// Required says that the level promises it. What is not required may be
	// asked for by a policy all the same.
	Required bool `json:"required"`
}

func (a *app) diagnose(seen Inspection) diagnosis {
	distribution := hostsetup.ReadDistribution("/")
	d := diagnosis{
		Schema: "tranca.doctor/1", Host: readHost(distribution), Status: doctorNone,
		Backends: []backendView{}, Checks: []hostcheck.Result{}, Lists: []ListInForce{},
	}
	d.Checks = append(d.Checks, seen.Checks...)
	d.Lists = append(d.Lists, seen.Lists...)
	complete := true
	for _, p := range seen.Probed {
		v := view(p, distribution)
		for _, hole := range p.Report.Advisories {
			v.Advisories = append(v.Advisories, seen.withBehaviour(hole))
		}
		if v.Usable {
			d.Status = doctorSome
		}
		complete = complete && v.Complete
		d.Backends = append(d.Backends, v)
	}
	if complete && len(seen.Probed) > 0 {
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
	v := backendView{Backend: p.Backend, Level: p.Report.Level, Facts: p.Report.Facts}
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

// InspectSetup says which lists the operator named; empty names none.
type InspectSetup struct{ Advisories, Checks string }

// Inspection is what was seen of a host.
type Inspection struct {
	Probed []Probed
	Checks []hostcheck.Result
	Lists  []ListInForce
	// Behaviour says what was tried of a known hole, and which hostile probes
	// try it from inside; nil says nothing.
	Behaviour func(tranca.Advisory) (string, []string)
}

// ListInForce is a list of data that was used.
type ListInForce struct {
	// Name is "advisories" or "checks".
	Name string `json:"name"`
	// Source is a file's path, or "built in"; Date is when it was made.
	Source string `json:"source"`
	Date   string `json:"date"`
	// Note says why another one that is there was not used.
	Note string `json:"note,omitempty"`
}

func (i *Inspection) withBehaviour(a tranca.Advisory) hostcheck.Advisory {
	if i.Behaviour == nil {
		return hostcheck.Advisory{Advisory: a, Behaviour: "nothing is tried"}
	}
	text, probes := i.Behaviour(a)
	return hostcheck.Advisory{Advisory: a, Behaviour: text, Probes: probes}
}
