package container_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"tranca"
	"tranca/backendtest"
	"tranca/internal/require"
)

func TestDocker(t *testing.T) { conform(t, docker) }

func TestPodman(t *testing.T) { conform(t, podman) }

func TestPodmanRootless(t *testing.T) { conform(t, rootless) }

// tranca's own gVisor as a runtime of Docker.
func TestDockerGVisor(t *testing.T) {
	require.Sentry(t)
	o, _ := docker.options(t)
	b := open(t, o)
	defer b.Close(t.Context())
	report, err := b.(tranca.RuntimeProber).ProbeRuntime(t.Context(), gvisorRuntime)
	if err != nil {
		t.Fatal(err)
	}
	if report.Level != tranca.LevelGVisor || report.Facts[tranca.FactRuntime] != gvisorRuntime || report.Facts["trial of the runtime"] == "" {
		t.Errorf("%+v", report)
	}
	expect := expectations(&report)
	waive := expect.Policy
	expect.Policy = func(p *tranca.Policy) {
		waive(p)
		p.Floor, p.Runtime = tranca.LevelGVisor, gvisorRuntime
	}
	expect.Lacks = append(expect.Lacks,
		// The kernel of the host kills the whole Sentry, in which alone the
		// code's processes are counted.
		backendtest.OutlivesMemory, backendtest.BoundsProcesses, backendtest.SeesProcessLimit, backendtest.CountsUsage,
		// The suite fills its folder with links, of which gVisor keeps a
		// descriptor each.
		backendtest.ListsHuge,
	)
	// The trial is made once, as a server would.
	backendtest.Run(t, func(*testing.T) tranca.Backend { return kept{b} }, expect)
}

const gvisorRuntime = "tranca-runsc"

// kept is a backend that the suite does not close.
type kept struct{ tranca.Backend }

func (kept) Close(context.Context) error { return nil }

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
	if strings.HasPrefix(report.Find(tranca.ItemPIDs).Mechanism, "RLIMIT") {
		expect.Lacks = append(expect.Lacks, backendtest.SeesProcessLimit) // nothing counts what it refuses
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
