package process_test

import (
	"os"
	"testing"

	"tranca"
	"tranca/backendtest"
	"tranca/internal/backend/process"
)

func TestProcess(t *testing.T) {
	b, err := process.New(process.Options{})
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
		tranca.ItemPIDs:    {backendtest.BoundsProcesses, backendtest.SeesProcessLimit},
	}
	expect := backendtest.Expect{
		Environment: []string{"HOME", "LANG", "LOGNAME", "PATH", "TMPDIR", "USER"},
		Lacks:       []backendtest.Ability{backendtest.RunsSeveral},
	}
	for item, abilities := range lacking {
		if !report.Holds(item) {
			expect.Lacks = append(expect.Lacks, abilities...)
		}
	}
	if report.Facts["cgroup"] == "none" {
		expect.Lacks = append(expect.Lacks, backendtest.SeesProcessLimit)
	}
	expect.Policy = func(p *tranca.Policy) {
		for _, item := range tranca.Waivable() {
			if !report.Holds(item) {
				p.Waive = append(p.Waive, item)
			}
		}
	}
	backendtest.Run(t, func(t *testing.T) tranca.Backend {
		b, err := process.New(process.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}, expect)
}

func TestSubprocess(t *testing.T) {
	expect := backendtest.Expect{
		Environment: []string{"HOME", "LANG", "LOGNAME", "PATH", "TMPDIR", "USER"},
		Lacks: []backendtest.Ability{
			backendtest.EndsByMemory, backendtest.BoundsTreeMemory, backendtest.BoundsTreeCPU,
			backendtest.BoundsProcesses, backendtest.SeesProcessLimit, backendtest.BoundsDisk,
			backendtest.BoundsInodes, backendtest.CountsUsage, backendtest.OwnWorkdir, backendtest.RunsSeveral,
		},
		Policy: func(p *tranca.Policy) {
			p.Floor, p.Backend = tranca.LevelSubprocess, process.SubprocessName
		},
	}
	if os.Geteuid() == 0 {
		t.Chdir("/")
	}
	backendtest.Run(t, func(t *testing.T) tranca.Backend {
		b, err := process.NewSubprocess(process.SubprocessOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}, expect)
}
