package local_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"tranca"
	"tranca/internal/backend/fake"
	"tranca/local"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, opts ...local.Option) *local.Local {
	t.Helper()
	l, err := local.New(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func TestRun(t *testing.T) {
	seen := make(chan tranca.Event, 100)
	l := open(t, local.WithBackend(fake.New(fake.Options{})), local.WithMaxInFlight(1), local.WithMaxQueue(5),
		local.WithObserver(func(e tranca.Event) { seen <- e }))
	res, err := l.Run(t.Context(), "print hello")
	if err != nil || string(res.Stdout) != "hello" || res.Backend != "fake" || len(seen) != 5 {
		t.Errorf("%+v, %v, %d events", res, err, len(seen))
	}
	res, err = l.RunRequest(t.Context(), tranca.Request{Language: "sh", Code: "exit 4"})
	if err != nil || res.Exit.Code != 4 {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestSession(t *testing.T) {
	l := open(t, local.WithBackend(fake.New(fake.Options{})))
	s, err := l.Open(t.Context(), tranca.Narrowing{})
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range []string{"write a b", "read a"} {
		if res, err := s.Run(t.Context(), tranca.Request{Code: code}); err != nil || !res.Exit.Success() {
			t.Errorf("%+v, %v", res, err)
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// unsaid hides the level that a backend has.
type unsaid struct{ tranca.Backend }

func TestFloor(t *testing.T) {
	weak := func() tranca.Backend {
		return fake.New(fake.Options{Name: "weak", Level: tranca.LevelSubprocess})
	}
	for name, b := range map[string]tranca.Backend{"said": weak(), "found by a probe": unsaid{weak()}} {
		l := open(t, local.WithBackend(b))
		res, err := l.Run(t.Context(), "exit 0")
		if err != nil || res.Isolation != tranca.LevelSubprocess || res.Policy.Source != "flags" {
			t.Errorf("%s: a backend that is named: %+v, %v", name, res, err)
		}
	}
	l := open(t, local.WithBackend(weak()), local.WithPolicy(local.DefaultPolicy()))
	if _, err := l.Run(t.Context(), "exit 0"); !errors.Is(err, tranca.ErrRefused) {
		t.Errorf("below the floor of a policy that was given: %v", err)
	}
	l = open(t, local.WithBackend(weak()), local.WithBackend(fake.New(fake.Options{})))
	if res, err := l.Run(t.Context(), "exit 0"); err != nil || res.Backend != "fake" {
		t.Errorf("one of several: %+v, %v", res, err)
	}
}

func TestPolicyFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte("version: 1\nlimits:\n  output:\n    size: 4KiB\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := open(t, local.WithBackend(fake.New(fake.Options{})), local.WithPolicyFile(file))
	res, err := l.Run(t.Context(), "flood 10000")
	if err != nil || len(res.Stdout) != 4096 || !res.StdoutTruncated || res.Policy.Source != file {
		t.Errorf("%d bytes, %q, %v", len(res.Stdout), res.Policy.Source, err)
	}
	if l.Policy().Limits.Output.Size != 4096 {
		t.Errorf("%+v", l.Policy().Limits)
	}
}

func TestBadOptions(t *testing.T) {
	closed := &counting{Backend: fake.New(fake.Options{})}
	bad := local.DefaultPolicy()
	bad.Limits.Processes = 0
	for name, opts := range map[string][]local.Option{
		"two policies":  {local.WithPolicy(local.DefaultPolicy()), local.WithPolicy(local.DefaultPolicy())},
		"no place":      {local.WithMaxInFlight(0)},
		"no queue":      {local.WithMaxQueue(-1)},
		"a bad policy":  {local.WithPolicy(bad)},
		"missing file":  {local.WithPolicyFile(filepath.Join(t.TempDir(), "missing"))},
		"same backends": {local.WithBackend(fake.New(fake.Options{}))},
	} {
		before := closed.n
		_, err := local.New(append(opts, local.WithBackend(closed))...)
		if !errors.Is(err, tranca.ErrInvalid) && !errors.Is(err, tranca.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
		if closed.n != before+1 {
			t.Errorf("%s: the backend was not closed", name)
		}
	}
}

// counting counts how often it is closed.
type counting struct {
	tranca.Backend
	n int
}

func (c *counting) Close(context.Context) error { c.n++; return nil }

func TestParseAndLanguages(t *testing.T) {
	if _, err := local.ParsePolicy("mine.yaml", []byte("version: 1\nflor: process\n")); !errors.Is(err, tranca.ErrInvalid) || !strings.Contains(err.Error(), "mine.yaml") {
		t.Error(err)
	}
	if p, err := local.ParsePolicy("mine.yaml", []byte("version: 1\nfloor: microvm\n")); err != nil || p.Floor != tranca.LevelMicroVM {
		t.Errorf("%v, %v", p.Floor, err)
	}
	if l := local.Languages(); len(l) < 2 || l[0] != "python" {
		t.Errorf("%v", l)
	}
}
