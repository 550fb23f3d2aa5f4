package advise

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tranca"
	"tranca/internal/policy"
)

// Candidate is a backend as doctor found it on this host.
type Candidate struct {
	Backend string
	Level   tranca.Level
	Report  tranca.Report
	// Err says why it can't run here at all.
	Err error
}

// names are those by which results call the candidate, best first.
func (c *Candidate) names() []string {
	all := []string{c.Backend}
	if runtime := c.Report.Facts[tranca.FactRuntime]; runtime != "" {
		all = append([]string{c.Backend + ":" + runtime, c.Backend + " (" + runtime + ")"}, all...)
	}
	return all
}

// Rejected is a backend that is not recommended.
type Rejected struct {
	Backend string       `json:"backend"`
	Level   tranca.Level `json:"level"`
	Why     []string     `json:"why"`
	// Mends make it available; there may be none.
	Mends []string `json:"mends"`
	// Broken are the hostile probes that got through in something promised.
	Broken []string `json:"broken,omitempty"`
}

// judge says why a backend is not recommended for a policy; nil where it may be.
func judge(c *Candidate, p tranca.Policy, e *Evidence) *Rejected {
	r := Rejected{Backend: c.Backend, Level: c.Level, Mends: []string{}, Broken: e.broken(c)}
	if len(r.Broken) > 0 {
		r.Why = append(r.Why, fmt.Sprintf("hostile programs of the run of %s got through in what it promises: %s",
			day(e.Hostile.When), strings.Join(r.Broken, ", ")))
	}
	switch {
	case c.Level <= tranca.LevelSubprocess:
		r.Why = append(r.Why, "it hides no files, and is only ever named")
		return &r
	case c.Err != nil:
		r.unusable(c.Err)
		return &r
	}
	p.Backend = c.Backend
	for _, problem := range policy.Check(p, c.Report) {
		r.Why = append(r.Why, string(problem.Item)+": "+problem.Missing)
		r.mend(problem.Mend)
	}
	if r.Why == nil {
		return nil
	}
	return &r
}

func (r *Rejected) unusable(err error) {
	var refusal *tranca.RefusalError
	if !errors.As(err, &refusal) {
		r.Why = append(r.Why, "it can't be used here: "+err.Error())
		return
	}
	for _, problem := range refusal.Problems {
		r.Why = append(r.Why, "it can't be used here: "+problem.Missing)
		r.mend(problem.Mend)
	}
}

func (r *Rejected) mend(text string) {
	if text != "" && !slices.Contains(r.Mends, text) {
		r.Mends = append(r.Mends, text)
	}
}

// choose takes the weakest of those that reach the aim, else the strongest that
// reaches the floor; of two at one level the faster, as far as it was measured.
// nil: nothing that may be recommended reaches the floor.
func choose(n Need, eligible []*Candidate, e *Evidence) *Candidate {
	sorted := slices.Clone(eligible)
	slices.SortStableFunc(sorted, func(a, b *Candidate) int {
		if a.Level != b.Level {
			return cmp.Compare(a.Level, b.Level)
		}
		left, _ := e.cost(a)
		right, _ := e.cost(b)
		if left.FirstByteMS == 0 || right.FirstByteMS == 0 {
			return 0
		}
		return cmp.Compare(left.FirstByteMS, right.FirstByteMS)
	})
	for _, c := range sorted {
		if c.Level >= n.Aim {
			return c
		}
	}
	var best *Candidate
	for _, c := range sorted {
		if c.Level >= n.Floor && (best == nil || c.Level > best.Level) {
			best = c
		}
	}
	return best
}
