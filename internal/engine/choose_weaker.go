package engine

import (
	"context"
	"errors"
	"slices"
	"strings"

	"tranca"
	"tranca/internal/policy"
)

// withWeaker adds to a refusal what would work instead.
func (e *Engine) withWeaker(ctx context.Context, p tranca.Policy, err error) error {
	var r *tranca.RefusalError
	if !errors.As(err, &r) {
		return err
	}
	problems := r.Problems
	if r.Unavailable {
		problems = nil // nothing can be waived of what isn't there
	}
	r.Weaker = e.weaker(ctx, p, r.Backend, problems)
	return err
}

// weaker returns the choices that would work instead: waiving what
// is missing, if all of it can be waived, and whatever else a probe finds
// usable, strongest first, by the one word that asks for it: a lower floor, or a backend where
// the policy names one. Only the operator can make such a choice; it is never
// made here.
func (e *Engine) weaker(ctx context.Context, p tranca.Policy, by string, problems []tranca.Problem) []tranca.Alternative {
	var out []tranca.Alternative
	if flags, gives := waivers(problems); flags != "" {
		out = append(out, tranca.Alternative{Choice: flags, GivesUp: gives})
	}
	for _, other := range slices.Backward(e.cfg.Backends.All()) {
		report, err := e.probes.get(ctx, other, p.Runtime)
		if err != nil {
			continue
		}
		if other.Name() == by && report.Level >= p.Floor {
			continue // it has just refused
		}
		asked := p.Clone()
		asked.Backend, asked.Floor = other.Name(), min(p.Floor, report.Level)
		if len(policy.Check(asked, report)) > 0 {
			continue
		}
		choice := "--backend " + other.Name()
		if report.Level > tranca.LevelSubprocess && report.Level < p.Floor && (p.Backend == "" || p.Backend == other.Name()) {
			choice = "--isolation " + report.Level.String()
		}
		if !slices.ContainsFunc(out, func(a tranca.Alternative) bool { return a.Choice == choice }) {
			out = append(out, tranca.Alternative{Choice: choice, GivesUp: givesUp(report.Level, p.Floor)})
		}
	}
	return out
}

func waivers(problems []tranca.Problem) (flags, gives string) {
	var f, g []string
	for _, p := range problems {
		if !p.Waivable {
			return "", ""
		}
		f = append(f, "--waive "+string(p.Item))
		g = append(g, string(p.Item))
	}
	if len(f) == 0 {
		return "", ""
	}
	return strings.Join(f, " "), "nothing bounds " + strings.Join(g, ", ") + " any more, or only for each process"
}

// givesUp says what a level does not protect.
func givesUp(level, floor tranca.Level) string {
	switch level {
	case tranca.LevelSubprocess:
		return "it hides no files: the code reads what its user can read, sees the host's processes, and has no bound on the memory and processes of its whole tree; only for code that one almost trusts"
	case tranca.LevelProcess, tranca.LevelContainer:
		if level < floor {
			return "the code uses the host's kernel: a hole in the kernel is a way out"
		}
	case tranca.LevelGVisor:
		if level < floor {
			return "a kernel in user space stands before the host's, and no hardware does"
		}
	}
	return "nothing of what the policy asks"
}
