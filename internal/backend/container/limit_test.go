package container

import (
	"testing"

	"tranca"
)

// TestLimitOfARunThatIsOver: whoever has read the counters of one run tells
// nothing of the next, however late.
func TestLimitOfARunThatIsOver(t *testing.T) {
	m := newBox(nil, nil, &plan{policy: &tranca.Policy{}})
	over := m.begun
	m.begun = make(chan struct{}) // as Begin does
	m.pass(over, tranca.EndCPU)
	if told := len(m.limit); told != 0 || m.cpuSpent {
		t.Errorf("a limit of the run before is told %d times, spent: %v", told, m.cpuSpent)
	}
	m.pass(m.begun, tranca.EndCPU)
	m.pass(m.begun, tranca.EndCPU)
	if told := len(m.limit); told != 1 || !m.cpuSpent {
		t.Errorf("a limit of the run itself is told %d times, spent: %v", told, m.cpuSpent)
	}
}
