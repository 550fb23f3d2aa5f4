package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tranca"
	"tranca/internal/backend"
	"tranca/internal/backend/fake"
	"tranca/internal/engine"
	"tranca/internal/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is an engine over a fake backend, and what it told.
type world struct {
	*engine.Engine
	fake   *fake.Backend
	mu     sync.Mutex
	events []tranca.Event
}

func (w *world) observe(e tranca.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, e)
}

func (w *world) kinds() (all []tranca.EventKind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events {
		all = append(all, e.Kind)
	}
	return all
}

// setup makes an engine; change adjusts policy and configuration.
func setup(t *testing.T, opt fake.Options, change func(*engine.Config)) *world {
	t.Helper()
	w := &world{fake: fake.New(opt)}
	cfg := engine.Config{
		Backends: registry(t, w.fake), Policy: policy.Default(), Observer: w.observe,
		CloseTimeout: 5 * time.Second,
	}
	if change != nil {
		change(&cfg)
	}
	e, err := engine.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w.Engine = e
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if n := w.fake.Live(); n != 0 {
			t.Errorf("%d sandboxes are left", n)
		}
	})
	return w
}

func registry(t *testing.T, backends ...tranca.Backend) *backend.Registry {
	t.Helper()
	r, err := backend.NewRegistry(backends...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// run runs a command and returns its result.
func (w *world) run(t *testing.T, command ...string) *tranca.Result {
	t.Helper()
	res, err := w.Run(t.Context(), tranca.Request{Command: command})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestRun(t *testing.T) {
	w := setup(t, fake.Options{}, nil)
	res, err := w.Run(t.Context(), tranca.Request{Code: "print out err\nexit 3"})
	if err != nil {
		t.Fatal(err)
	}
	if string(res.Stdout) != "out" || string(res.Stderr) != "err" {
		t.Errorf("output %q, %q", res.Stdout, res.Stderr)
	}
	if want := (tranca.Exit{Code: 3, Reason: tranca.EndExited}); res.Exit != want {
		t.Errorf("exit %+v, want %+v", res.Exit, want)
	}
	if res.Backend != "fake" || res.Isolation != tranca.LevelGVisor || res.Policy.Source == "" ||
		res.Policy.Digest != policy.Digest(policy.Default()) {
		t.Errorf("result %+v", res)
	}
	if len(res.Enforcement) != len(tranca.Items()) {
		t.Errorf("%d items in the statement, want %d", len(res.Enforcement), len(tranca.Items()))
	}
	for i, item := range tranca.Items() {
		if res.Enforcement[i].Item != item {
			t.Errorf("item %d is %s, want %s", i, res.Enforcement[i].Item, item)
		}
	}
	want := []tranca.EventKind{
		tranca.EventQueued, tranca.EventCreated, tranca.EventStarted, tranca.EventEnded, tranca.EventClosed,
	}
	if got := w.kinds(); !slices.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
	if w.fake.Live() != 0 {
		t.Error("the sandbox is left")
	}
}

func TestEndReasons(t *testing.T) {
	kill := func(c *engine.Config) { c.Policy.Limits.Output.OnExceed = tranca.ExceedKill }
	wall := func(c *engine.Config) { c.Policy.Limits.Wall = 50 * time.Millisecond }
	for _, tc := range []struct {
		name    string
		change  func(*engine.Config)
		command []string
		want    tranca.Exit
		hit     []tranca.LimitHit
	}{
		{"exit 137 is no limit", nil, []string{"exit", "137"}, tranca.Exit{Code: 137, Reason: tranca.EndExited}, nil},
		{"kill itself", nil, []string{"raise", "9"}, tranca.Exit{Code: -1, Signal: 9, Reason: tranca.EndSignaled}, nil},
		{"segfault", nil, []string{"segv"}, tranca.Exit{Code: -1, Signal: 11, Reason: tranca.EndSignaled}, nil},
		{"wall", wall, []string{"sleep", "60"}, tranca.Exit{Code: -1, Signal: 9, Reason: tranca.EndWall}, nil},
		{"wall, deaf", wall, []string{"deaf"}, tranca.Exit{Code: -1, Signal: 9, Reason: tranca.EndWall}, nil},
		{"wall, tree", func(c *engine.Config) { c.Policy.Limits.Wall = time.Second }, []string{"bomb"}, tranca.Exit{Code: -1, Signal: 9, Reason: tranca.EndWall}, []tranca.LimitHit{tranca.HitPIDs}},
		{"cpu", func(c *engine.Config) { c.Policy.Limits.CPUTime = 20 * time.Millisecond }, []string{"spin"}, tranca.Exit{Code: -1, Signal: 9, Reason: tranca.EndCPU}, nil},
		{"memory", nil, []string{"alloc", "300000000"}, tranca.Exit{Code: -1, Signal: 9, Reason: tranca.EndMemory}, nil},
		{"memory of a tree", nil, []string{"allocs", "6", "60000000"}, tranca.Exit{Code: -1, Signal: 9, Reason: tranca.EndMemory}, nil},
		{"output, cut", nil, []string{"flood", "3000000"}, tranca.Exit{Reason: tranca.EndExited}, []tranca.LimitHit{tranca.HitOutput}},
		{"output, killed", kill, []string{"flood", "300000000"}, tranca.Exit{Code: -1, Signal: 9, Reason: tranca.EndOutput}, []tranca.LimitHit{tranca.HitOutput}},
		{"file size", nil, []string{"fill", "big", "70000000"}, tranca.Exit{Code: -1, Signal: 25, Reason: tranca.EndSignaled}, []tranca.LimitHit{tranca.HitFileSize}},
		{"inodes", nil, []string{"inodes", "20000"}, tranca.Exit{Reason: tranca.EndExited}, []tranca.LimitHit{tranca.HitInodes}},
		{"open files", nil, []string{"opens", "2000"}, tranca.Exit{Reason: tranca.EndExited}, []tranca.LimitHit{tranca.HitFiles}},
		{"agent killed", nil, []string{"die"}, tranca.Exit{Code: -1, Signal: tranca.SIGKILL, Reason: tranca.EndWall}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, fake.Options{}, func(c *engine.Config) {
				if tc.name == "agent killed" {
					wall(c)
				}
				if tc.change != nil {
					tc.change(c)
				}
			})
			res := w.run(t, tc.command...)
			if res.Exit != tc.want || !slices.Equal(res.LimitsHit, tc.hit) {
				t.Errorf("%+v, hit %v; want %+v, hit %v (notes %q)", res.Exit, res.LimitsHit, tc.want, tc.hit, res.Notes)
			}
		})
	}
}

func TestKilledByOutputEvenIfItEnded(t *testing.T) {
	w := setup(t, fake.Options{}, func(c *engine.Config) {
		c.Policy.Limits.Output = tranca.Output{Size: 4096, OnExceed: tranca.ExceedKill}
	})
	for range 20 { // the program ends in the moment in which it is stopped
		if res := w.run(t, "flood", "4097"); res.Exit.Reason != tranca.EndOutput {
			t.Fatalf("reason %s", res.Exit.Reason)
		}
	}
}

func TestCancel(t *testing.T) {
	w := setup(t, fake.Options{}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(30*time.Millisecond, cancel)
	res, err := w.Run(ctx, tranca.Request{Command: []string{"sleep", "60"}})
	if err != nil {
		t.Fatal(err)
	}
	if res.Exit.Reason != tranca.EndClosed {
		t.Errorf("reason %s", res.Exit.Reason)
	}
	if _, err = w.Run(ctx, tranca.Request{Command: []string{"exit"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("a dead context gave %v", err)
	}
}

func TestStdinAndArguments(t *testing.T) {
	w := setup(t, fake.Options{}, nil)
	res, err := w.Run(t.Context(), tranca.Request{Code: "cat", Stdin: strings.NewReader("the rest")})
	if err != nil || string(res.Stdout) != "the rest" {
		t.Errorf("%q, %v", res.Stdout, err)
	}
	res, err = w.Run(t.Context(), tranca.Request{Command: []string{"args"}, Args: []string{"-x", "a\xffb", "$(id)"}})
	if err != nil || string(res.Stdout) != "-x\x00a\xffb\x00$(id)" {
		t.Errorf("%q, %v", res.Stdout, err)
	}
}

func TestBadRequests(t *testing.T) {
	w := setup(t, fake.Options{}, nil)
	for name, tc := range map[string]struct {
		req  tranca.Request
		want error
		says string
	}{
		"empty code":       {tranca.Request{}, tranca.ErrInvalid, "empty"},
		"blank code":       {tranca.Request{Code: " \n\t"}, tranca.ErrInvalid, "empty"},
		"NUL in code":      {tranca.Request{Code: "x\ny\x00"}, tranca.ErrInvalid, "NUL byte at 3 (line 2)"},
		"too much code":    {tranca.Request{Code: strings.Repeat("#", 65<<20)}, tranca.ErrInvalid, "67108864"},
		"too much sh":      {tranca.Request{Code: strings.Repeat("#", 1<<20), Language: "sh"}, tranca.ErrInvalid, "sh code"},
		"NUL in argument":  {tranca.Request{Code: "x", Args: []string{"a\x00"}}, tranca.ErrInvalid, "argument 1"},
		"long argument":    {tranca.Request{Code: "x", Args: []string{strings.Repeat("a", 1<<20)}}, tranca.ErrInvalid, "argument 1"},
		"many arguments":   {tranca.Request{Code: "x", Args: make([]string, 5000)}, tranca.ErrInvalid, "5000"},
		"large arguments":  {tranca.Request{Code: "x", Args: slices.Repeat([]string{strings.Repeat("a", 1<<16)}, 17)}, tranca.ErrInvalid, "together"},
		"language":         {tranca.Request{Code: "x", Language: "cobol"}, tranca.ErrInvalid, "python, sh"},
		"code and command": {tranca.Request{Code: "x", Command: []string{"y"}}, tranca.ErrInvalid, "both"},
		"empty command":    {tranca.Request{Command: []string{""}}, tranca.ErrInvalid, "empty"},
		"no program":       {tranca.Request{Command: []string{"/nowhere"}}, tranca.ErrNotFound, "nowhere"},
		"no interpreter":   {tranca.Request{Code: "x", Language: "ruby"}, tranca.ErrNotFound, "no interpreter for ruby"},
		"more than policy": {tranca.Request{Code: "x", Narrow: tranca.Narrowing{Wall: time.Hour}}, tranca.ErrRefused, "limits.wall"},
		"negative limit":   {tranca.Request{Code: "x", Narrow: tranca.Narrowing{Memory: -1}}, tranca.ErrRefused, "limits.memory"},
		"bad variable":     {tranca.Request{Code: "x", Narrow: tranca.Narrowing{Env: map[string]string{"A=B": "1"}}}, tranca.ErrRefused, "environment"},
		"unknown backend":  {tranca.Request{Code: "x", Narrow: tranca.Narrowing{Backend: "other"}}, tranca.ErrRefused, "there is: fake"},
		"higher floor":     {tranca.Request{Code: "x", Narrow: tranca.Narrowing{Floor: tranca.LevelMicroVM}}, tranca.ErrRefused, "no backend here reaches it"},
	} {
		t.Run(name, func(t *testing.T) {
			res, err := w.Run(t.Context(), tc.req)
			if res != nil || !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, %v; want %v with %q", res, err, tc.want, tc.says)
			}
		})
	}
}

func TestHugeCode(t *testing.T) {
	w := setup(t, fake.Options{}, nil)
	code := "print hello\n" + strings.Repeat("#"+strings.Repeat(" a comment without end", 500)+"\n", 50<<20/11000)
	res, err := w.Run(t.Context(), tranca.Request{Code: code})
	if err != nil || string(res.Stdout) != "hello" {
		t.Errorf("%v, %v", res, err)
	}
}

func TestChanges(t *testing.T) {
	dir := t.TempDir()
	w := setup(t, fake.Options{}, func(c *engine.Config) {
		c.Policy.Mounts = []tranca.Mount{{Source: dir, Target: "/data", Writable: true, DiskUnbounded: true}}
		c.Observer = func(e tranca.Event) {
			if e.Kind == tranca.EventStarted { // the fake writes nothing, so the test does
				os.WriteFile(filepath.Join(dir, "new"), []byte("12345"), 0o600)
				os.WriteFile(filepath.Join(dir, ".envrc"), []byte("x"), 0o600)
			}
		}
	})
	res := w.run(t, "sleep", "0.01")
	want := []tranca.Change{
		{Path: "/data/.envrc", Kind: tranca.ChangeCreated, Size: 1, HostExecutable: true},
		{Path: "/data/new", Kind: tranca.ChangeCreated, Size: 5},
	}
	if !slices.Equal(res.Changes, want) {
		t.Errorf("changes %+v, want %+v", res.Changes, want)
	}
}
