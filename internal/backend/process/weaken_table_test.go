package process

import (
	"slices"
	"testing"

	"tranca/internal/weaken"
)

// TestEveryGuaranteeHasASwitch: what is claimed can be taken away, or the table
// says why not; and each switch does something.
func TestEveryGuaranteeHasASwitch(t *testing.T) {
	b := newBackend(t)
	s, err := NewSubprocess()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	for _, why := range slices.Concat(weaken.Lacks(b.report, b.switches()), weaken.Lacks(s.report, s.switches())) {
		t.Error(why)
	}
}
