package gvisor

import (
	"testing"

	"tranca/internal/weaken"
)

// TestEveryGuaranteeHasASwitch: what is claimed can be taken away, or the table
// says why not; and each switch does something.
func TestEveryGuaranteeHasASwitch(t *testing.T) {
	b := newBackend(t)
	for _, why := range weaken.Lacks(b.report, b.switches()) {
		t.Error(why)
	}
}
