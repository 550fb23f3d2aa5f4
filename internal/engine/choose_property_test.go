package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tranca"
	"tranca/internal/backend"
	"tranca/internal/backend/fake"
	"tranca/internal/engine"
	"tranca/internal/policy"
)

// host is a generated host: what a probe of each backend finds.
type host struct {
	backends []tranca.Backend
	// finds maps a backend and a runtime to what is found; a missing entry is
	// a backend, or a runtime of it, that can't be had.
	finds map[string]map[string]tranca.Report
	// stated is the level that a backend says without a probe, 0 for none.
	stated map[string]tranca.Level
}

var errNotHere = fmt.Errorf("%w: this host lacks the part", tranca.ErrUnavailable)

// anyHost draws some of the backends that a host may have, each missing
// something or all.
func anyHost(t *rapid.T) host {
	h := host{finds: map[string]map[string]tranca.Report{}, stated: map[string]tranca.Level{}}
	for _, kind := range []struct {
		name  string
		level tranca.Level
	}{
		{"subprocess", tranca.LevelSubprocess}, {"process", tranca.LevelProcess}, {"container", tranca.LevelContainer},
		{"gvisor", tranca.LevelGVisor}, {"microvm", tranca.LevelMicroVM}, {"foreign", 0},
	} {
		if rapid.IntRange(0, 3).Draw(t, kind.name+" is linked") > 0 {
			h.add(t, kind.name, kind.level)
		}
	}
	if len(h.backends) == 0 {
		h.add(t, "subprocess", tranca.LevelSubprocess)
	}
	return h
}

func (h *host) add(t *rapid.T, name string, stated tranca.Level) {
	opt := fake.Options{
		Name: name, Level: stated, Facts: map[string]string{},
		Missing: rapid.SliceOfN(rapid.SampledFrom(tranca.Items()), 0, 2).Draw(t, name+" misses"),
	}
	if rapid.IntRange(0, 4).Draw(t, name+" is broken") == 0 {
		opt.ProbeErr = func() error { return errNotHere }
	}
	if roots := rapid.SampledFrom([]string{"", "host", "image", "host, image"}).Draw(t, name+" shows"); roots != "" {
		opt.Facts[tranca.FactRoots] = roots
	}
	if rapid.IntRange(0, 3).Draw(t, name+" has a hole") == 0 {
		hole := tranca.Advisory{ID: "CVE-2024-21626", Component: "runc", Version: "1.1.5", FixedIn: "1.1.12"}
		hole.Patched = rapid.SampledFrom([]string{"", "changelog"}).Draw(t, name+" is patched")
		opt.Advisories = []tranca.Advisory{hole}
	}
	h.stated[name] = stated
	h.finds[name] = map[string]tranca.Report{}
	var b tranca.Backend
	switch name {
	case "container":
		levels := map[string]tranca.Level{}
		for _, r := range []string{"runc", "runsc", "kata"} {
			if rapid.Bool().Draw(t, "there is "+r) {
				levels[r] = rapid.SampledFrom([]tranca.Level{tranca.LevelContainer, tranca.LevelGVisor, tranca.LevelMicroVM}).Draw(t, "level of "+r)
			}
		}
		c := fake.NewContainer(opt, levels, rapid.SampledFrom([]string{"runc", "runsc"}).Draw(t, "standard runtime"))
		b = c
		for r := range levels {
			if report, err := c.ProbeRuntime(t.Context(), r); err == nil {
				h.finds[name][r] = report
			}
		}
	case "foreign":
		opt.Level = rapid.SampledFrom(tranca.Levels()).Draw(t, "foreign level")
		b = silent{fake.New(opt)}
	default:
		b = fake.New(opt)
	}
	if report, err := b.Probe(t.Context()); err == nil {
		h.finds[name][""] = report
	}
	h.backends = append(h.backends, b)
}

// usable is the oracle: the reports of this host under which the policy may
// run, by name. It knows policy.Check and nothing of how the engine chooses.
func (h *host) usable(p tranca.Policy) map[string]tranca.Level {
	all := map[string]tranca.Level{}
	for name, finds := range h.finds {
		r, there := finds[p.Runtime]
		if !there && name != "container" {
			r, there = finds[""]
		}
		if !there {
			continue
		}
		r.Backend = name
		for _, item := range []tranca.Item{tranca.ItemWall, tranca.ItemOutput} { // the engine holds those itself
			r.Guarantees = slices.DeleteFunc(slices.Clone(r.Guarantees), func(g tranca.Guarantee) bool { return g.Item == item })
			r.Guarantees = append(r.Guarantees, tranca.Guarantee{Item: item, Held: true, Mechanism: "engine"})
		}
		if len(policy.Check(p, r)) == 0 && (r.Level > tranca.LevelSubprocess || p.Backend == name) {
			all[name] = r.Level
		}
	}
	return all
}

