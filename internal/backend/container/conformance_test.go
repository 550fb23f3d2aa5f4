package container_test

import (
	"slices"
	"testing"

	"tranca"
	"tranca/backendtest"
)

func TestDocker(t *testing.T) { conform(t, docker) }

func TestPodman(t *testing.T) { conform(t, podman) }

func TestPodmanRootless(t *testing.T) { conform(t, rootless) }

// conform runs the suite. What the engine can't enforce here is waived by name,
// and not expected.
func conform(t *testing.T, e engineUnderTest) {
	o, here := e.options(t)
	if !here {
		return
	}
	b := open(t, o)
	report, err := b.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	backendtest.Run(t, func(t *testing.T) tranca.Backend { return open(t, o) }, expectations(&report))
}

func expectations(report *tranca.Report) backendtest.Expect {
	expect := backendtest.Expect{
		Environment: []string{"HOME", "LANG", "LOGNAME", "PATH", "TMPDIR", "USER"},
		Slow:        4,
	}
	for item, abilities := range map[tranca.Item][]backendtest.Ability{
		tranca.ItemMemory:  {backendtest.EndsByMemory, backendtest.BoundsTreeMemory, backendtest.CountsUsage},
		tranca.ItemCPUTime: {backendtest.EndsByCPU, backendtest.BoundsTreeCPU, backendtest.CountsUsage},
		tranca.ItemPIDs:    {backendtest.SeesProcessLimit},
		tranca.ItemInodes:  {backendtest.BoundsInodes},
	} {
		if !report.Holds(item) {
			expect.Lacks = append(expect.Lacks, abilities...)
		}
	}
	expect.Policy = func(p *tranca.Policy) {
		p.Floor, p.Backend = tranca.LevelContainer, "container"
		for _, item := range tranca.Waivable() {
			if !report.Holds(item) && !slices.Contains(p.Waive, item) {
				p.Waive = append(p.Waive, item)
			}
		}
	}
	return expect
}
