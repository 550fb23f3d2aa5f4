package main

import (
	"testing"

	"tranca/internal/bench"
)

func TestTargetsOfAResult(t *testing.T) {
	figure := func(name bench.MeasureName, p50, p99 float64) bench.Measure {
		return bench.Measure{Name: name, N: 3, P50: p50, P99: p99}
	}
	r := &bench.Result{Subjects: []bench.Subject{
		{Name: "bare", Measures: []bench.Measure{figure(bench.Whole, 20e6, 30e6), figure(bench.Throughput64, 100, 100)}},
		{Name: "process", Measures: []bench.Measure{
			figure(bench.Whole, 40e6, 45e6), figure(bench.Throughput64, 50, 50), figure(bench.IdleMemory, 2*mebi, 2*mebi),
		}},
		{Name: "gvisor", Measures: []bench.Measure{figure(bench.Whole, 200e6, 200e6)}},
	}}
	got := map[string]string{}
	for _, target := range targetList() {
		if row, ok := target.row(r); ok {
			got[row.Name] = row.met()
		}
	}
	want := map[string]string{
		"process, whole run":      "MISSED", // 2x
		"process, whole run: p99": "met",    // 1.5x
		"process, 64 callers":     "met",    // 0.5x
		"process, idle memory":    "met",    // 2 MiB
		// gvisor has nothing to be held against, so no row.
	}
	if len(got) != len(want) {
		t.Errorf("rows %v, want %v", got, want)
	}
	for name, met := range want {
		if got[name] != met {
			t.Errorf("%s: %q, want %q", name, got[name], met)
		}
	}
}
