package evidence

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tranca"
	"tranca/hostile/report"
	"tranca/internal/advise"
	"tranca/internal/bench"
	"tranca/internal/ownfile"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func benchText(t testing.TB, change func(*bench.Result)) []byte {
	t.Helper()
	r := &bench.Result{
		Schema: bench.Schema, Tranca: "1.0", Started: now.Add(-time.Hour), Ended: now,
		Host: bench.Host{Kernel: "6.18.1"}, Trust: bench.NewTrust(100, 101),
		Subjects: []bench.Subject{
			{Name: "bare", Kind: bench.KindBare, Measures: []bench.Measure{{Name: bench.FirstByte, N: 5, Min: 2e7, P50: 2e7, P90: 2e7, P99: 2e7, Max: 2e7}}},
			{Name: "process", Kind: bench.KindBackend, Measures: []bench.Measure{
				{Name: bench.FirstByte, N: 5, Min: 3e7, P50: 3e7, P90: 3e7, P99: 3e7, Max: 3e7, Ratio: &bench.Interval{Value: 1.5, Low: 1.4, High: 1.6}},
				{Name: bench.Throughput1, N: 5, Min: 20, P50: 20, P90: 20, P99: 20, Max: 20},
				{Name: bench.Throughput8, N: 5, Min: 40, P50: 40, P90: 40, P99: 40, Max: 40},
				{Name: bench.IdleMemory, N: 5, Min: 6 << 20, P50: 6 << 20, P90: 6 << 20, P99: 6 << 20, Max: 6 << 20},
			}},
			{Name: "gvisor", Kind: bench.KindBackend, Failed: "it died", Measures: []bench.Measure{}},
		},
	}
	if change != nil {
		change(r)
	}
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func hostileText(t testing.TB, change func(*report.Report)) []byte {
	t.Helper()
	cell := func(probe string, v report.Verdict, promised bool) report.Cell {
		return report.Cell{Probe: probe, Column: "process", Verdict: v, Promised: promised}
	}
	r := &report.Report{
		Schema: report.Schema, Began: now.Add(-time.Hour), Version: "1.0", Host: report.Host{Kernel: "6.18.1"},
		Columns: []report.Column{{Name: "none", Kind: report.ColumnControl}, {Name: "process", Kind: report.ColumnBackend}, {Name: "container", Kind: report.ColumnBackend, Missing: "no engine"}},
		Probes:  []report.Probe{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "d"}, {ID: "e"}, {ID: "f"}},
		Cells: []report.Cell{
			cell("a", report.Contained, true), cell("b", report.Limited, true), cell("c", report.Escaped, true),
			cell("d", report.Failed, true), cell("e", report.Unknown, true), cell("f", report.Escaped, false),
			{Probe: "a", Column: "none", Verdict: report.Escaped, Promised: true},
		},
	}
	if change != nil {
		change(r)
	}
	var b bytes.Buffer
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// gather reads results from texts; nil is a file that is not there.
func gather(benched, hostile []byte) advise.Evidence {
	return Host{
		Getenv: func(name string) string { return map[string]string{"HOME": "/h"}[name] },
		Read: func(_, path string) ([]byte, error) {
			text := map[string][]byte{"/h/.local/state/tranca/bench.json": benched, "/h/.local/state/tranca/hostile.json": hostile}[path]
			if text == nil {
				return nil, fmt.Errorf("%w: %s", tranca.ErrNotFound, path)
			}
			return text, nil
		},
		Kernel: "6.18.1", Version: "1.0", Now: now,
	}.Gather()
}

func TestGather(t *testing.T) {
	e := gather(benchText(t, nil), hostileText(t, nil))
	if len(e.Notes) > 0 {
		t.Fatal(e.Notes)
	}
	want := advise.Cost{FirstByteMS: 30, Ratio: 1.5, RatioLow: 1.4, RatioHigh: 1.6, PerSecond: 40, IdleMiB: 6}
	if got := e.Bench.Costs["process"]; got != want || len(e.Bench.Costs) != 1 {
		t.Errorf("%+v", e.Bench.Costs)
	}
	h := e.Hostile.Held["process"]
	if h.Contained != 1 || h.Limited != 1 || h.Escaped != 2 || h.Failed != 1 || h.Unknown != 1 || !slices.Equal(h.Promised, []string{"c", "d"}) || len(e.Hostile.Held) != 1 {
		t.Errorf("%+v", e.Hostile.Held)
	}
	if e := gather(nil, nil); e.Bench != nil || e.Hostile != nil || e.Notes != nil {
		t.Errorf("%+v", e)
	}
}

// TestWhatDoesNotCount: each is left out with a word, and the other result
// counts all the same.
func TestWhatDoesNotCount(t *testing.T) {
	good := hostileText(t, nil)
	for want, text := range map[string][]byte{
		"tranca bench is not counted: invalid":    []byte("{"),
		`the schema "tranca.bench/9"`:             benchText(t, func(r *bench.Result) { r.Schema = "tranca.bench/9" }),
		`it is of the kernel "5.1"`:               benchText(t, func(r *bench.Result) { r.Host.Kernel = "5.1" }),
		"it can't be trusted: a bare start took":  benchText(t, func(r *bench.Result) { r.Trust = bench.NewTrust(1e7, 2e7) }),
		"it can't be trusted: the baseline was n": benchText(t, func(r *bench.Result) { r.Trust = bench.Trust{} }),
	} {
		e := gather(text, good)
		if e.Bench != nil || e.Hostile == nil || len(e.Notes) != 1 || !strings.Contains(e.Notes[0], want) {
			t.Errorf("%s: %+v", want, e.Notes)
		}
	}
	e := gather(benchText(t, nil), hostileText(t, func(r *report.Report) { r.Schema = "tranca.hostile/2" }))
	if e.Hostile != nil || e.Bench == nil || len(e.Notes) != 1 || !strings.Contains(e.Notes[0], "tranca.hostile/2") {
		t.Errorf("%+v", e)
	}
}

func TestWhatToMind(t *testing.T) {
	e := gather(
		benchText(t, func(r *bench.Result) { r.Quick, r.Tranca, r.Started = true, "0.9", now.AddDate(-1, 0, 0) }),
		hostileText(t, func(r *report.Report) { r.Partial = true }),
	)
	notes := strings.Join(e.Notes, "\n")
	for _, want := range []string{"quick run", "made by tranca 0.9, and this is 1.0", "365 days old"} {
		if !strings.Contains(notes, want) {
			t.Errorf("no word of %q in %q", want, notes)
		}
	}
	if e.Bench == nil || !e.Hostile.Partial {
		t.Errorf("%+v", e)
	}
}

// TestAFileThatOthersCanWrite does not count.
func TestAFileThatOthersCanWrite(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(dir, "tranca")
	if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(folder, 0o755), os.WriteFile(filepath.Join(folder, "bench.json"), benchText(t, nil), 0o600)); err != nil {
		t.Fatal(err)
	}
	h := Host{
		Getenv: func(name string) string { return map[string]string{"XDG_STATE_HOME": dir}[name] },
		Read: func(what, path string) ([]byte, error) {
			f, err := ownfile.Read(what, path, 1<<20)
			if err != nil {
				return nil, err
			}
			return f.Data, nil
		},
		Kernel: "6.18.1", Version: "1.0", Now: now,
	}
	if e := h.Gather(); e.Bench == nil || e.Notes != nil {
		t.Fatalf("%+v", e)
	}
	if err := os.Chmod(filepath.Join(folder, "bench.json"), 0o606); err != nil {
		t.Fatal(err)
	}
	if e := h.Gather(); e.Bench != nil || len(e.Notes) != 1 || !strings.Contains(e.Notes[0], "others can write to the result") {
		t.Errorf("%+v", e)
	}
}

// FuzzGather shows of any bytes: no panic, and a result that does not count is
// told of.
func FuzzGather(f *testing.F) {
	f.Add(benchText(f, nil), hostileText(f, nil))
	f.Add([]byte("{}"), []byte("[]"))
	f.Fuzz(func(t *testing.T, benched, hostile []byte) {
		if benched == nil || hostile == nil {
			return
		}
		e := gather(benched, hostile)
		if e.Bench == nil && e.Hostile == nil && len(e.Notes) != 2 {
			t.Fatalf("%+v", e)
		}
	})
}
