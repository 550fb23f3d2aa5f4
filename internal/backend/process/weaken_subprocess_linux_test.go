//go:build tranca_weaken

package process

import (
	"os"
	"slices"
	"testing"
	"time"

	"tranca"
	"tranca/internal/hostiletest"
)

// TestWeakenedSubprocess: each switch of the weaker rung takes its guarantee
// away.
func TestWeakenedSubprocess(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Chdir("/")
	}
	b, err := NewSubprocess()
	if err != nil {
		t.Fatal(err)
	}
	defer hostiletest.Close(t, "backend", b)
	policy := func() tranca.Policy {
		p := *trialPolicy()
		p.Floor, p.Limits = tranca.LevelSubprocess, hostiletest.Limits(30*time.Second)
		p.Limits.Memory = 1 << 30 // of address space
		return p
	}
	has := b.switches()
	losses := slices.DeleteFunc(slices.Concat(hostiletest.Losses(), hostiletest.HostKernelLosses()),
		func(l hostiletest.Loss) bool { return has[l.Item] == nil })
	for i := range losses {
		switch l := &losses[i]; l.Item {
		case tranca.ItemUser:
			l.Root = true // anybody else's code is its caller's own
		case tranca.ItemCPUTime:
			// What went beyond the limit is told so at the end.
			l.Lost = func(_ *hostiletest.Stage, o hostiletest.Outcome) bool { return o.Stdout == "done\n" }
		}
	}
	hostiletest.Weakened(t, b, b.Report, policy, losses)
}
