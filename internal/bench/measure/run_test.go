package measure

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tranca"
	"tranca/internal/bench"
)

func after(d time.Duration) func(int64) time.Duration {
	return func(int64) time.Duration { return d }
}

func TestRunMeasuresAll(t *testing.T) {
	bare, box := &fake{}, keeping{&fake{takes: after(12 * time.Millisecond)}}
	r := shortRun(bare.subject("bare", bench.KindBare), box.subject("box"))
	res, err := r.result(t.Context())
	if err != nil || res.Partial || res.Schema != bench.Schema {
		t.Fatalf("%v, partial %t, schema %q", err, res.Partial, res.Schema)
	}
	if !res.Subjects[1].LeftChecked || res.Subjects[1].Isolation != "process" {
		t.Errorf("%+v", res.Subjects[1])
	}
	for _, m := range bench.Measures() {
		got := res.Subjects[1].Measure(m.Name)
		if m.Name == bench.IdleMemory {
			continue // a fake has no processes
		}
		if got == nil || got.Interval == nil || got.Min > got.P50 || got.P50 > got.Max {
			t.Errorf("%s: %+v", m.Name, got)
			continue
		}
		if (m.Base != "") != (got.Ratio != nil) || (m.Unit == bench.Nanoseconds) != (got.Histogram != nil) {
			t.Errorf("%s: %+v", m.Name, got)
		}
	}
	// 12 ms against 4, and what waking up costs both.
	if ratio := res.Subjects[1].Measure(bench.Whole).Ratio; ratio.Value < 1.5 || ratio.Value > 3.5 {
		t.Errorf("a run three times as long is measured as %s", ratio)
	}
	if res.Trust.FirstNS < 4e6 || res.Trust.LastNS < 4e6 {
		t.Errorf("baseline of 4 ms: %+v", res.Trust)
	}
	if h := res.Harness; h.EmptyNS <= 0 || h.EmptyNS > 2e6 || h.Ratio == nil {
		t.Errorf("harness: %+v", h)
	}
	var b bytes.Buffer
	if err := res.Write(&b); err != nil {
		t.Fatal(err)
	}
	if _, err := bench.Read(&b); err != nil {
		t.Errorf("its own result is refused: %v", err)
	}
	if bare.closed.Load() != bare.open.Load() || box.closed.Load() != box.open.Load() {
		t.Error("not all was closed")
	}
}

// TestAnotherHostInTheEndIsNotTrusted makes the baseline slower in mid-run.
func TestAnotherHostInTheEndIsNotTrusted(t *testing.T) {
	slow := false
	bare := &fake{takes: func(int64) time.Duration {
		if slow {
			return 20 * time.Millisecond
		}
		return 5 * time.Millisecond
	}}
	r := shortRun(bare.subject("bare", bench.KindBare))
	r.cfg.Progress = func(s Step) { slow = slow || s.Phase == "baseline, last" }
	res, err := r.result(t.Context())
	if err != nil || res.Trust.Trusted || len(res.Sound()) == 0 {
		t.Errorf("%v, %+v, %q", err, res.Trust, res.Sound())
	}
}

