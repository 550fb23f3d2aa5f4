package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"tranca"
	"tranca/internal/backend/fake"
	"tranca/internal/engine"
	"tranca/internal/policy"
)

// silent hides a backend's level, as one from outside the module may.
type silent struct{ tranca.Backend }

func open(t *testing.T, p tranca.Policy, backends ...tranca.Backend) *engine.Engine {
	t.Helper()
	e, err := engine.New(engine.Config{Backends: registry(t, backends...), Policy: p})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

func level(name string, l tranca.Level, missing ...tranca.Item) *fake.Backend {
	return fake.New(fake.Options{Name: name, Level: l, Missing: missing})
}

func TestChoice(t *testing.T) {
	for name, tc := range map[string]struct {
		backends []tranca.Backend
		change   func(*tranca.Policy)
		want     string
	}{
		"the weakest at the floor": {
			[]tranca.Backend{level("vm", tranca.LevelMicroVM), level("proc", tranca.LevelProcess), level("con", tranca.LevelContainer)}, nil, "proc",
		},
		"above the floor": {
			[]tranca.Backend{level("proc", tranca.LevelProcess), level("con", tranca.LevelContainer), level("vm", tranca.LevelMicroVM)},
			func(p *tranca.Policy) { p.Floor = tranca.LevelGVisor }, "vm",
		},
		"the next one where an item is missing": {
			[]tranca.Backend{level("proc", tranca.LevelProcess, tranca.ItemSyscalls), level("con", tranca.LevelContainer)}, nil, "con",
		},
		"waived": {
			[]tranca.Backend{level("proc", tranca.LevelProcess, tranca.ItemMemory), level("con", tranca.LevelContainer)},
			func(p *tranca.Policy) { p.Waive = []tranca.Item{tranca.ItemMemory} }, "proc",
		},
		"by name": {
			[]tranca.Backend{level("proc", tranca.LevelProcess), level("con", tranca.LevelContainer)},
			func(p *tranca.Policy) { p.Backend = "con" }, "con",
		},
		"one that doesn't say its level": {
			[]tranca.Backend{silent{level("proc", tranca.LevelProcess)}, level("con", tranca.LevelContainer)}, nil, "proc",
		},
		"subprocess by name": {
			[]tranca.Backend{level("subprocess", tranca.LevelSubprocess), level("proc", tranca.LevelProcess)},
			func(p *tranca.Policy) { p.Backend, p.Floor = "subprocess", tranca.LevelSubprocess }, "subprocess",
		},
		"never subprocess": {
			[]tranca.Backend{level("subprocess", tranca.LevelSubprocess), level("con", tranca.LevelContainer)},
			func(p *tranca.Policy) { p.Floor = tranca.LevelSubprocess }, "con",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := policy.Default()
			p.Floor = tranca.LevelProcess
			if tc.change != nil {
				tc.change(&p)
			}
			e := open(t, p, tc.backends...)
			for range 3 {
				res, err := e.Run(t.Context(), tranca.Request{Command: []string{"exit"}})
				if err != nil || res.Backend != tc.want {
					t.Fatalf("%+v, %v; want %s", res, err, tc.want)
				}
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	broken := fake.New(fake.Options{Name: "proc", ProbeErr: func() error {
		return fmt.Errorf("%w: no user namespaces", tranca.ErrUnavailable)
	}})
	sub := level("subprocess", tranca.LevelSubprocess)
	for name, tc := range map[string]struct {
		backends    []tranca.Backend
		change      func(*tranca.Policy)
		item        tranca.Item
		missing     string
		weaker      []string
		unavailable bool
	}{
		"only subprocess": {
			[]tranca.Backend{sub}, nil, tranca.ItemIsolation, "no backend here reaches it (there is: subprocess)",
			[]string{"--backend subprocess"}, false,
		},
		"unavailable": {
			[]tranca.Backend{broken, sub}, nil, tranca.ItemIsolation, "no user namespaces", []string{"--backend subprocess"}, true,
		},
		"one that is there and lacks something before one that isn't there": {
			[]tranca.Backend{broken, level("con", tranca.LevelContainer, tranca.ItemMemory)}, nil,
			tranca.ItemMemory, "the fake leaves it out", []string{"--waive limits.memory"}, false,
		},
		"no weaker one that is usable": {
			[]tranca.Backend{broken, level("subprocess", tranca.LevelSubprocess, tranca.ItemNetwork)},
			nil, tranca.ItemIsolation, "no user namespaces", nil, true,
		},
		"waivable": {
			[]tranca.Backend{level("proc", tranca.LevelProcess, tranca.ItemMemory, tranca.ItemPIDs)}, nil,
			tranca.ItemMemory, "the fake leaves it out", []string{"--waive limits.memory --waive limits.processes"}, false,
		},
		"not waivable": {
			[]tranca.Backend{level("proc", tranca.LevelProcess, tranca.ItemNetwork)}, nil,
			tranca.ItemNetwork, "the fake leaves it out", nil, false,
		},
		"a name that is not there": {
			[]tranca.Backend{sub, level("proc", tranca.LevelProcess)}, func(p *tranca.Policy) { p.Backend = "vm" },
			tranca.ItemIsolation, "there is no such backend here (there is: subprocess, proc)", nil, true,
		},
		"a name below the floor": {
			[]tranca.Backend{level("low", tranca.LevelProcess), level("con", tranca.LevelContainer)},
			func(p *tranca.Policy) { p.Backend, p.Floor = "low", tranca.LevelContainer },
			tranca.ItemIsolation, "below the floor", []string{"--backend con", "--isolation process"}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := policy.Default()
			p.Floor = tranca.LevelProcess
			if tc.change != nil {
				tc.change(&p)
			}
			_, err := open(t, p, tc.backends...).Run(t.Context(), tranca.Request{Command: []string{"exit"}})
			var refused *tranca.RefusalError
			if !errors.As(err, &refused) {
				t.Fatal(err)
			}
			if len(refused.Problems) == 0 || refused.Problems[0].Item != tc.item || !strings.Contains(refused.Problems[0].Missing, tc.missing) {
				t.Errorf("problems %+v", refused.Problems)
			}
			var weaker []string
			for _, w := range refused.Weaker {
				weaker = append(weaker, w.Choice)
				if w.GivesUp == "" {
					t.Errorf("%s gives up nothing", w.Choice)
				}
			}
			if strings.Join(weaker, ";") != strings.Join(tc.weaker, ";") {
				t.Errorf("weaker %q, want %q", weaker, tc.weaker)
			}
			if refused.Unavailable != tc.unavailable {
				t.Errorf("unavailable %t", refused.Unavailable)
			}
		})
	}
}

// TestKnownHoles: a hole that is open is named in each result, or refused; one
// that is patched is neither.
func TestKnownHoles(t *testing.T) {
	hole := tranca.Advisory{ID: "CVE-2024-21626", Component: "runc", Version: "1.1.5", FixedIn: "1.1.12"}
	second, patched := hole, hole
	second.ID, patched.ID, patched.Patched = "CVE-2025-31133", "CVE-2023-27561", "changelog"
	for name, tc := range map[string]struct {
		holes   []tranca.Advisory
		policy  tranca.Vulnerabilities
		notes   int
		refused bool
	}{
		"two of one part":  {[]tranca.Advisory{patched, hole, second}, tranca.VulnerabilitiesWarn, 1, false},
		"open":             {[]tranca.Advisory{hole}, tranca.VulnerabilitiesWarn, 1, false},
		"open, refused":    {[]tranca.Advisory{hole}, tranca.VulnerabilitiesRefuse, 0, true},
		"patched":          {[]tranca.Advisory{patched}, tranca.VulnerabilitiesWarn, 0, false},
		"patched, refused": {[]tranca.Advisory{patched}, tranca.VulnerabilitiesRefuse, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := policy.Default()
			p.KnownVulnerabilities = tc.policy
			e := open(t, p, fake.New(fake.Options{Level: tranca.LevelGVisor, Advisories: tc.holes}))
			for range 2 {
				res, err := e.Run(t.Context(), tranca.Request{Command: []string{"exit"}})
				if errors.Is(err, tranca.ErrRefused) != tc.refused {
					t.Fatal(err)
				}
				if err == nil && len(res.Notes) != tc.notes {
					t.Errorf("notes %q", res.Notes)
				}
				for _, h := range tc.holes {
					if tc.notes > 0 && (!strings.HasPrefix(res.Notes[0], "runc 1.1.5 has known holes: ") || strings.Contains(res.Notes[0], h.ID) != (h.Patched == "")) {
						t.Errorf("notes %q", res.Notes)
					}
				}
				if tc.refused && !strings.Contains(err.Error(), tc.holes[0].ID) {
					t.Error(err)
				}
			}
		})
	}
}

// TestRuntimes: a runtime decides the level, and one that is named is the one
// that is judged.
func TestRuntimes(t *testing.T) {
	for name, tc := range map[string]struct {
		floor   tranca.Level
		runtime string
		want    string
		level   tranca.Level
		missing string
	}{
		"none named":      {tranca.LevelContainer, "", "container", tranca.LevelContainer, ""},
		"above the floor": {tranca.LevelContainer, "runsc", "container", tranca.LevelGVisor, ""},
		"at the floor":    {tranca.LevelGVisor, "runsc", "container", tranca.LevelGVisor, ""},
		"below the floor": {tranca.LevelGVisor, "runc", "", 0, "backend container gives container, which is below the floor"},
		"standard is too": {tranca.LevelGVisor, "", "vm", tranca.LevelMicroVM, ""},
		"not there":       {tranca.LevelProcess, "kata", "", 0, "the engine has no runtime kata"},
	} {
		t.Run(name, func(t *testing.T) {
			p := policy.Default()
			container := fake.NewContainer(fake.Options{Name: "container"},
				map[string]tranca.Level{"runc": tranca.LevelContainer, "runsc": tranca.LevelGVisor}, "runc")
			backends := []tranca.Backend{level("process", tranca.LevelProcess), container, level("vm", tranca.LevelMicroVM)}
			p.Floor, p.Runtime = tc.floor, tc.runtime
			res, err := open(t, p, backends...).Run(t.Context(), tranca.Request{Command: []string{"exit"}})
			if tc.want == "" {
				if !errors.Is(err, tranca.ErrRefused) || !strings.Contains(err.Error(), tc.missing) {
					t.Fatal(err)
				}
				return
			}
			if err != nil || res.Backend != tc.want || res.Isolation != tc.level {
				t.Fatalf("%+v, %v", res, err)
			}
		})
	}
}

func TestOneProbeForManyRuns(t *testing.T) {
	w := setup(t, fake.Options{}, nil)
	for range 20 {
		w.run(t, "exit")
	}
	if n := w.fake.Probes(); n != 1 {
		t.Errorf("%d probes", n)
	}
}

// TestProbedAgain: a creation that is refused makes the host be looked at
// again, and what is missing now is told.
func TestProbedAgain(t *testing.T) {
	broken := false
	refusal := func() error {
		if broken {
			return &tranca.RefusalError{Backend: "fake", Unavailable: true, Problems: []tranca.Problem{{Item: tranca.ItemUser, Missing: "taken away meanwhile"}}}
		}
		return nil
	}
	w := setup(t, fake.Options{ProbeErr: refusal, CreateErr: refusal}, nil)
	w.run(t, "exit")
	broken = true
	_, err := w.Run(t.Context(), tranca.Request{Command: []string{"exit"}})
	if !errors.Is(err, tranca.ErrUnavailable) || !strings.Contains(err.Error(), "taken away meanwhile") || w.fake.Probes() != 2 {
		t.Errorf("%v after %d probes", err, w.fake.Probes())
	}
}

func TestCreateFails(t *testing.T) {
	w := setup(t, fake.Options{CreateErr: func() error { return errors.New("the host is out of something") }}, nil)
	_, err := w.Run(t.Context(), tranca.Request{Command: []string{"exit"}})
	if !errors.Is(err, tranca.ErrUnavailable) || !strings.Contains(err.Error(), "out of something") {
		t.Error(err)
	}
}

func TestReports(t *testing.T) {
	e := open(t, policy.Default(), level("proc", tranca.LevelProcess, tranca.ItemWall), level("subprocess", tranca.LevelSubprocess))
	reports, errs := e.Reports(t.Context())
	if len(reports) != 2 || reports[0].Backend != "subprocess" || errs[0] != nil || !reports[1].Holds(tranca.ItemWall) {
		t.Errorf("%+v, %v", reports, errs)
	}
}

func TestBadConfig(t *testing.T) {
	if _, err := engine.New(engine.Config{Policy: policy.Default()}); !errors.Is(err, tranca.ErrInvalid) {
		t.Errorf("no backend: %v", err)
	}
	p := policy.Default()
	p.Limits.Memory = -1
	_, err := engine.New(engine.Config{Policy: p, Backends: registry(t, fake.New(fake.Options{}))})
	if !errors.Is(err, tranca.ErrInvalid) {
		t.Errorf("a negative limit: %v", err)
	}
}

func TestClosedEngine(t *testing.T) {
	e := open(t, policy.Default(), fake.New(fake.Options{}))
	done := make(chan *tranca.Result, 1)
	go func() {
		res, err := e.Run(context.Background(), tranca.Request{Command: []string{"sleep", "60"}})
		if err != nil {
			t.Error(err)
		}
		done <- res
	}()
	time.Sleep(50 * time.Millisecond)
	if err := e.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if res := <-done; res == nil || res.Exit.Reason != tranca.EndClosed {
		t.Errorf("%+v", res)
	}
	if _, err := e.Run(t.Context(), tranca.Request{Command: []string{"exit"}}); !errors.Is(err, tranca.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if _, err := e.Open(t.Context(), tranca.CreateRequest{}); !errors.Is(err, tranca.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
