package advise

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tranca"
	"tranca/internal/hostcheck"
	"tranca/internal/policy"
)

// Schema is the version of an advice's JSON form.
const Schema = "tranca.advice/1"

// Input is what an advice is made from.
type Input struct {
	Answers    Answers
	Candidates []Candidate
	Checks     []hostcheck.Result
	Evidence   Evidence
}

// Advice is what is recommended, and why. Its JSON form is described in
// docs/ADVISE.md; lists are never null.
type Advice struct {
	Schema  string  `json:"schema"`
	Answers Answers `json:"answers"`
	// Floor is what the answers need, Aim what is taken where the host can.
	Floor tranca.Level `json:"floor"`
	Aim   tranca.Level `json:"aim"`
	// Recommended is the backend, or nil where nothing that this host can run may
	// be recommended.
	Recommended *Chosen `json:"recommended"`
	// Reasons say where each comes from: rules, doctor, hostile, bench.
	Reasons []Reason `json:"reasons"`
	// NotProtected is what the recommended backend does not protect from.
	NotProtected []string `json:"not_protected_from"`
	// Demands are latency, rate and memory, as far as they were asked for.
	Demands []Demand `json:"demands"`
	// Policy is a policy file; empty without a recommendation.
	Policy string `json:"policy"`
	// Next is the next rung up; nil where there is none.
	Next *Next `json:"next"`
	// Rejected are the other backends, with what makes them available.
	Rejected []Rejected `json:"rejected"`
	// Notes are about the evidence, and about what tranca does not offer.
	Notes []string `json:"notes"`
}

// Chosen is the backend that is recommended.
type Chosen struct {
	Backend string       `json:"backend"`
	Level   tranca.Level `json:"level"`
	// Cost is nil where nothing was measured here.
	Cost *Cost `json:"cost"`
	// Price says it in words.
	Price string `json:"price"`
	// Hostile is nil where the hostile suite was not run against it here.
	Hostile *Held `json:"hostile"`
}

// Reason is one sentence and where it comes from.
type Reason struct {
	From string `json:"from"`
	Text string `json:"text"`
}

// Met says whether a demand is met.
type Met string

// Whether a demand is met.
const (
	Yes     Met = "yes"
	No      Met = "no"
	Unknown Met = "unknown"
)

// Demand is one that was asked for.
type Demand struct {
	Name  string `json:"name"`
	Asked string `json:"asked"`
	Has   string `json:"has"`
	Met   Met    `json:"met"`
	// Mend is what helps where it is not met.
	Mend string `json:"mend,omitempty"`
}

// Next is the next rung up.
type Next struct {
	Level   tranca.Level `json:"level"`
	Backend string       `json:"backend,omitempty"`
	Usable  bool         `json:"usable"`
	Price   string       `json:"price"`
	// Why and Mends are those of a rung that can't be had here now.
	Why   []string `json:"why"`
	Mends []string `json:"mends"`
}

const notMeasured = "not measured here: run `tranca bench --quick`"

// Build makes the advice. Answers have to be complete; see [Collect]. An error
// is a fault of this program.
func Build(in Input) (*Advice, error) {
	need := needOf(&in.Answers)
	a := &Advice{
		Schema: Schema, Answers: in.Answers, Floor: need.Floor, Aim: need.Aim,
		Reasons: []Reason{}, NotProtected: []string{}, Demands: []Demand{}, Rejected: []Rejected{}, Notes: []string{},
	}
	a.Notes = append(a.Notes, in.Evidence.Notes...)
	for _, why := range need.Why {
		a.because("rules", why)
	}
	asked := policyFor(in.Answers, need)
	var eligible []*Candidate
	for i := range in.Candidates {
		c := &in.Candidates[i]
		if r := judge(c, asked, &in.Evidence); r != nil {
			a.Rejected = append(a.Rejected, *r)
			continue
		}
		eligible = append(eligible, c)
	}
	if in.Answers.Network == "some" {
		a.Notes = append(a.Notes, "tranca gives code no network yet: fetch what it needs beforehand and hand it in by a mount, an image or the file calls")
	}
	best := choose(need, eligible, &in.Evidence)
	if best == nil {
		a.because("doctor", fmt.Sprintf("nothing that this host can run, and that held what it promises, reaches the floor %s; nothing weaker is recommended", need.Floor))
		a.next(&in, eligible, need.Floor-1)
		return a, nil
	}
	a.recommend(&in, best, need)
	a.next(&in, eligible, best.Level)
	return a, a.write(asked, best, &in.Evidence)
}

func (a *Advice) because(from, text string) { a.Reasons = append(a.Reasons, Reason{from, text}) }