// TestTheRestGoesOn lets one subject die in mid-run and another fail at one
// program.
func TestTheRestGoesOn(t *testing.T) {
	boom := errors.New("no space left on device")
	dying := keeping{&fake{broken: func(n int64, _ string) error {
		if n > 3 {
			return boom
		}
		return nil
	}}}
	lame := &fake{broken: func(_ int64, code string) error {
		if strings.Contains(code, "bench-data") {
			return boom
		}
		return nil
	}}
	bare, well := &fake{}, keeping{&fake{}}
	r := shortRun(bare.subject("bare", bench.KindBare), dying.subject("dying"),
		lame.subject("lame", bench.KindBaseline), well.subject("well"))
	res, err := r.result(t.Context())
	if err != nil || res.Partial {
		t.Fatalf("%v", err)
	}
	d := res.Find("dying")
	if !strings.Contains(d.Failed, "starts: no space left") || d.Measure(bench.Compute) != nil || dying.closed.Load() != 1 {
		t.Errorf("the one that died: %+v", d)
	}
	if m := d.Measure(bench.Whole); m == nil || m.N < 1 {
		t.Errorf("what was measured before it died is gone: %+v", m)
	}
	for _, m := range d.Measures {
		if m.N == 0 && m.Missing == "" {
			t.Errorf("%s: no figure, and no reason", m.Name)
		}
	}
	l := res.Find("lame")
	if l.Measure(bench.FileData) != nil || l.Measure(bench.Throughput8) == nil || !strings.Contains(l.Failed, "files") {
		t.Errorf("the one that fails at files: %+v", l)
	}
	if w := res.Find("well"); w.Failed != "" || w.Measure(bench.Throughput64) == nil || w.Measure(bench.FileData) == nil {
		t.Errorf("the one that is well: %+v", w)
	}
	if len(res.Sound()) < 2 {
		t.Errorf("two failed, and the result says %q", res.Sound())
	}
}

