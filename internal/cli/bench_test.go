package cli_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tranca/internal/bench"
	"tranca/internal/cli"
)

// benchResult is a result of made-up figures, for what the command does with
// one. FAKE_DRIFT makes the last baseline slower, FAKE_SLOW the backend, each by
// a factor.
func benchResult(s cli.BenchSetup) *bench.Result {
	factor := func(name string) float64 {
		f, err := strconv.ParseFloat(os.Getenv(name), 64)
		if err != nil {
			return 1
		}
		return f
	}
	slow := 1.5 * factor("FAKE_SLOW")
	figures := func(ns float64, ratio float64) []bench.Measure {
		return []bench.Measure{{
			Name: bench.Whole, N: 5, Min: ns, P50: ns, P90: ns, P99: ns, Max: ns,
			Interval: &bench.Interval{Value: ns, Low: ns, High: ns},
			Ratio:    &bench.Interval{Value: ratio, Low: 0.98 * ratio, High: 1.02 * ratio},
		}}
	}
	r := &bench.Result{
		Schema: bench.Schema, Tranca: "dev", Quick: s.Quick, Only: s.Only, Rounds: s.Rounds, Seed: s.Seed,
		Started: time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC), Trust: bench.NewTrust(20e6, 20e6*factor("FAKE_DRIFT")),
		Harness: bench.Harness{EmptyNS: 8000, Added: 0.0004, Bound: bench.HarnessBound},
		Subjects: []bench.Subject{
			{Name: "bare", Kind: bench.KindBare, Measures: figures(20e6, 1)},
			{Name: "process", Kind: bench.KindBackend, Isolation: "process", Waived: s.Waive, LeftChecked: true, Measures: figures(20e6*slow, slow)},
		},
	}
	if os.Getenv("FAKE_UNAVAILABLE") != "" {
		r.Subjects[1] = bench.Subject{Name: "process", Kind: bench.KindBackend, Unavailable: os.Getenv("FAKE_UNAVAILABLE")}
	}
	return r
}

// TestBenchCtrlC sends this process a real SIGINT in the middle of a run: what
// was measured is shown, marked as partial, and not kept.
func TestBenchCtrlC(t *testing.T) {
	state := t.TempDir()
	var out, errs bytes.Buffer
	w := world()
	w.Stdout, w.Stderr = &out, &errs
	w.Getenv = func(name string) string {
		if name == "XDG_STATE_HOME" {
			return state
		}
		return ""
	}
	w.Bench = func(ctx context.Context, s cli.BenchSetup) (*bench.Result, error) {
		if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
			return nil, err
		}
		<-ctx.Done()
		r := benchResult(s)
		r.Partial, r.Trust = true, bench.NewTrust(20e6, 0)
		return r, context.Cause(ctx)
	}
	if status := cli.Main(t.Context(), w, []string{"tranca", "bench", "--json"}); status != 130 {
		t.Errorf("exit status %d, want 130", status)
	}
	r, err := bench.Read(&out)
	if err != nil || !r.Partial || len(r.Subjects) != 2 {
		t.Errorf("%v, %+v", err, r)
	}
	if !strings.Contains(errs.String(), "partial") {
		t.Errorf("it says %q", errs.String())
	}
	if _, err := os.Stat(filepath.Join(state, "tranca", "bench.json")); err == nil {
		t.Error("a partial result is kept")
	}
}
