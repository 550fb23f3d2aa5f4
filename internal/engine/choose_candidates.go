package engine

import (
	"context"
	"slices"

	"tranca"
)

// candidate is a backend that may be chosen.
type candidate struct {
	backend tranca.Backend
	// level is where it stands in line: the level that it states, until it is
	// known which it has here.
	level  tranca.Level
	known  bool
	report tranca.Report
	err    error
}

// line holds candidates, weakest first.
type line []candidate

// candidates returns the backends that may be chosen. Those that say their
// level are judged by it, so that none is probed in vain; the others must be
// probed. What is said to be a container may be more by its runtime, so it is
// judged only when its turn comes. Where the policy names a runtime, only those
// are asked that may have one.
func (e *Engine) candidates(ctx context.Context, p tranca.Policy) line {
	all := line{}
	for _, b := range e.cfg.Backends.All() {
		c := candidate{backend: b, level: statedLevel(b)}
		if c.level == tranca.LevelContainer {
			c.level = max(c.level, p.Floor)
		}
		if c.level == 0 {
			c.look(ctx, e, p)
		}
		if c.level > tranca.LevelSubprocess && c.level >= p.Floor {
			all = append(all, c)
		}
	}
	if p.Runtime != "" {
		with := slices.DeleteFunc(slices.Clone(all), func(c candidate) bool {
			stated := statedLevel(c.backend)
			return stated != 0 && stated != tranca.LevelContainer
		})
		if len(with) > 0 {
			all = with
		}
	}
	return all
}

// next takes the weakest candidate out of the line, or returns nil where none is
// left. One that turns out to be stronger here than it said goes back
// in line; one that turns out to be too weak leaves it, but where the policy
// names its runtime: then that is worth telling.
func (l *line) next(ctx context.Context, e *Engine, p tranca.Policy) *candidate {
	for len(*l) > 0 {
		slices.SortStableFunc(*l, func(a, b candidate) int { return int(a.level) - int(b.level) })
		c := &(*l)[0]
		if !c.known {
			c.look(ctx, e, p)
			continue
		}
		*l = (*l)[1:]
		if c.err != nil || c.level > tranca.LevelSubprocess && (c.level >= p.Floor || p.Runtime != "") {
			return c
		}
	}
	return nil
}

// look finds the candidate's level on this host. One that can't be probed stays
// where it is: its refusal is worth telling, that of one that didn't even say
// its level last.
func (c *candidate) look(ctx context.Context, e *Engine, p tranca.Policy) {
	c.known = true
	c.report, c.err = e.probes.before(ctx, c.backend, p.Runtime)
	switch {
	case c.err == nil:
		c.level = c.report.Level
	case c.level == 0:
		c.level = tranca.LevelMicroVM
	}
}

// statedLevel returns the level that a backend says without a probe, or 0.
func statedLevel(b tranca.Backend) tranca.Level {
	if l, ok := tranca.As[interface{ Level() tranca.Level }](b); ok {
		return l.Level()
	}
	return 0
}
