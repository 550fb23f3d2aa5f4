package suite

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"tranca"
	"tranca/hostile"
	"tranca/hostile/attempt"
	"tranca/hostile/world"
)

// Target is a boundary, or none, that programs are run behind. Safe for
// concurrent use.
type Target interface {
	// Run runs the programs of a trial and returns when nothing of it should be
	// left. An error means that nothing is known of the program; one that wraps
	// [tranca.ErrRefused] or [tranca.ErrUnsupported] that the boundary refused
	// it.
	Run(ctx context.Context, t *Trial) (*Outcome, error)
	// View is how a program sees the world behind it.
	View() world.View
	// Cannot says why this target can't run a probe at all, or "".
	Cannot(p *hostile.Probe) string
}

// Trial is one probe's programs, to be run in one world.
type Trial struct {
	Probe *hostile.Probe
	// Twin says that the benign twin is run instead of the attempt.
	Twin  bool
	World *world.World
	// Attempt, Again, Next and Beside are the programs, with their placeholders
	// replaced. Those that there are not are nil.
	Attempt, Again, Next, Beside *attempt.Program
	Collect                      []hostile.Collect
	// Env is the policy's, replaced likewise.
	Env map[string]string
}

// Ran is what one program of a trial did.
type Ran struct {
	Lines []attempt.Line `json:"lines"`
	// Done says that it came to its end by itself.
	Done bool              `json:"done"`
	Exit tranca.Exit       `json:"exit"`
	Hits []tranca.LimitHit `json:"hits,omitempty"`
	// Printed are the bytes that came of both streams; Cut says that there were
	// more.
	Printed int64 `json:"printed"`
	Cut     bool  `json:"cut,omitempty"`
	WallMS  int64 `json:"wall_ms"`
	CPUMS   int64 `json:"cpu_ms"` // -1 where nobody counts
	// Began is when it was started, by the host's clock.
	Began time.Time `json:"began"`
}

// enoughTogether is for how long a neighbour has to run beside a program to tell
// how it fared.
const enoughTogether = 200 * time.Millisecond

// together is for how long two programs ran at the same time.
func (r *Ran) together(other *Ran) time.Duration {
	end := func(r *Ran) time.Time { return r.Began.Add(time.Duration(r.WallMS) * time.Millisecond) }
	from, to := r.Began, end(r)
	if other.Began.After(from) {
		from = other.Began
	}
	if e := end(other); e.Before(to) {
		to = e
	}
	return to.Sub(from)
}

// Collected is what came of reading a path through the file interface.
type Collected struct {
	Path string `json:"path"`
	Said string `json:"said"`
	// Brought says that something came.
	Brought bool `json:"brought,omitempty"`
	// Special says that what was read is no file.
	Special bool `json:"special,omitempty"`
}

func (c Collected) String() string { return c.Path + ": " + clip(c.Said) }

// Outcome is what became of a trial, as its target saw it.
type Outcome struct {
	Attempt Ran  `json:"attempt"`
	Again   *Ran `json:"again,omitempty"`
	Next    *Ran `json:"next,omitempty"`
	Beside  *Ran `json:"beside,omitempty"`
	// Seen is what came out, for the oracles.
	Seen world.Seen `json:"-"`
	// Trouble is what went wrong without hiding what the program did: a hang, a
	// sandbox that could not be destroyed.
	Trouble []string `json:"trouble,omitempty"`
	// Alive are processes of the sandbox that outlived what had to end them.
	Alive []string `json:"alive,omitempty"`
	// Collected says for each collected path what came of it.
	Collected []Collected `json:"collected,omitempty"`
	// Lost says why the file interface could not be asked at all.
	Lost string `json:"lost,omitempty"`
	// Unseen says why what is left of it is not known.
	Unseen string `json:"unseen,omitempty"`
}

// part is a program that runs after the attempt, or beside it.
type part struct {
	what  string
	steps []attempt.Step
	ran   *Ran // nil where it did not run
}

// after are the programs of a probe that follow the attempt.
func (o *Outcome) after(p *hostile.Probe) []part {
	return []part{{"second run", p.Again, o.Again}, {"next sandbox", p.Next, o.Next}}
}

// Observation is an outcome with what the host saw.
type Observation struct {
	Outcome
	Findings []world.Finding `json:"findings,omitempty"`
	// Refused says that the boundary refused to run it, with the reason.
	Refused string `json:"refused,omitempty"`
	// RefusedFor are the items for which it did.
	RefusedFor []tranca.Item `json:"refused_for,omitempty"`
	// Broken says why nothing is known.
	Broken string `json:"broken,omitempty"`
	// Lacks are the parts of the world that are not here.
	Lacks   []string `json:"lacks,omitempty"`
	Seconds float64  `json:"seconds"`
}

// Stage says where trials are made.
type Stage struct {
	// Stand says that this is the disposable place.
	Stand bool
	// Program is the static program's file on the host.
	Program string
}

// Try runs one trial of a probe against a target, in a world of its own.
func (s Stage) Try(ctx context.Context, p *hostile.Probe, twin bool, target Target) *Observation {
	began := time.Now()
	o := s.try(ctx, p, twin, target)
	o.Seconds = time.Since(began).Seconds()
	return o
}