// recommend says what is recommended and why.
func (a *Advice) recommend(in *Input, c *Candidate, need Need) {
	chosen := &Chosen{Backend: c.Backend, Level: c.Level, Price: notMeasured}
	held, required := 0, policy.Required(c.Level)
	for _, item := range required {
		if c.Report.Holds(item) {
			held++
		}
	}
	a.because("doctor", fmt.Sprintf("%s is usable here, with %d of %d guarantees, found by a trial sandbox", c.Backend, held, len(required)))
	if need.Aim > c.Level {
		a.because("doctor", fmt.Sprintf("%s would be better, and this host can't run it; %s still meets the floor %s", need.Aim, c.Backend, need.Floor))
	}
	if h, ok := in.Evidence.held(c); ok {
		chosen.Hostile = &h
		text := fmt.Sprintf("hostile programs against %s on %s: %s; none got through in what it promises", c.Backend, day(in.Evidence.Hostile.When), h)
		if in.Evidence.Hostile.Partial {
			text += "; not all were run"
		}
		a.because("hostile", text)
	} else {
		a.because("hostile", "no hostile programs were run against "+c.Backend+" here: run `tranca hostile`")
	}
	cost, ok := in.Evidence.cost(c)
	if ok {
		chosen.Cost, chosen.Price = &cost, cost.String()+", measured on "+day(in.Evidence.Bench.When)
	}
	a.because("bench", chosen.Price)
	a.Recommended = chosen
	a.NotProtected = append(a.NotProtected, gapsOf(c.Level)...)
	a.hostGaps(in.Checks, c.Level)
	a.demands(in.Answers, cost, ok, c)
}

// hostGaps adds what doctor saw of this very host.
func (a *Advice) hostGaps(checks []hostcheck.Result, level tranca.Level) {
	for _, g := range []struct {
		groups []string
		below  tranca.Level
		text   string
	}{
		{[]string{"processor and memory"}, tranca.LevelMicroVM + 1, "of this host's processor and memory, doctor finds in the way of such channels too little: "},
		{[]string{"kernel", "files"}, tranca.LevelGVisor, "of this host's kernel, what stands open to code whose filter would fail: "},
	} {
		if level >= g.below {
			continue
		}
		var ids []string
		for _, c := range checks {
			if slices.Contains(g.groups, c.Group) && (c.Result == hostcheck.Open || c.Result == hostcheck.Weak) {
				ids = append(ids, c.ID)
			}
		}
		if ids != nil {
			a.NotProtected = append(a.NotProtected, g.text+strings.Join(ids, ", "))
		}
	}
}

// demands holds what was asked for against what was measured.
func (a *Advice) demands(asked Answers, cost Cost, measured bool, c *Candidate) {
	add := func(name, want, has string, known, met bool, mend string) {
		d := Demand{Name: name, Asked: want, Has: has, Met: Unknown}
		switch {
		case !measured || !known:
			d.Has, d.Mend = notMeasured, "tranca bench --quick"
		case met:
			d.Met = Yes
		default:
			d.Met, d.Mend = No, mend
		}
		a.Demands = append(a.Demands, d)
	}
	if asked.Latency > 0 {
		mend := "keep one sandbox for many runs (tranca create, tranca exec)"
		if c.Level == tranca.LevelProcess {
			mend += ", or sandboxes booted ahead (tranca serve --ready)"
		}
		add("latency", policy.FormatDuration(asked.Latency), figure(cost.FirstByteMS)+" ms", cost.FirstByteMS > 0, cost.FirstByteMS <= asked.LatencyMS, mend)
	}
	if asked.Rate > 0 {
		add("rate", figure(asked.Rate)+" a second", figure(cost.PerSecond)+" a second", cost.PerSecond > 0, cost.PerSecond >= asked.Rate,
			"more CPUs or hosts, or keep one sandbox for many runs (tranca create, tranca exec)")
	}
	if asked.Memory > 0 {
		idle := int64(cost.IdleMiB * (1 << 20))
		add("memory", policy.FormatSize(asked.Memory), figure(cost.IdleMiB)+" MiB idle, the rest is the code's", cost.IdleMiB > 0, idle+leastMemory <= asked.Memory,
			fmt.Sprintf("give it %.0f MiB or more", math.Ceil(cost.IdleMiB+leastMemory>>20)))
	}
}

// next says what the next rung up is, and its price.
func (a *Advice) next(in *Input, eligible []*Candidate, above tranca.Level) {
	var up *Candidate
	for i := range in.Candidates {
		if c := &in.Candidates[i]; c.Level > above && (up == nil || c.Level < up.Level) {
			up = c
		}
	}
	if up == nil {
		if above < tranca.LevelMicroVM {
			a.Next = &Next{
				Level: tranca.LevelMicroVM, Price: "not measured here", Why: []string{"this build of tranca has no backend of that level"}, Mends: []string{},
			}
		}
		return
	}
	n := &Next{Level: up.Level, Backend: up.Backend, Usable: slices.Contains(eligible, up), Price: notMeasured, Why: []string{}, Mends: []string{}}
	if cost, ok := in.Evidence.cost(up); ok {
		n.Price = cost.String() + ", measured on " + day(in.Evidence.Bench.When)
		if a.Recommended != nil && a.Recommended.Cost != nil && a.Recommended.Cost.FirstByteMS > 0 && cost.FirstByteMS > 0 {
			n.Price += fmt.Sprintf("; %sx of %s", figure(cost.FirstByteMS/a.Recommended.Cost.FirstByteMS), a.Recommended.Backend)
		}
	}
	for _, r := range a.Rejected {
		if r.Backend == up.Backend {
			n.Why, n.Mends = append(n.Why, r.Why...), append(n.Mends, r.Mends...)
		}
	}
	a.Next = n
}
