package hostile_test

import (
	"slices"
	"testing"

	"tranca/hostile"
	"tranca/hostile/attempt"
)

// TestCallsOfProbesAreKnown: a probe that names a system call without a number
// would be found out only where it is run.
func TestCallsOfProbesAreKnown(t *testing.T) {
	all, err := hostile.Probes()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		steps := slices.Concat(p.Attempt, p.Again, p.Next, p.Beside, p.Twin)
		if _, err := attempt.Calls(steps); err != nil {
			t.Errorf("%s: %v", p.ID, err)
		}
	}
}
