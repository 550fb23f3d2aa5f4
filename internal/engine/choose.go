package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tranca"
	"tranca/internal/policy"
)

// plan is what was decided before anything is made: what the code may do, and
// which backend enforces it.
type plan struct {
	policy  tranca.Policy
	digest  string
	backend tranca.Backend
	level   tranca.Level
}

// plan narrows the policy by the request and chooses a backend for what is
// left. It refuses a request that asks for more than the policy gives.
func (e *Engine) plan(ctx context.Context, from *profile, n tranca.Narrowing) (plan, error) {
	p := plan{policy: from.policy, digest: from.digest}
	if !empty(n) {
		narrowed, problems := policy.Narrow(from.policy, n)
		if len(problems) > 0 {
			return plan{}, &tranca.RefusalError{Problems: problems}
		}
		p.policy, p.digest = narrowed, policy.Digest(narrowed)
	}
	err := e.choose(ctx, &p)
	return p, err
}

func empty(n tranca.Narrowing) bool {
	limits := n.Wall != 0 || n.CPUTime != 0 || n.MilliCPUs != 0 || n.Memory != 0 ||
		n.Processes != 0 || n.OpenFiles != 0 || n.FileSize != 0 || n.DiskSize != 0 ||
		n.DiskInodes != 0 || n.Output != 0
	return !limits && n.Floor == 0 && n.Backend == "" && len(n.DropMounts) == 0 &&
		len(n.ReadOnly) == 0 && len(n.Env) == 0 && n.Workdir == ""
}

// choose sets the backend: the one that is named, or the weakest usable one at
// or above the floor, which is the cheapest. One of level subprocess is never
// chosen, only named. The same policy on the same host gives the same choice.
func (e *Engine) choose(ctx context.Context, p *plan) error {
	if p.policy.Backend != "" {
		b, err := e.cfg.Backends.Get(p.policy.Backend)
		if err != nil {
			return e.unknown(p.policy)
		}
		return e.tryUse(ctx, p, b)
	}
	var first error
	for _, b := range e.candidates(ctx, p.policy.Floor) {
		err := e.tryUse(ctx, p, b)
		var refused *tranca.RefusalError
		if err == nil || !errors.As(err, &refused) {
			return err
		}
		if first == nil {
			first = err
		}
	}
	if first == nil {
		first = e.nobody(ctx, p.policy)
	}
	return first
}

// candidates returns the backends that may be chosen, weakest first. Those
// that say their level are judged by it; the others must be probed.
func (e *Engine) candidates(ctx context.Context, floor tranca.Level) []tranca.Backend {
	type ranked struct {
		b     tranca.Backend
		level tranca.Level
	}
	var all []ranked
	for _, b := range e.cfg.Backends.All() {
		level := statedLevel(b)
		if level == 0 {
			report, err := e.probes.get(ctx, b)
			if err != nil {
				level = tranca.LevelMicroVM // its refusal is worth telling, last
			} else {
				level = report.Level
			}
		}
		if level > tranca.LevelSubprocess && level >= floor {
			all = append(all, ranked{b, level})
		}
	}
	slices.SortStableFunc(all, func(a, b ranked) int { return int(a.level) - int(b.level) })
	out := make([]tranca.Backend, len(all))
	for i, r := range all {
		out[i] = r.b
	}
	return out
}

// statedLevel returns the level that a backend says without a probe, or 0.
func statedLevel(b tranca.Backend) tranca.Level {
	if l, ok := tranca.As[interface{ Level() tranca.Level }](b); ok {
		return l.Level()
	}
	return 0
}

// tryUse sets the plan's backend, or says why this one can't be used.
func (e *Engine) tryUse(ctx context.Context, p *plan, b tranca.Backend) error {
	report, err := e.probes.before(ctx, b)
	if err != nil {
		return e.unavailable(ctx, p.policy, b, err)
	}
	if problems := policy.Check(p.policy, report); len(problems) > 0 {
		return &tranca.RefusalError{
			Backend: b.Name(), Problems: problems, Weaker: e.weaker(ctx, p.policy, b, problems),
		}
	}
	p.backend, p.level = b, report.Level
	return nil
}

// unavailable makes a refusal of a probe that failed.
func (e *Engine) unavailable(ctx context.Context, p tranca.Policy, b tranca.Backend, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	out := &tranca.RefusalError{Backend: b.Name(), Unavailable: true}
	var inner *tranca.RefusalError
	if errors.As(err, &inner) && len(inner.Problems) > 0 {
		out.Problems = slices.Clone(inner.Problems)
	} else {
		out.Problems = []tranca.Problem{{
			Item: tranca.ItemIsolation, Asked: policy.Asked(p, tranca.ItemIsolation), Missing: err.Error(),
		}}
	}
	out.Weaker = e.weaker(ctx, p, b, nil)
	return out
}

// unknown says that there is no backend of the policy's name.
func (e *Engine) unknown(p tranca.Policy) error {
	return &tranca.RefusalError{
		Backend: p.Backend, Unavailable: true,
		Problems: []tranca.Problem{{
			Item: tranca.ItemIsolation, Asked: "backend " + p.Backend,
			Missing: "there is no such backend here (there is: " + e.names() + ")",
		}},
	}
}

func (e *Engine) names() string {
	var names []string
	for _, b := range e.cfg.Backends.All() {
		names = append(names, b.Name())
	}
	return strings.Join(names, ", ")
}

// nobody says that no backend reaches the floor.
func (e *Engine) nobody(ctx context.Context, p tranca.Policy) error {
	return &tranca.RefusalError{
		Problems: []tranca.Problem{{
			Item: tranca.ItemIsolation, Asked: policy.Asked(p, tranca.ItemIsolation),
			Missing: fmt.Sprintf("no backend here reaches it (there is: %s)", e.names()),
		}},
		Weaker: e.weaker(ctx, p, nil, nil),
	}
}

// weaker returns the choices that would work where b does not: waiving what
// is missing, if all of it can be waived, and each backend that a probe finds
// usable. Only the operator can make such a choice; it is never made here.
func (e *Engine) weaker(ctx context.Context, p tranca.Policy, b tranca.Backend, problems []tranca.Problem) []tranca.Alternative {
	var out []tranca.Alternative
	if flags, gives := waivers(problems); flags != "" {
		out = append(out, tranca.Alternative{Choice: flags, GivesUp: gives})
	}
	for _, other := range e.cfg.Backends.All() {
		if b != nil && other.Name() == b.Name() {
			continue
		}
		report, err := e.probes.get(ctx, other)
		if err != nil {
			continue
		}
		asked := p.Clone()
		asked.Backend, asked.Floor = other.Name(), min(p.Floor, report.Level)
		if len(policy.Check(asked, report)) == 0 {
			out = append(out, tranca.Alternative{
				Choice: "--backend " + other.Name(), GivesUp: givesUp(report.Level, p.Floor),
			})
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
