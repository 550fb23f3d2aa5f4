package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tranca"
	"tranca/internal/backend/fake"
	"tranca/internal/changeset"
	"tranca/internal/engine"
)

// copying is a backend whose sandboxes have written what is in a folder.
type copying struct {
	tranca.Backend
	upper string
}

func (b *copying) Create(ctx context.Context, spec tranca.Spec) (tranca.Sandbox, error) {
	sb, err := b.Backend.Create(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &copyingSandbox{sb, b.upper}, nil
}

type copyingSandbox struct {
	tranca.Sandbox
	upper string
}

func (s *copyingSandbox) OpenChanges(string) (*os.File, error) { return os.Open(s.upper) }

// copies is an engine over it, and where it keeps changes.
type copies struct {
	*engine.Engine
	host, upper, state string
	store              *changeset.Store
}

func newCopies(t *testing.T, opt fake.Options, change func(*engine.Config)) *copies {
	t.Helper()
	base := t.TempDir()
	c := &copies{host: filepath.Join(base, "host"), upper: filepath.Join(base, "upper"), state: filepath.Join(base, "state")}
	for _, dir := range []string{c.host, c.upper} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if c.store, err = changeset.OpenStore(c.state); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.store.Close() })
	opt.Facts = map[string]string{tranca.FactMounts: "ro, rw, cow"}
	w := setup(t, opt, func(cfg *engine.Config) {
		all := cfg.Backends.All()
		cfg.Backends = registry(t, &copying{all[0], c.upper})
		cfg.Policy.Mounts = []tranca.Mount{{Source: c.host, Target: "/p", Cow: true}}
		cfg.Changes = func() (*changeset.Store, error) { return changeset.OpenStore(c.state) }
		if change != nil {
			change(cfg)
		}
	})
	c.Engine = w.Engine
	return c
}

func (c *copies) write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(c.upper, name), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestCopiesKept(t *testing.T) {
	c := newCopies(t, fake.Options{}, nil)
	req := tranca.Request{Command: []string{"exit"}}
	res, err := c.Run(t.Context(), req)
	if err != nil || res.ChangesState != "" || len(res.Changes) > 0 {
		t.Fatalf("without changes: %v, %+v", err, res)
	}
	c.write(t, "new", "content")
	c.write(t, ".envrc", "evil")
	if res, err = c.Run(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	want := []tranca.Change{
		{Path: "/p/.envrc", Kind: tranca.ChangeCreated, Size: 4, HostExecutable: true},
		{Path: "/p/new", Kind: tranca.ChangeCreated, Size: 7},
	}
	if res.ChangesState != tranca.ChangesKept || !slices.Equal(res.Changes, want) {
		t.Errorf("%q, changes %+v", res.ChangesState, res.Changes)
	}
	if set, err := c.store.Get(res.ID); err != nil || len(set.Entries) != 2 {
		t.Errorf("%v, %+v", err, set)
	}
	if names, err := os.ReadDir(c.state); err != nil || len(names) != 1 {
		t.Errorf("the store has %v, %v", names, err)
	}
}

// TestCopiesLost says so where what was written can't be kept.
func TestCopiesLost(t *testing.T) {
	t.Run("store", func(t *testing.T) {
		c := newCopies(t, fake.Options{}, nil)
		c.write(t, "new", "content")
		if _, err := c.Run(t.Context(), tranca.Request{Command: []string{"exit"}}); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(c.state); err != nil {
			t.Fatal(err)
		}
		res, err := c.Run(t.Context(), tranca.Request{Command: []string{"exit"}})
		if err != nil || res.ChangesState != tranca.ChangesLost || !res.Exit.Success() || !noted(res, "is lost") {
			t.Errorf("%v, %+v", err, res)
		}
	})
	t.Run("alive", func(t *testing.T) {
		kills := 0
		c := newCopies(t, fake.Options{KillErr: func() error {
			if kills++; kills == 1 {
				return errors.New("it does not die")
			}
			return nil
		}}, nil)
		c.write(t, "new", "content")
		res, err := c.Run(t.Context(), tranca.Request{Command: []string{"exit"}})
		if err != nil || res.ChangesState != tranca.ChangesLost || !noted(res, "does not die") {
			t.Errorf("%v, %+v", err, res)
		}
	})
}

func noted(res *tranca.Result, words string) bool {
	return slices.ContainsFunc(res.Notes, func(n string) bool { return strings.Contains(n, words) })
}

// TestCopiesRefused runs nothing whose work could not be kept.
func TestCopiesRefused(t *testing.T) {
	for name, change := range map[string]func(*engine.Config){
		"no store": func(cfg *engine.Config) { cfg.Changes = nil },
		"broken store": func(cfg *engine.Config) {
			cfg.Changes = func() (*changeset.Store, error) { return nil, errors.New("disk") }
		},
		"no folder": func(cfg *engine.Config) { cfg.Policy.Mounts[0].Source = "/no/such/folder" },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCopies(t, fake.Options{}, change)
			_, err := c.Run(t.Context(), tranca.Request{Command: []string{"exit"}})
			if !errors.Is(err, tranca.ErrRefused) && !errors.Is(err, tranca.ErrInvalid) {
				t.Errorf("run: %v", err)
			}
			var r *tranca.RefusalError
			if name == "no store" && (!errors.As(err, &r) || !strings.HasPrefix(r.Problems[0].Mend, "mode: ro")) {
				t.Errorf("what mends it: %v", err)
			}
			if _, err := c.Open(t.Context(), tranca.CreateRequest{}); err == nil {
				t.Error("a session was opened")
			}
		})
	}
}

func TestCopiesOfSession(t *testing.T) {
	c := newCopies(t, fake.Options{}, nil)
	s, err := c.Open(t.Context(), tranca.CreateRequest{})
	if err != nil {
		t.Fatal(err)
	}
	c.write(t, "first", "1")
	res, err := s.Run(t.Context(), tranca.Request{Command: []string{"exit"}})
	if err != nil || len(res.Changes) != 1 || res.ChangesState != "" {
		t.Fatalf("%v, %+v", err, res)
	}
	c.write(t, "second", "2")
	changes, notes, err := s.Changes(t.Context())
	if err != nil || len(changes) != 2 || len(notes) > 0 {
		t.Errorf("%v, %v, %v", changes, notes, err)
	}
	if _, err := c.store.Get(s.ID()); !errors.Is(err, tranca.ErrNotFound) {
		t.Errorf("kept before its end: %v", err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if set, err := c.store.Get(s.ID()); err != nil || len(set.Entries) != 2 {
		t.Errorf("after its end: %v, %+v", err, set)
	}
	if _, _, err := s.Changes(t.Context()); !errors.Is(err, tranca.ErrGone) {
		t.Errorf("changes of a session that has ended: %v", err)
	}
}