func (s Stage) try(ctx context.Context, p *hostile.Probe, twin bool, target Target) *Observation {
	w, err := world.Open(world.Options{Stand: s.Stand, Uses: p.Text, Mounts: p.Policy.Mounts, Program: s.Program})
	if err != nil {
		return &Observation{Broken: "the world around it: " + err.Error()}
	}
	o := s.within(ctx, w, p, twin, target)
	if err := w.Close(); err != nil {
		o.Trouble = append(o.Trouble, "the world around it: "+err.Error())
	}
	return o
}

func (s Stage) within(ctx context.Context, w *world.World, p *hostile.Probe, twin bool, target Target) *Observation {
	t, err := newTrial(w, p, twin, target.View())
	if err != nil {
		return &Observation{Broken: err.Error()}
	}
	// What is left of them has nothing here that it could stand for.
	if lacks := hostile.Placeholders(t.text()); len(lacks) > 0 {
		for i := range lacks {
			lacks[i] = "{" + lacks[i] + "}"
		}
		return &Observation{Lacks: lacks}
	}
	outside := func() []world.Finding { return nil }
	if !twin && !p.Kernel {
		outside = w.WatchOutside(p.Guarantee, target.View())
	}
	out, err := target.Run(ctx, t)
	findings := outside()
	if p.Guarantee == tranca.ItemLifetime && !twin {
		findings = append(findings, w.StillWritten()...)
	}
	switch {
	case err != nil && refused(err):
		return &Observation{Refused: err.Error(), RefusedFor: refusedFor(err), Findings: w.Look(world.Seen{})}
	case err != nil:
		return &Observation{Broken: err.Error(), Findings: w.Look(world.Seen{})}
	}
	return &Observation{Outcome: *out, Findings: append(findings, w.Look(out.Seen)...)}
}

// newTrial replaces the placeholders of a probe's programs.
func newTrial(w *world.World, p *hostile.Probe, twin bool, view world.View) (*Trial, error) {
	t := &Trial{Probe: p, Twin: twin, World: w}
	fill := replacer(w.Vars(view), w.Mark)
	var err error
	program := func(steps []attempt.Step) *attempt.Program {
		if len(steps) == 0 || err != nil {
			return nil
		}
		var made *attempt.Program
		made, err = compose(steps, w.Mark, fill)
		return made
	}
	collect := p.Collect
	if twin {
		steps := p.Twin
		if len(collect) > 0 {
			steps, collect = collectable(steps, collect)
		}
		t.Attempt = program(steps)
	} else {
		t.Attempt, t.Again, t.Next = program(p.Attempt), program(p.Again), program(p.Next)
	}
	t.Beside = program(p.Beside)
	for _, c := range collect {
		c.Path = fill.Replace(c.Path)
		t.Collect = append(t.Collect, c)
	}
	t.Env = map[string]string{}
	for name, value := range p.Policy.Env {
		t.Env[name] = fill.Replace(value)
	}
	return t, err
}

// collectable is a twin that also makes a file, and what is to be collected of
// it: who reads nothing of a benign program can't be fooled by a hostile one.
func collectable(twin []attempt.Step, hostiles []hostile.Collect) ([]attempt.Step, []hostile.Collect) {
	const file = "{space}/collected"
	steps := append(slices.Clone(twin), attempt.Step{Do: "write", Path: file, Data: "benign", Setup: true})
	collect := []hostile.Collect{{Path: file}}
	if slices.ContainsFunc(hostiles, func(c hostile.Collect) bool { return c.List }) {
		collect = append(collect, hostile.Collect{Path: "{space}", List: true})
	}
	return steps, collect
}

// compose makes a program of steps.
func compose(steps []attempt.Step, mark string, fill *strings.Replacer) (*attempt.Program, error) {
	text, err := json.Marshal(steps)
	if err != nil {
		return nil, err
	}
	p := &attempt.Program{Mark: mark}
	if err := json.Unmarshal([]byte(fill.Replace(string(text))), &p.Steps); err != nil {
		return nil, fmt.Errorf("placeholders: %w", err)
	}
	p.Calls, err = attempt.Calls(p.Steps)
	return p, err
}

// replacer replaces placeholders within JSON. Their values hold nothing that
// JSON writes in another way.
func replacer(vars map[string]string, mark string) *strings.Replacer {
	var pairs []string
	for name, value := range vars {
		pairs = append(pairs, "{"+name+"}", strings.ReplaceAll(value, "{mark}", mark))
	}
	return strings.NewReplacer(pairs...)
}

// text is all that is left of placeholders, if any is.
func (t *Trial) text() string {
	var b strings.Builder
	for _, p := range []*attempt.Program{t.Attempt, t.Again, t.Next, t.Beside} {
		if p != nil {
			for _, s := range p.Steps {
				b.WriteString(words(s))
			}
		}
	}
	for _, c := range t.Collect {
		b.WriteString(c.Path)
	}
	for _, v := range t.Env {
		b.WriteString(v)
	}
	return b.String()
}

// words are the texts of a step in which placeholders stand.
func words(s attempt.Step) string {
	all := append([]string{s.Path, s.To, s.Data, s.Address, s.Name, s.PID, s.Key}, s.Args...)
	for _, text := range []*string{s.Equals, s.Differs, s.Contains} {
		if text != nil {
			all = append(all, *text)
		}
	}
	for _, inner := range s.Steps {
		all = append(all, words(inner))
	}
	return strings.Join(all, " ")
}

// Policy returns the policy under which a trial runs.
func (t *Trial) Policy(base tranca.Policy) (tranca.Policy, error) {
	p, err := t.Probe.Policy.Apply(base, t.World.Mounts())
	p.Env = t.Env
	return p, err
}
