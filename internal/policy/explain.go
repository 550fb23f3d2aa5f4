package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tranca"
)

// Explain says in sentences what code under a policy may and may not do, and
// by which mechanism the backend of the report enforces each on this host;
// then what is waived and what is missing. It is for the operator, never for
// an agent. With a zero report it says what the policy asks, and no mechanism.
func Explain(p tranca.Policy, r tranca.Report) string {
	x := explainer{p: p, r: r}
	x.head()
	required := RequiredFor(p, x.level())
	x.section("What the code may do:", true, required)
	x.section("What it may not do, and what holds it:", false, required)
	x.notPromised(required)
	x.problems()
	return x.String()
}

type explainer struct {
	strings.Builder
	p tranca.Policy
	r tranca.Report
}

// level is the report's, or the policy's floor where nothing was probed.
func (x *explainer) level() tranca.Level {
	if x.r.Backend == "" {
		return x.p.Floor
	}
	return x.r.Level
}

func (x *explainer) head() {
	fmt.Fprintf(x, "Policy %s, %s\n", clip(x.p.Source), Digest(x.p))
	switch {
	case x.r.Backend == "":
		fmt.Fprintf(x, "No backend was tried; this is what the policy asks of one.\n")
	default:
		fmt.Fprintf(x, "Backend %s on this host, isolation level %s (the policy accepts %s and stronger).\n", x.r.Backend, x.r.Level, x.p.Floor)
	}
	if x.p.Runtime != "" {
		fmt.Fprintf(x, "Containers are run by the runtime %s and no other.\n", x.p.Runtime)
	}
	x.advisories()
}

// advisories names the known holes, mended ones too.
func (x *explainer) advisories() {
	for _, a := range x.r.Advisories {
		fmt.Fprintf(x, "Note: %s.\n", a)
	}
	if x.p.KnownVulnerabilities == tranca.VulnerabilitiesRefuse {
		fmt.Fprintf(x, "It is refused where a part of the boundary has a known hole that nobody mended.\n")
	}
}

func (x *explainer) section(title string, may bool, required []tranca.Item) {
	fmt.Fprintf(x, "\n%s\n", title)
	for _, t := range itemTexts() {
		if t.may == may && slices.Contains(required, t.item) {
			fmt.Fprintf(x, "- %s\n  [%s] %s\n", t.sentence(&x.p), t.item, x.how(t.item))
		}
	}
	if may {
		fmt.Fprintf(x, "- It starts in %s.%s\n", clip(x.p.Workdir), x.sessions())
	}
}

func (x *explainer) sessions() string {
	if x.p.KeepFiles {
		return " Calls of one session share their files."
	}
	return " Each call begins with empty files."
}

// how says by what an item is enforced.
func (x *explainer) how(item tranca.Item) string {
	g := x.r.Find(item)
	switch {
	case x.p.Waives(item) && g.Held && x.r.Backend != "":
		return "waived by the policy; this host could enforce it by " + g.Mechanism
	case x.p.Waives(item):
		return "waived by the policy: not relied on"
	case x.r.Backend == "":
		return "to be enforced, or the run is refused"
	case g.Held:
		return "enforced by " + g.Mechanism
	}
	return "MISSING: " + missing(g)
}

// notPromised lists what a weak rung does not hold at all, in plain words.
func (x *explainer) notPromised(required []tranca.Item) {
	if x.level() != tranca.LevelSubprocess {
		return
	}
	fmt.Fprintf(x, "\nThe level subprocess does not promise, so the code may get round:\n")
	for _, t := range itemTexts() {
		if !slices.Contains(required, t.item) && t.item != tranca.ItemMountDisk && t.item != tranca.ItemProtect {
			fmt.Fprintf(x, "- %s [%s]\n", t.short, t.item)
		}
	}
}

func (x *explainer) problems() {
	if x.r.Backend == "" {
		return
	}
	problems := Check(x.p, x.r)
	if len(problems) == 0 {
		fmt.Fprintf(x, "\nNothing is missing: this host can run it.\n")
		return
	}
	fmt.Fprintf(x, "\nThis host refuses to run it:\n")
	for _, p := range problems {
		fmt.Fprintf(x, "- %s: asked %s; %s", p.Item, p.Asked, p.Missing)
		if p.Mend != "" {
			fmt.Fprintf(x, "; mend: %s", p.Mend)
		}
		if p.Waivable {
			fmt.Fprintf(x, "; or waive it: \"waive: [%s]\"", p.Item)
		}
		x.WriteByte('\n')
	}
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
