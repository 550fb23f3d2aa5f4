package gvisor_test

import (
	"testing"

	"tranca"
	"tranca/backendtest"
	"tranca/internal/backend/gvisor"
	"tranca/internal/hostiletest"
)

func TestGVisor(t *testing.T) {
	b, err := gvisor.New(gvisor.Options{})
	if err != nil {
		t.Fatal(err)
	}
	report, err := b.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	// What this host can't enforce for this user is waived by name, and not
	// expected.
	lacking := map[tranca.Item][]backendtest.Ability{
		tranca.ItemMemory:  {backendtest.EndsByMemory, backendtest.BoundsTreeMemory, backendtest.CountsUsage},
		tranca.ItemCPUTime: {backendtest.EndsByCPU, backendtest.BoundsTreeCPU, backendtest.CountsUsage},
	}
	expect := backendtest.Expect{
		Environment: []string{"HOME", "LANG", "LOGNAME", "PATH", "TMPDIR", "USER"},
		Lacks: []backendtest.Ability{
			// The kernel of the host kills the whole Sentry.
			backendtest.OutlivesMemory,
			// The suite fills its folder with links, of which gVisor keeps a
			// descriptor each.
			backendtest.ListsHuge,
		},
	}
	for item, abilities := range lacking {
		if !report.Holds(item) {
			expect.Lacks = append(expect.Lacks, abilities...)
		}
	}
	expect.Policy = func(p *tranca.Policy) {
		p.Floor = tranca.LevelGVisor
		p.Waive = append(p.Waive, hostiletest.Lacking(&report)...)
	}
	backendtest.Run(t, func(t *testing.T) tranca.Backend {
		b, err := gvisor.New(gvisor.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}, expect)
}
