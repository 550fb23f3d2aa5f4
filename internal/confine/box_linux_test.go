package confine

import (
	"testing"
	"time"

	"tranca"
)

// TestLimitOfARunThatIsOver: whoever has read the counters of one run tells
// nothing of the next, however late.
func TestLimitOfARunThatIsOver(t *testing.T) {
	b := NewBox(&Host{}, tranca.Limits{CPUTime: time.Second}, &Allotment{})
	b.HoldsKernel(func() bool { return true }) // nothing is killed out here
	over := b.begun
	if err := b.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.pass(over, tranca.EndCPU)
	if told := len(b.limit); told != 0 || b.cpuSpent {
		t.Errorf("a limit of the run before is told %d times, spent: %v", told, b.cpuSpent)
	}
	b.pass(b.begun, tranca.EndCPU)
	b.pass(b.begun, tranca.EndCPU)
	if told := len(b.limit); told != 1 || !b.cpuSpent {
		t.Errorf("a limit of the run itself is told %d times, spent: %v", told, b.cpuSpent)
	}
}
