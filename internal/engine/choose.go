package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	// notes are what the operator should know of that backend, in each result.
	notes []string
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
	var told error
	line := e.candidates(ctx, p.policy)
	for c := line.next(ctx, e, p.policy); c != nil; c = line.next(ctx, e, p.policy) {
		err := use(ctx, p, c.backend, c.report, c.err)
		if err == nil || !refused(err) {
			return err
		}
		if told == nil || absent(told) && !absent(err) {
			told = err
		}
	}
	if told == nil {
		told = e.nobody(p.policy)
	}
	return e.withWeaker(ctx, p.policy, told)
}

// absent reports whether a refusal says that a backend isn't there at all. One
// that is, and lacks something, has more to tell about what to do.
func absent(err error) bool {
	var r *tranca.RefusalError
	return errors.As(err, &r) && r.Unavailable
}

// tryUse sets the plan's backend, or says why this one can't be used.
func (e *Engine) tryUse(ctx context.Context, p *plan, b tranca.Backend) error {
	report, err := e.probes.before(ctx, b, p.policy.Runtime)
	return e.withWeaker(ctx, p.policy, use(ctx, p, b, report, err))
}

// use sets the plan's backend by what a probe of it said, or says why it can't
// be used.
func use(ctx context.Context, p *plan, b tranca.Backend, report tranca.Report, err error) error {
	if err != nil {
		return unavailable(ctx, p.policy, b, err)
	}
	if problems := policy.Check(p.policy, report); len(problems) > 0 {
		return &tranca.RefusalError{Backend: b.Name(), Problems: problems}
	}
	p.backend, p.level, p.notes = b, report.Level, holes(report)
	return nil
}

// holes says which known holes are open in what a backend is made of: a line
// for each part. What mends them, its report says.
func holes(r tranca.Report) []string {
	open := map[string][]string{}
	for _, a := range r.Advisories {
		if a.Patched == "" {
			part := a.Component + " " + a.Version
			open[part] = append(open[part], a.ID)
		}
	}
	var notes []string
	for _, part := range slices.Sorted(maps.Keys(open)) {
		notes = append(notes, fmt.Sprintf("%s has known holes: %s; `tranca doctor` says what mends them",
			part, strings.Join(open[part], ", ")))
	}
	return notes
}

func refused(err error) bool {
	var r *tranca.RefusalError
	return errors.As(err, &r)
}

// unavailable makes a refusal of a probe that failed.
func unavailable(ctx context.Context, p tranca.Policy, b tranca.Backend, err error) error {
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
func (e *Engine) nobody(p tranca.Policy) error {
	return &tranca.RefusalError{
		Problems: []tranca.Problem{{
			Item: tranca.ItemIsolation, Asked: policy.Asked(p, tranca.ItemIsolation),
			Missing: fmt.Sprintf("no backend here reaches it (there is: %s)", e.names()),
		}},
	}
}
