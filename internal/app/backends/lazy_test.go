package backends

import (
	"context"
	"errors"
	"sync"
	"testing"

	"tranca"
	"tranca/internal/backend"
	"tranca/internal/backend/fake"
)

func TestABackendIsMadeOnceAndOnlyWhenItIsNeeded(t *testing.T) {
	made := 0
	b := newLazy("process", tranca.LevelProcess, func() (tranca.Backend, error) {
		made++
		return fake.New(fake.Options{Name: "process"}), nil
	})
	if b.Name() != "process" || backend.Level(b) != tranca.LevelProcess || made != 0 {
		t.Fatalf("name %s, level %v, made %d times", b.Name(), backend.Level(b), made)
	}
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			if r, err := b.Probe(t.Context()); err != nil || r.Backend != "process" {
				t.Errorf("probe: %v, %v", r.Backend, err)
			}
		})
	}
	callers.Wait()
	if made != 1 {
		t.Errorf("made %d times", made)
	}
	if _, ok := tranca.As[*fake.Backend, tranca.Backend](b); !ok {
		t.Error("the backend behind is not found")
	}
}

func TestABackendThatCannotBeMadeSaysWhy(t *testing.T) {
	why := errors.New("why")
	b := newLazy("process", tranca.LevelProcess, func() (tranca.Backend, error) {
		return (*fake.Backend)(nil), why // as a constructor's own type does
	})
	ctx := context.Background()
	_, probe := b.Probe(ctx)
	_, create := b.Create(ctx, tranca.Spec{})
	_, attach := b.Attach(ctx, "i")
	for _, err := range []error{probe, create, attach} {
		if !errors.Is(err, why) {
			t.Errorf("got %v", err)
		}
	}
	if _, ok := tranca.As[*fake.Backend, tranca.Backend](b); ok {
		t.Error("something is behind it")
	}
	if err := b.Close(ctx); err != nil {
		t.Error(err)
	}
}

func TestABackendIsNotMadeToBeClosed(t *testing.T) {
	b := newLazy("process", tranca.LevelProcess, func() (tranca.Backend, error) {
		t.Error("it was made")
		return nil, nil
	})
	if err := b.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := b.Probe(t.Context()); !errors.Is(err, tranca.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