func anyPolicy(t *rapid.T) tranca.Policy {
	p := policy.Default()
	p.Floor = rapid.SampledFrom(tranca.Levels()).Draw(t, "floor")
	p.Backend = rapid.SampledFrom([]string{"", "", "", "process", "container", "gvisor", "microvm", "foreign", "none"}).Draw(t, "backend")
	if p.Floor == tranca.LevelSubprocess && rapid.Bool().Draw(t, "subprocess") {
		p.Backend = "subprocess"
	}
	for name, level := range map[string]tranca.Level{"process": tranca.LevelProcess, "gvisor": tranca.LevelGVisor} {
		if p.Backend == name {
			p.Floor = min(p.Floor, level) // more is no policy
		}
	}
	p.Image = rapid.SampledFrom([]string{"host", "host", "code:1"}).Draw(t, "image")
	p.Runtime = rapid.SampledFrom([]string{"", "", "", "runc", "runsc", "kata"}).Draw(t, "runtime")
	p.KnownVulnerabilities = rapid.SampledFrom([]tranca.Vulnerabilities{"warn", "refuse"}).Draw(t, "holes")
	p.Waive = slices.Compact(slices.Sorted(slices.Values(
		rapid.SliceOfN(rapid.SampledFrom(tranca.Waivable()), 0, 3).Draw(t, "waive"))))
	return p
}

func anyRequest(t *rapid.T) tranca.Request {
	return tranca.Request{Command: []string{"exit"}, Narrow: tranca.Narrowing{
		Floor:   rapid.SampledFrom(append([]tranca.Level{0, 0, 0}, tranca.Levels()...)).Draw(t, "narrowed floor"),
		Backend: rapid.SampledFrom([]string{"", "", "", "process", "container", "gvisor", "foreign", "subprocess"}).Draw(t, "narrowed backend"),
		Memory:  rapid.SampledFrom([]int64{0, 0, 64 << 20, 512 << 20}).Draw(t, "narrowed memory"),
	}}
}

// TestFloors: over generated hosts, policies and requests, nothing ever runs
// below the floor or against what Check says, what runs is the cheapest that is
// usable or the one that is named, the choice is the same each time, and a
// refusal names what was missing and offers only what works.
func TestFloors(t *testing.T) {
	ran, refusals, offered := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		h, p, req := anyHost(t), anyPolicy(t), anyRequest(t)
		e := openFor(t, h, p)
		in, problems := policy.Narrow(p, req.Narrow)
		res, err := e.Run(t.Context(), req)
		again, errAgain := openFor(t, h, p).Run(t.Context(), req)
		if fmt.Sprint(err) != fmt.Sprint(errAgain) || (err == nil && res.Backend != again.Backend) {
			t.Fatalf("two choices: %v, %v", err, errAgain)
		}
		usable := h.usable(in)
		if err != nil {
			refusals++
			if len(problems) == 0 && len(usable) > 0 {
				t.Fatalf("refused (%v), but %v are usable", err, usable)
			}
			offered += checkRefusal(t, &h, in, err, len(problems) > 0)
			return
		}
		ran++
		level, right := usable[res.Backend]
		switch {
		case len(problems) > 0:
			t.Fatalf("it ran, but the request asked for more: %v", problems)
		case !right:
			t.Fatalf("%s ran; usable are %v", res.Backend, usable)
		case res.Isolation != level || level < in.Floor || level < p.Floor:
			t.Fatalf("%s ran as %s, found %s, floor %s", res.Backend, res.Isolation, level, in.Floor)
		case in.Backend != "" && res.Backend != in.Backend:
			t.Fatalf("%s ran, %s is named", res.Backend, in.Backend)
		}
		for name, other := range usable {
			if other < level && in.Backend == "" {
				t.Fatalf("%s (%s) ran, %s (%s) is cheaper", res.Backend, level, name, other)
			}
		}
	})
	if ran == 0 || refusals == 0 || offered == 0 {
		t.Errorf("%d ran, %d were refused with %d offers: the generator shows nothing", ran, refusals, offered)
	}
}

func openFor(t *rapid.T, h host, p tranca.Policy) *engine.Engine {
	all, err := backend.NewRegistry(h.backends...)
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Config{Backends: all, Policy: p, Images: &images{}})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// checkRefusal checks what a refusal says, and takes each offer to see that it
// works. It returns how many there were.
func checkRefusal(t *rapid.T, h *host, p tranca.Policy, err error, narrowed bool) int {
	var r *tranca.RefusalError
	if !errors.As(err, &r) || !errors.Is(err, tranca.ErrRefused) {
		t.Fatalf("no refusal: %v", err)
	}
	if len(r.Problems) == 0 {
		t.Fatal("it names nothing")
	}
	for _, problem := range r.Problems {
		if problem.Item == "" || problem.Missing == "" || (problem.Asked == "" && !r.Unavailable) {
			t.Fatalf("it doesn't say what is missing: %+v", problem)
		}
	}
	if narrowed {
		return 0
	}
	for _, offer := range r.Weaker {
		q := p.Clone()
		for words := strings.Fields(offer.Choice); len(words) > 0; words = words[2:] {
			switch words[0] {
			case "--waive":
				q.Waive = append(q.Waive, tranca.Item(words[1]))
			case "--isolation":
				q.Floor, _ = tranca.ParseLevel(words[1])
			case "--backend":
				q.Backend, q.Floor = words[1], tranca.LevelSubprocess // the name is the consent
			default:
				t.Fatalf("offer %q", offer.Choice)
			}
		}
		if len(h.usable(q)) == 0 {
			t.Fatalf("the offer %q does not work: policy %+v", offer.Choice, q)
		}
	}
	lower := p.Clone()
	lower.Floor = tranca.LevelProcess
	if p.Backend == "" && len(h.usable(lower)) > 0 && len(r.Weaker) == 0 {
		t.Fatalf("%v would do with a lower floor, and nothing is offered", h.usable(lower))
	}
	return len(r.Weaker)
}
