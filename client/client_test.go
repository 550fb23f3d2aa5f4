package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"tranca"
)

func TestInfo(t *testing.T) {
	start(t).each(func(t *testing.T, c *Client) {
		info, err := c.Info(t.Context())
		if err != nil || info.Version != "test" || len(info.Languages) == 0 || len(info.Profiles) != 2 ||
			info.Profiles[1].Name != "strict" || info.Profiles[1].Limits.Wall != 200*time.Millisecond || !strings.HasPrefix(info.Profiles[0].Digest, "sha256:") {
			t.Errorf("%+v, %v", info, err)
		}
	})
}

func TestSandboxes(t *testing.T) {
	start(t).each(func(t *testing.T, c *Client) {
		ctx := t.Context()
		s, err := c.Create(ctx, tranca.CreateRequest{
			Profile: "strict", TTL: time.Hour, IdleTimeout: time.Minute, Metadata: map[string]string{"task": "1"},
			Narrow: tranca.Narrowing{Memory: 64 << 20, Env: map[string]string{"A": "b"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		info := s.Info()
		if info.ID != s.ID() || info.Profile != "strict" || info.IdleTimeoutMS != 60_000 || info.Metadata["task"] != "1" ||
			time.Until(info.Expires) < 59*time.Minute || len(info.Enforcement) == 0 {
			t.Errorf("%+v", info)
		}
		again, err := c.Sandbox(ctx, s.ID())
		if err != nil || again.Info().ID != s.ID() {
			t.Errorf("found again: %+v, %v", again, err)
		}
		if kept, err := s.KeepAlive(ctx, 2*time.Hour); err != nil || time.Until(kept.Expires) < 119*time.Minute || !s.Info().Expires.Equal(kept.Expires) {
			t.Errorf("kept alive: %+v, %v", kept, err)
		}
		if err := s.SetEnv(ctx, map[string]string{"B": "c"}, nil); err != nil {
			t.Error(err)
		}
		res, err := s.Run(ctx, tranca.Request{Command: []string{"env"}})
		if err != nil || !strings.Contains(string(res.Stdout), "A=b") || !strings.Contains(string(res.Stdout), "B=c") {
			t.Errorf("the environment: %+v, %v", res, err)
		}
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
		if err := s.Close(ctx); err != nil {
			t.Errorf("closed again: %v", err)
		}
		if _, err := s.Refresh(ctx); !errors.Is(err, tranca.ErrGone) || !strings.Contains(err.Error(), "destroyed") {
			t.Errorf("after the end: %v", err)
		}
	})
}

// TestList lists more than one page has.
func TestList(t *testing.T) {
	w := start(t)
	c := w.client()
	var want []tranca.ID
	for i := range 5 {
		s, err := c.Create(t.Context(), tranca.CreateRequest{Metadata: map[string]string{"odd": fmt.Sprint(i % 2)}})
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, s.ID())
	}
	all, err := c.list(t.Context(), ListOptions{}, 2)
	if err != nil || len(all) != 5 {
		t.Fatalf("%d, %v", len(all), err)
	}
	for i, info := range all {
		if info.ID != want[i] {
			t.Errorf("%d is %s, want %s", i, info.ID, want[i])
		}
	}
	odd, err := c.List(t.Context(), ListOptions{Metadata: map[string]string{"odd": "1"}})
	if err != nil || len(odd) != 2 || odd[0].ID != want[1] {
		t.Errorf("%+v, %v", odd, err)
	}
}

func TestErrorsKeepTheirClass(t *testing.T) {
	start(t).each(func(t *testing.T, c *Client) {
		ctx := t.Context()
		s := create(t, c)
		_, unknown := c.Sandbox(ctx, "nobody")
		_, escape := c.Sandbox(ctx, "../sandboxes")
		_, empty := c.Sandbox(ctx, "")
		_, widened := c.Create(ctx, tranca.CreateRequest{Narrow: tranca.Narrowing{Memory: 1 << 50}})
		_, profile := c.Run(ctx, tranca.Request{Code: "print 1", Profile: "other"})
		_, both := c.Run(ctx, tranca.Request{Code: "x", Command: []string{"y"}})
		_, long := c.Create(ctx, tranca.CreateRequest{TTL: 1000 * time.Hour})
		_, negative := s.KeepAlive(ctx, -time.Hour)
		_, program := s.Start(ctx, tranca.StartRequest{Args: []string{"no-such"}})
		_, process := s.Process(ctx, "p99")
		for name, tt := range map[string]struct{ err, want error }{
			"unknown": {unknown, tranca.ErrNotFound}, "escape": {escape, tranca.ErrNotFound}, "empty": {empty, tranca.ErrNotFound},
			"widened": {widened, tranca.ErrRefused}, "profile": {profile, tranca.ErrNotFound}, "both": {both, tranca.ErrInvalid},
			"long": {long, tranca.ErrInvalid}, "negative": {negative, tranca.ErrInvalid},
			"program": {program, tranca.ErrNotFound}, "process": {process, tranca.ErrNotFound},
		} {
			if !errors.Is(tt.err, tt.want) {
				t.Errorf("%s: %v, want %v", name, tt.err, tt.want)
			}
		}
		var refusal *tranca.RefusalError
		var own *Error
		if !errors.As(widened, &refusal) || len(refusal.Problems) != 1 || refusal.Problems[0].Item != tranca.ItemMemory {
			t.Errorf("the refusal: %+v", refusal)
		}
		if !errors.As(widened, &own) || own.Problem.Code != "refused" || own.Problem.RequestID == "" {
			t.Errorf("the problem: %+v", own)
		}
	})
}

func TestTheKey(t *testing.T) {
	w := start(t)
	for _, key := range []string{"", "wrong"} {
		if _, err := w.client(WithServer("http://"+w.tcp, key)).Info(t.Context()); !errors.Is(err, tranca.ErrRefused) {
			t.Errorf("key %q: %v", key, err)
		}
	}
	for _, address := range []string{
		"", "http://", "http://user:pw@host", "http://host?key=" + testKey, "https://host#x", "ftp://host", "unix://", "http://a b",
	} {
		_, err := New(WithServer(address, testKey))
		if !errors.Is(err, tranca.ErrInvalid) || strings.Contains(err.Error(), testKey) || strings.Contains(err.Error(), "pw") {
			t.Errorf("%q: %v", address, err)
		}
	}
	if _, err := New(WithServer("http://host", "a key")); !errors.Is(err, tranca.ErrInvalid) || strings.Contains(err.Error(), "a key") {
		t.Errorf("a key with a blank: %v", err)
	}
}

func TestTheServerThatIsMeant(t *testing.T) {
	w := start(t)
	t.Setenv(EnvServer, "http://"+w.tcp)
	t.Setenv(EnvKey, testKey)
	c, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Info(t.Context()); err != nil {
		t.Error(err)
	}
	t.Setenv(EnvServer, "")
	folder := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", folder)
	nobody, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer nobody.Close()
	_, err = nobody.Info(t.Context())
	if !errors.Is(err, tranca.ErrUnavailable) || !strings.Contains(err.Error(), "tranca serve") || !strings.Contains(err.Error(), folder) {
		t.Errorf("nobody listens: %v", err)
	}
	if err := os.MkdirAll(folder+"/tranca", 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(folder+"/tranca", 0o777); err != nil { // past the umask
		t.Fatal(err)
	}
	if _, err := New(); !errors.Is(err, tranca.ErrRefused) {
		t.Errorf("a folder that anybody may write to: %v", err)
	}
}

func TestAContextThatHasEnded(t *testing.T) {
	start(t).each(func(t *testing.T, c *Client) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, info := c.Info(ctx)
		_, run := c.Run(ctx, tranca.Request{Code: "print 1"})
		_, made := c.Create(ctx, tranca.CreateRequest{})
		for _, err := range []error{info, run, made} {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
		}
	})
}
