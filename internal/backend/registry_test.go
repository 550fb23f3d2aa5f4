package backend_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"tranca"
	"tranca/internal/backend"
	"tranca/internal/backend/fake"
)

func named(name string, l tranca.Level) tranca.Backend {
	return fake.New(fake.Options{Name: name, Level: l})
}

// silent is a backend that doesn't say its level; wrapped says it through a
// wrapper.
type (
	silent  struct{ tranca.Backend }
	wrapped struct{ tranca.Backend }
)

func (w wrapped) Unwrap() tranca.Backend { return w.Backend }

func TestOrder(t *testing.T) {
	r, err := backend.NewRegistry(
		silent{named("unsaid", tranca.LevelSubprocess)}, named("vm", tranca.LevelMicroVM),
		wrapped{named("proc", tranca.LevelProcess)}, named("proc2", tranca.LevelProcess), named("sub", tranca.LevelSubprocess),
	)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"sub", "proc", "proc2", "vm", "unsaid"}; !slices.Equal(r.Names(), want) {
		t.Errorf("%v, want %v", r.Names(), want)
	}
	all := r.All()
	all[0] = nil
	if r.All()[0] == nil {
		t.Error("the registry can be changed from outside")
	}
}

func TestGet(t *testing.T) {
	r, err := backend.NewRegistry(named("a", tranca.LevelProcess), named("b", tranca.LevelProcess))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := r.Get("b"); err != nil || b.Name() != "b" {
		t.Errorf("%v, %v", b, err)
	}
	if _, err := r.Get("c"); !errors.Is(err, tranca.ErrNotFound) || !strings.Contains(err.Error(), "[a b]") {
		t.Error(err)
	}
}

func TestBadRegistry(t *testing.T) {
	for name, backends := range map[string][]tranca.Backend{
		"twice":   {named("a", tranca.LevelProcess), named("a", tranca.LevelMicroVM)},
		"nil":     {nil},
		"no name": {unnamed{named("a", tranca.LevelProcess)}},
	} {
		if _, err := backend.NewRegistry(backends...); !errors.Is(err, tranca.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type unnamed struct{ tranca.Backend }

func (unnamed) Name() string { return "" }
