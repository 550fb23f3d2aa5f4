package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tranca"
	"tranca/internal/backend"
	"tranca/internal/backend/fake"
	"tranca/internal/engine"
	"tranca/internal/policy"
)

func openSession(t *testing.T, w *world, n tranca.Narrowing) *engine.Session {
	t.Helper()
	s, err := w.Open(t.Context(), tranca.CreateRequest{Narrow: n})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func in(t *testing.T, s *engine.Session, req tranca.Request) *tranca.Result {
	t.Helper()
	res, err := s.Run(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func command(words ...string) tranca.Request { return tranca.Request{Command: words} }

func TestSession(t *testing.T) {
	w := setup(t, fake.Options{}, nil)
	s := openSession(t, w, tranca.Narrowing{})
	first := in(t, s, command("write", "file", "kept"))
	if !first.Exit.Success() || len(first.Notes) != 0 || first.ID != s.ID() {
		t.Errorf("%+v", first)
	}
	second := in(t, s, command("read", "file"))
	if string(second.Stdout) != "kept" || len(second.Notes) != 1 || !strings.Contains(second.Notes[0], "charged") {
		t.Errorf("%q, %q", second.Stdout, second.Notes)
	}
	in(t, s, command("alloc", "100000000"))
	if third := in(t, s, command("exit")); third.Usage.MemoryPeakBytes >= 100_000_000 {
		t.Errorf("the run has the peak of an earlier one: %d", third.Usage.MemoryPeakBytes)
	}
	if res := in(t, s, command("alloc", "300000000")); res.Exit.Reason != tranca.EndMemory {
		t.Errorf("%+v", res.Exit)
	}
	if res := in(t, s, command("raise", "9")); res.Exit.Reason != tranca.EndSignaled {
		t.Errorf("after a limit: %+v", res.Exit)
	}
}

func TestSessionKillsWhatARunLeaves(t *testing.T) {
	w := setup(t, fake.Options{}, nil)
	s := openSession(t, w, tranca.Narrowing{})
	in(t, s, command("beat", "heart"))
	before := in(t, s, command("read", "heart")).Stdout
	time.Sleep(50 * time.Millisecond)
	if after := in(t, s, command("read", "heart")).Stdout; string(after) != string(before) {
		t.Errorf("it beats: %q, %q", before, after)
	}
}

func TestSessionNarrowing(t *testing.T) {
	w := setup(t, fake.Options{}, nil)
	s := openSession(t, w, tranca.Narrowing{Memory: 128 << 20, Processes: 10})
	again := command("env")
	again.Narrow = tranca.Narrowing{
		Memory: 128 << 20, Env: map[string]string{"A": "b"}, Output: 4096, Workdir: "/tmp",
	}
	res := in(t, s, again)
	if !strings.Contains(string(res.Stdout), "A=b\x00") || !strings.Contains(string(res.Stdout), "PWD=/tmp\x00") {
		t.Errorf("%q", res.Stdout)
	}
	if other := in(t, s, command("env")); other.Policy.Digest == res.Policy.Digest || strings.Contains(string(other.Stdout), "A=b") {
		t.Errorf("what one run narrowed stays: %q", other.Stdout)
	}
	short := command("sleep", "60")
	short.Narrow.Wall = 20 * time.Millisecond
	if res := in(t, s, short); res.Exit.Reason != tranca.EndWall {
		t.Errorf("%+v", res.Exit)
	}
	late := command("exit")
	late.Narrow.Memory = 64 << 20
	if _, err := s.Run(t.Context(), late); !errors.Is(err, tranca.ErrInvalid) {
		t.Errorf("memory can't be narrowed any more: %v", err)
	}
	more := command("exit")
	more.Narrow.Memory = 256 << 20
	if _, err := s.Run(t.Context(), more); !errors.Is(err, tranca.ErrRefused) {
		t.Errorf("more than the session has: %v", err)
	}
}

func TestSessionRunsOneByOne(t *testing.T) {
	w := setup(t, fake.Options{}, nil)
	s := openSession(t, w, tranca.Narrowing{})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			res, err := s.Run(context.Background(), command("forks", "3"))
			if err != nil || string(res.Stdout) != "3" || res.Usage.ProcessesPeak != 4 {
				t.Errorf("%+v, %v", res, err)
			}
		})
	}
	all.Wait()
}