func TestOneThatHangsHasFailed(t *testing.T) {
	hangs := &fake{takes: func(n int64) time.Duration {
		if n > 2 {
			return time.Hour
		}
		return time.Millisecond
	}}
	bare := &fake{}
	r := shortRun(bare.subject("bare", bench.KindBare), hangs.subject("hangs", bench.KindBaseline))
	r.pace.patience = 300 * time.Millisecond
	began := time.Now()
	res, err := r.result(t.Context())
	if err != nil || !strings.Contains(res.Find("hangs").Failed, "longer than 300ms") {
		t.Errorf("%v, %+v", err, res.Find("hangs"))
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
}

// TestOthersAreLookedAtWithoutBare has a bare baseline that dies in mid-run: what
// the next subject leaves is looked at all the same.
func TestOthersAreLookedAtWithoutBare(t *testing.T) {
	var dead atomic.Bool
	bare := &fake{broken: func(_ int64, code string) error {
		if code != StartCode {
			dead.Store(true)
		}
		if dead.Load() {
			return errors.New("no space left")
		}
		return nil
	}}
	well := &fake{}
	res, err := shortRun(bare.subject("bare", bench.KindBare), well.subject("well", bench.KindBaseline)).result(t.Context())
	if err != nil || res.Find("bare").Failed == "" {
		t.Fatalf("%v, %+v", err, res.Find("bare"))
	}
	if !res.Find("well").LeftChecked {
		t.Error("what is left was not looked at")
	}
}

func TestWrongAnswersAreErrors(t *testing.T) {
	for name, run := range map[string]func(f *fake){
		"a start": func(f *fake) {
			f.takes = nil
			f.broken = func(int64, string) error { return errNoProgram }
		},
	} {
		f := &fake{}
		run(f)
		if _, _, err := start(t.Context(), f.Run); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	liar := &fake{}
	if _, err := parts(t.Context(), liar, StartCode, 1); err == nil {
		t.Error("42 is taken for two marks")
	}
}

// TestBlurredMarksAreNoSample shows that marks which arrive at once, as on a busy
// host, give no time of nothing.
func TestBlurredMarksAreNoSample(t *testing.T) {
	var a arrivals
	_, _ = a.Write([]byte("."))
	_, _ = a.Write([]byte("."))
	if a.blurred || len(a.marks) != 2 {
		t.Errorf("two marks, one after the other: %+v", a)
	}
	_, _ = a.Write([]byte(".."))
	if !a.blurred || len(a.marks) != 4 {
		t.Errorf("two marks at once: %+v", a)
	}
	s := &subject{missing: map[bench.MeasureName]string{}}
	if err := s.clear(errBlurred, bench.Files); err != nil || s.missing[bench.Files] == "" {
		t.Errorf("%v, %v", err, s.missing)
	}
	boom := errors.New("boom")
	if err := s.clear(boom, bench.Files); err != boom {
		t.Errorf("another error: %v", err)
	}
}

// TestStoppedIsPartial ends a run in the middle.
func TestStoppedIsPartial(t *testing.T) {
	bare, box := &fake{}, keeping{&fake{}}
	r := shortRun(bare.subject("bare", bench.KindBare), box.subject("box"))
	ctx, cancel := context.WithCancelCause(t.Context())
	boom := errors.New("Ctrl-C")
	r.cfg.Progress = func(s Step) {
		if s.Phase == phaseSessions && s.Samples == 2 {
			cancel(boom)
		}
	}
	res, err := r.result(ctx)
	if !errors.Is(err, boom) || !res.Partial || res.Trust.Trusted {
		t.Errorf("%v, partial %t, %+v", err, res.Partial, res.Trust)
	}
	s := res.Find("box")
	if s.Measure(bench.Whole) == nil || s.Failed != "" || s.LeftChecked {
		t.Errorf("%+v", s)
	}
	for _, m := range s.Measures {
		if m.Name == bench.Throughput8 && m.Missing != "the run was stopped before" {
			t.Errorf("%+v", m)
		}
	}
	if bare.closed.Load() != 1 || box.closed.Load() != 1 {
		t.Error("something is open still")
	}
}

func TestUnavailableIsListed(t *testing.T) {
	bare := &fake{}
	refused := Subject{About: bench.Subject{Name: "refused", Kind: bench.KindBackend}, Open: func(context.Context) (Runner, error) {
		return nil, &tranca.RefusalError{Backend: "refused", Problems: []tranca.Problem{{Item: tranca.ItemCPUs, Missing: "no control group"}}}
	}}
	absent := Subject{About: bench.Subject{Name: "absent", Kind: bench.KindBaseline, Unavailable: "not installed"}}
	silent := (&fake{broken: func(int64, string) error { return errNoProgram }}).subject("silent", bench.KindBackend)
	r := shortRun(bare.subject("bare", bench.KindBare), refused, absent, silent)
	res, err := r.result(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"refused": "--waive limits.cpus", "absent": "not installed", "silent": "no such program",
	} {
		s := res.Find(name)
		if !strings.Contains(s.Unavailable, want) || s.Failed != "" || len(s.Measures) != len(bench.Measures()) {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// TestALeakIsSeen lets a subject leave a folder where tranca puts its own.
func TestALeakIsSeen(t *testing.T) {
	bare, box := &fake{}, &fake{}
	leaking := box.subject("leaking", bench.KindBackend)
	var made []string
	leaking.Open = func(context.Context) (Runner, error) {
		dir, err := os.MkdirTemp("", "tranca-bench-leak-")
		made = append(made, dir)
		return box, err
	}
	t.Cleanup(func() {
		for _, dir := range made {
			os.RemoveAll(dir)
		}
	})
	t.Setenv("TMPDIR", "/tmp") // where it is looked for
	r := shortRun(bare.subject("bare", bench.KindBare), leaking)
	res, err := r.result(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if left := strings.Join(res.Find("leaking").Left, "\n"); !strings.Contains(left, "tranca-bench-leak-") {
		t.Errorf("left: %q", left)
	}
	if len(res.Sound()) == 0 {
		t.Error("the result stands")
	}
}

func TestBareComesFirst(t *testing.T) {
	if _, err := Run(t.Context(), Config{Subjects: []Subject{(&fake{}).subject("x", bench.KindBackend)}}); err == nil {
		t.Error("a run without a baseline")
	}
}

func TestQuickSharesItsTime(t *testing.T) {
	left, sum := 60*time.Second, time.Duration(0)
	for _, w := range weights {
		part := budget(w.phase, left)
		if part <= 0 {
			t.Errorf("%s has nothing", w.phase)
		}
		left -= part
		sum += part
	}
	if sum > 60*time.Second || sum < 59*time.Second {
		t.Errorf("the phases have %s of a minute", sum)
	}
	if budget(phaseStarts, -time.Second) != 1 {
		t.Error("a phase for which no time is left has no bound at all")
	}
	if budget("another", time.Minute) != 0 {
		t.Error("a phase without a share has one")
	}
}
