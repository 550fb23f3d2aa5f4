package backends

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"tranca"
	"tranca/internal/backend"
	"tranca/internal/backend/fake"
	"tranca/internal/engine"
	"tranca/internal/policy"
)

// TestLadder shows that this build has every rung, weakest first, and that each
// says its level without being made.
func TestLadder(t *testing.T) {
	all, err := All(0)
	if err != nil {
		t.Fatal(err)
	}
	var got string
	for _, b := range all.All() {
		got += fmt.Sprintf("%s=%s ", b.Name(), backend.Level(b))
	}
	if want := "subprocess=subprocess process=process container=container gvisor=gvisor "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// standIns are fakes with the names and levels of this build's backends, some
// of which can't run.
func standIns(t *rapid.T) (all []tranca.Backend, broken map[string]bool) {
	real, err := All(0)
	if err != nil {
		t.Fatal(err)
	}
	broken = map[string]bool{}
	for _, b := range real.All() {
		name := b.Name()
		opt := fake.Options{Name: name, Level: backend.Level(b), Facts: map[string]string{}}
		if broken[name] = rapid.Bool().Draw(t, name+" is broken"); broken[name] {
			opt.ProbeErr = func() error { return fmt.Errorf("%w: not here", tranca.ErrUnavailable) }
		}
		if name == "container" {
			opt.Facts[tranca.FactRoots] = "image"
			runtimes := map[string]tranca.Level{"runc": tranca.LevelContainer, "runsc": tranca.LevelGVisor}
			all = append(all, fake.NewContainer(opt, runtimes, "runc"))
			continue
		}
		all = append(all, fake.New(opt))
	}
	return all, broken
}

// TestFloorsOfThisBuild shows, whichever of this build's backends can run, what
// is chosen by the default policy, by a lower floor, and by its being named.
func TestFloorsOfThisBuild(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fakes, broken := standIns(t)
		for _, c := range []struct {
			change func(*tranca.Policy)
			order  []string // what may run, the first first
		}{
			{func(*tranca.Policy) {}, []string{"gvisor"}},
			{func(p *tranca.Policy) { p.Floor = tranca.LevelProcess }, []string{"process", "gvisor"}},
			{func(p *tranca.Policy) { p.Floor = tranca.LevelSubprocess }, []string{"process", "gvisor"}},
			{func(p *tranca.Policy) { p.Floor, p.Runtime = tranca.LevelProcess, "runsc" }, nil}, // no host tree
			{func(p *tranca.Policy) { p.Floor = tranca.LevelMicroVM }, nil},
			{func(p *tranca.Policy) { p.Floor, p.Backend = tranca.LevelSubprocess, "subprocess" }, []string{"subprocess"}},
			{func(p *tranca.Policy) { p.Floor, p.Backend = tranca.LevelProcess, "process" }, []string{"process"}},
		} {
			p := policy.Default()
			c.change(&p)
			want := ""
			for _, name := range c.order {
				if !broken[name] {
					want = name
					break
				}
			}
			if got := chosen(t, fakes, p); got != want {
				t.Fatalf("floor %s, backend %q, broken %v: %q ran, want %q", p.Floor, p.Backend, broken, got, want)
			}
		}
	})
}

// chosen returns which backend runs, or "" where the run is refused.
func chosen(t *rapid.T, fakes []tranca.Backend, p tranca.Policy) string {
	all, err := backend.NewRegistry(fakes...)
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Config{Backends: all, Policy: p})
	if err != nil {
		t.Fatal(err)
	}
	res, err := e.Run(t.Context(), tranca.Request{Command: []string{"exit"}})
	if err != nil {
		return ""
	}
	if res.Isolation < p.Floor {
		t.Fatalf("%s ran below the floor %s", res.Backend, p.Floor)
	}
	return res.Backend
}