func TestSessionCloseWhileRunning(t *testing.T) {
	w := setup(t, fake.Options{}, nil)
	s := openSession(t, w, tranca.Narrowing{})
	done := make(chan *tranca.Result, 1)
	go func() {
		res, err := s.Run(context.Background(), command("sleep", "60"))
		if err != nil {
			t.Error(err)
		}
		done <- res
	}()
	time.Sleep(50 * time.Millisecond)
	for range 2 {
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if res := <-done; res == nil || res.Exit.Reason != tranca.EndClosed {
		t.Errorf("%+v", res)
	}
	if _, err := s.Run(t.Context(), command("exit")); !errors.Is(err, tranca.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestDeadSession: a session whose sandbox failed says so, and is never made
// anew in silence.
func TestDeadSession(t *testing.T) {
	w := setup(t, fake.Options{}, nil)
	s := openSession(t, w, tranca.Narrowing{})
	req := command("die")
	req.Narrow.Wall = 30 * time.Millisecond
	if res := in(t, s, req); res.Exit.Reason != tranca.EndWall {
		t.Errorf("%+v", res.Exit)
	}
	// It is known to be dead, so nothing is tried in it any more.
	if _, err := s.Run(t.Context(), command("exit")); !errors.Is(err, tranca.ErrGone) || !strings.Contains(err.Error(), "its machine died") {
		t.Error(err)
	}
	if _, err := w.Session(t.Context(), s.ID()); !errors.Is(err, tranca.ErrGone) || !strings.Contains(err.Error(), "its machine died") {
		t.Error(err)
	}
	eventually(t, "the sandbox is destroyed and its share free", func() bool {
		return w.fake.Live() == 0 && w.Stats().Sandboxes == 0
	})
}

func TestManySessions(t *testing.T) {
	w := setup(t, fake.Options{}, func(c *engine.Config) { c.MaxSandboxes = 2 })
	first := openSession(t, w, tranca.Narrowing{})
	openSession(t, w, tranca.Narrowing{})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := w.Open(ctx, tranca.CreateRequest{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a third of two: %v", err)
	}
	if err := first.Close(t.Context()); err != nil {
		t.Error(err)
	}
	openSession(t, w, tranca.Narrowing{})
}

func TestUnkillable(t *testing.T) {
	var stuck atomic.Bool
	stuck.Store(true)
	w := setup(t, fake.Options{KillErr: func() error {
		if stuck.Load() {
			return errors.New("the kernel doesn't kill it")
		}
		return nil
	}}, func(c *engine.Config) { c.Policy.Limits.Wall = 30 * time.Millisecond })
	res := w.run(t, "sleep", "60")
	if res.Exit.Reason != tranca.EndError || !strings.Contains(strings.Join(res.Notes, " "), "doesn't kill it") {
		t.Errorf("%+v, %q", res.Exit, res.Notes)
	}
}

func TestNotDestroyed(t *testing.T) {
	w := setup(t, fake.Options{CloseErr: func() error { return errors.New("a mount is busy") }}, nil)
	res := w.run(t, "exit")
	if res.Exit.Reason != tranca.EndError || !strings.Contains(strings.Join(res.Notes, " "), "may remain on the host: a mount is busy") {
		t.Errorf("%+v, %q", res.Exit, res.Notes)
	}
}

// TestShareOfWhatRemains is kept until the sandbox could be destroyed, and then
// given back.
func TestShareOfWhatRemains(t *testing.T) {
	for name, leave := range map[string]func(*world){
		"run": func(w *world) { w.run(t, "exit") },
		"session": func(w *world) {
			s := opens(t, w, tranca.CreateRequest{})
			if err := s.Close(t.Context()); err == nil {
				t.Error("it was destroyed")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := setup(t, fake.Options{CloseErr: func() error { return errors.New("a mount is busy") }},
				func(c *engine.Config) { c.MaxSandboxes = 1 })
			leave(w)
			if n := w.Stats().Sandboxes; n != 1 {
				t.Errorf("%d sandboxes are counted while one remains", n)
			}
			w.run(t, "exit")
		})
	}
}

func TestThousandsOfRequests(t *testing.T) {
	w := setup(t, fake.Options{}, func(c *engine.Config) { c.MaxInFlight, c.MaxQueue = 4, 500 })
	var ok, busy atomic.Int64
	var all sync.WaitGroup
	for range 3000 {
		all.Go(func() {
			res, err := w.Run(context.Background(), command("print", "x"))
			switch {
			case err == nil && string(res.Stdout) == "x":
				ok.Add(1)
			case errors.Is(err, tranca.ErrBusy):
				busy.Add(1)
			default:
				t.Errorf("%+v, %v", res, err)
			}
		})
	}
	all.Wait()
	if ok.Load() < 4 || ok.Load()+busy.Load() != 3000 {
		t.Errorf("%d ran, %d were turned away", ok.Load(), busy.Load())
	}
}

// TestCancelAtAnyMoment lets the caller go at many moments: it is a result or
// an error, and nothing is left.
func TestCancelAtAnyMoment(t *testing.T) {
	w := setup(t, fake.Options{}, nil)
	for i := range 100 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*20*time.Microsecond)
		res, err := w.Run(ctx, command("sleep", "60"))
		cancel()
		if err == nil && res.Exit.Reason != tranca.EndClosed || err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%+v, %v", res, err)
		}
		if n := w.fake.Live(); n != 0 {
			t.Fatalf("%d sandboxes are left", n)
		}
	}
}

// BenchmarkRun measures what the engine itself adds to a run.
func BenchmarkRun(b *testing.B) {
	r, err := backend.NewRegistry(fake.New(fake.Options{}))
	if err != nil {
		b.Fatal(err)
	}
	e, err := engine.New(engine.Config{Backends: r, Policy: policy.Default()})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close(context.Background())
	for b.Loop() {
		if _, err := e.Run(context.Background(), command("exit")); err != nil {
			b.Fatal(err)
		}
	}
}
