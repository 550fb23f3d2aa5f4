package engine_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tranca"
	"tranca/internal/backend"
	"tranca/internal/backend/fake"
	"tranca/internal/engine"
	"tranca/internal/policy"
)

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}

// opens opens a session that the engine closes.
func opens(t *testing.T, w *world, o tranca.CreateRequest) *engine.Session {
	t.Helper()
	s, err := w.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// gone waits until a session is destroyed, and checks what is said of it.
func gone(t *testing.T, w *world, s *engine.Session, why string) {
	t.Helper()
	eventually(t, "it is destroyed", func() bool { return w.fake.Live() == 0 && w.Stats().Sandboxes == 0 })
	if _, err := w.Session(t.Context(), s.ID()); !errors.Is(err, tranca.ErrGone) || !strings.Contains(err.Error(), why) {
		t.Errorf("%v, want %q", err, why)
	}
	if len(w.Sessions()) != 0 {
		t.Errorf("%+v", w.Sessions())
	}
}

func TestTimeToLive(t *testing.T) {
	w := setup(t, fake.Options{}, nil)
	s := opens(t, w, tranca.CreateRequest{TTL: 50 * time.Millisecond})
	// What runs then is ended with it.
	res, err := s.Run(context.Background(), command("sleep", "60"))
	if err != nil || res.Exit.Reason != tranca.EndClosed || !strings.Contains(strings.Join(res.Notes, " "), "its time (50ms) was over") {
		t.Errorf("%+v, %v", res, err)
	}
	gone(t, w, s, "its time (50ms) was over")
}

func TestIdleTime(t *testing.T) {
	w := setup(t, fake.Options{}, func(c *engine.Config) { c.DefaultIdleTimeout = 50 * time.Millisecond })
	s := opens(t, w, tranca.CreateRequest{})
	if got := s.Info().IdleTimeoutMS; got != 50 {
		t.Errorf("%d", got)
	}
	// A call that waits is a use, a program that runs is none.
	if res := in(t, s, command("sleep", "0.3")); !res.Exit.Success() {
		t.Errorf("%+v", res.Exit)
	}
	p := start(t, s, words("sleep", "60"))
	gone(t, w, s, "it was idle for 50ms")
	if exit, err := p.Wait(t.Context()); err != nil || exit.Reason != tranca.EndClosed {
		t.Errorf("%+v, %v", exit, err)
	}
}

func TestKeepAlive(t *testing.T) {
	w := setup(t, fake.Options{}, func(c *engine.Config) { c.MaxTTL, c.DefaultTTL = time.Hour, time.Minute })
	s := opens(t, w, tranca.CreateRequest{})
	about := func(info tranca.SandboxInfo, want time.Duration) {
		t.Helper()
		if left := time.Until(info.Expires); left > want || left < want-30*time.Second {
			t.Errorf("it expires in %s, want %s", left, want)
		}
	}
	about(s.Info(), time.Minute)
	info, err := s.KeepAlive(time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	about(info, time.Hour)
	if info, err = s.KeepAlive(0); err != nil {
		t.Fatal(err)
	}
	about(info, time.Minute)
	for _, bad := range []time.Duration{-1, time.Hour + 1} {
		if _, err := s.KeepAlive(bad); !errors.Is(err, tranca.ErrInvalid) {
			t.Errorf("%s: %v", bad, err)
		}
		if _, err := w.Open(t.Context(), tranca.CreateRequest{TTL: bad}); !errors.Is(err, tranca.ErrInvalid) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, err := s.KeepAlive(20 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	gone(t, w, s, "its time (20ms) was over")
}

// TestUnwatchedDeath: a machine that dies while nobody asks is found.
func TestUnwatchedDeath(t *testing.T) {
	w := setup(t, fake.Options{}, nil)
	s := opens(t, w, tranca.CreateRequest{})
	p := start(t, s, words("die"))
	gone(t, w, s, "its machine died")
	if exit, err := p.Wait(t.Context()); err == nil || exit.Reason != tranca.EndError {
		t.Errorf("%+v, %v", exit, err)
	}
}

func TestStrangers(t *testing.T) {
	w := setup(t, fake.Options{}, nil)
	for _, id := range []tranca.ID{"", "i", "../x", "i0123456789abcdefghi\x00", "I0123456789abcdefghij", "i0123456789abcdefghijk"} {
		if _, err := w.Session(t.Context(), id); !errors.Is(err, tranca.ErrNotFound) {
			t.Errorf("%q: %v", id, err)
		}
	}
	// The fake remembers no sandbox, and says so as one that dies with its maker.
	if _, err := w.Session(t.Context(), tranca.NewID()); !errors.Is(err, tranca.ErrGone) {
		t.Error(err)
	}
}

// TestTombs: the last 1024 ends are remembered.
func TestTombs(t *testing.T) {
	w := setup(t, fake.Options{}, nil)
	var ids []tranca.ID
	for range 1026 {
		s := opens(t, w, tranca.CreateRequest{})
		ids = append(ids, s.ID())
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for i, id := range ids {
		_, err := w.Session(t.Context(), id)
		if remembered := strings.Contains(err.Error(), "it was destroyed"); remembered != (i >= 2) {
			t.Fatalf("%d: %v", i, err)
		}
	}
}

func TestMetadata(t *testing.T) {
	w := setup(t, fake.Options{}, nil)
	many := map[string]string{}
	for i := range 65 {
		many[itoa(i)] = ""
	}
	for name, bad := range map[string]map[string]string{
		"many": many, "empty key": {"": "x"}, "long key": {strings.Repeat("k", 129): ""},
		"long value": {"k": strings.Repeat("v", 4097)}, "bytes": {"k": "\xff"},
	} {
		if _, err := w.Open(t.Context(), tranca.CreateRequest{Metadata: bad}); !errors.Is(err, tranca.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	delete(many, "64")
	s := opens(t, w, tranca.CreateRequest{Metadata: many})
	many["0"] = "changed by its owner"
	info := s.Info()
	if len(info.Metadata) != 64 || info.Metadata["0"] != "" {
		t.Errorf("%d, %q", len(info.Metadata), info.Metadata["0"])
	}
}

func TestProfiles(t *testing.T) {
	small := policy.Default()
	small.Limits.Memory /= 2
	w := setup(t, fake.Options{}, func(c *engine.Config) {
		c.Profiles = []engine.Profile{{Name: "small", Policy: small}}
	})
	if got := w.Profiles(); !slices.Equal(got, []string{"default", "small"}) {
		t.Errorf("%q", got)
	}
	for name, want := range map[string]string{"": policy.Digest(policy.Default()), "small": policy.Digest(small)} {
		res, err := w.Run(t.Context(), tranca.Request{Command: []string{"exit"}, Profile: name})
		if err != nil || res.Policy.Digest != want {
			t.Errorf("%q: %v", name, err)
		}
		s := opens(t, w, tranca.CreateRequest{Profile: name})
		if info := s.Info(); info.Policy.Digest != want || info.Profile != max(name, "default") {
			t.Errorf("%+v", info)
		}
		if p, err := w.PolicyOf(name); err != nil || policy.Digest(p) != want {
			t.Error(err)
		}
	}
	if all := w.Sessions(); len(all) != 2 || all[1].Created.Before(all[0].Created) {
		t.Errorf("%+v", all)
	}
	_, err := w.Open(t.Context(), tranca.CreateRequest{Profile: "large"})
	if !errors.Is(err, tranca.ErrNotFound) || !strings.Contains(err.Error(), "default, small") {
		t.Error(err)
	}
	if _, err := w.Run(t.Context(), tranca.Request{Command: []string{"exit"}, Profile: "large"}); !errors.Is(err, tranca.ErrNotFound) {
		t.Error(err)
	}
	for name, bad := range map[string][]engine.Profile{
		"twice": {{"a", small}, {"a", small}}, "name": {{"A b", small}}, "policy": {{"a", tranca.Policy{}}},
		"default again": {{"default", small}},
	} {
		cfg := engine.Config{Backends: registry(t, fake.New(fake.Options{})), Policy: policy.Default(), Profiles: bad}
		if _, err := engine.New(cfg); !errors.Is(err, tranca.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSums: what all sandboxes may use together is never above the bounds,
// whatever comes, ends by itself, dies or gives up.
func TestSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := policy.Default()
		most := int64(rapid.IntRange(1, 4).Draw(t, "sandboxes")) * p.Limits.Memory
		r, err := backend.NewRegistry(fake.New(fake.Options{}))
		if err != nil {
			t.Fatal(err)
		}
		var live, peak atomic.Int64
		e, err := engine.New(engine.Config{
			Backends: r, Policy: p, MaxMemory: most, MaxInFlight: 8,
			Observer: func(ev tranca.Event) {
				switch ev.Kind {
				case tranca.EventCreated:
					if n := live.Add(p.Limits.Memory); n > peak.Load() {
						peak.Store(n)
					}
				case tranca.EventClosed:
					live.Add(-p.Limits.Memory)
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range rapid.IntRange(1, 20).Draw(t, "callers") {
			what := rapid.SampledFrom([]string{"run", "session", "dead", "impatient"}).Draw(t, "what")
			all.Go(func() {
				if err := one(e, what); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			})
		}
		all.Wait()
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if s := e.Stats(); s.Sandboxes != 0 || s.Memory != 0 || s.MilliCPUs != 0 || s.Queued != 0 || s.InFlight != 0 {
			t.Errorf("%+v", s)
		}
		if peak.Load() > most {
			t.Errorf("%d bytes at once, bound %d", peak.Load(), most)
		}
	})
}

func one(e *engine.Engine, what string) error {
	ctx := context.Background()
	switch what {
	case "run":
		_, err := e.Run(ctx, command("exit"))
		return err
	case "impatient":
		ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		if _, err := e.Run(ctx, command("exit")); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		return nil
	}
	s, err := e.Open(ctx, tranca.CreateRequest{})
	if err != nil {
		return err
	}
	if what == "dead" {
		if _, err := s.Start(ctx, words("die")); err != nil {
			return err
		}
		for { // its end comes when somebody asks
			if _, err := e.Session(ctx, s.ID()); err != nil {
				return s.Close(ctx)
			}
			runtime.Gosched()
		}
	}
	return errors.Join(s.Close(ctx), s.Close(ctx))
}

func TestWhatCouldNeverFit(t *testing.T) {
	w := setup(t, fake.Options{}, func(c *engine.Config) {
		c.MaxMemory, c.MaxMilliCPUs = c.Policy.Limits.Memory-1, c.Policy.Limits.MilliCPUs-1
	})
	_, err := w.Open(t.Context(), tranca.CreateRequest{})
	var refused *tranca.RefusalError
	if !errors.As(err, &refused) || len(refused.Problems) != 2 || refused.Problems[0].Item != tranca.ItemMemory || refused.Problems[1].Item != tranca.ItemCPUs {
		t.Fatalf("%v", err)
	}
	if want := fmt.Sprint(policy.Default().Limits.Memory-1, " bytes"); !strings.Contains(err.Error(), want) {
		t.Errorf("%v does not say %q", err, want)
	}
	n := tranca.Narrowing{Memory: policy.Default().Limits.Memory / 2, MilliCPUs: policy.Default().Limits.MilliCPUs / 2}
	if _, err := w.Run(t.Context(), tranca.Request{Command: []string{"exit"}, Narrow: n}); err != nil {
		t.Error(err)
	}
	if s := w.Stats(); s.Refused != 1 || s.Runs[tranca.EndExited] != 1 || s.RunTime.Count() != 1 {
		t.Errorf("%+v", s)
	}
}

// TestIdleSessionsAreCheap: no goroutine and little memory for each.
func TestIdleSessionsAreCheap(t *testing.T) {
	w := setup(t, fake.Options{}, func(c *engine.Config) { c.MaxSandboxes = 500 })
	opens(t, w, tranca.CreateRequest{})
	before := runtime.NumGoroutine()
	for range 400 {
		s := opens(t, w, tranca.CreateRequest{})
		p := start(t, s, words("exit"))
		ends(t, p, exited(0))
	}
	eventually(t, "what followed the programs has ended", func() bool { return runtime.NumGoroutine() <= before+10 })
}
