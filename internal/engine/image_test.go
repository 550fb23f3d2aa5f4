package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"tranca"
	"tranca/internal/backend/fake"
	"tranca/internal/engine"
	"tranca/internal/policy"
)

// images is a store with any image but "none". It counts who holds them.
type images struct {
	mu           sync.Mutex
	opened, held int
}

func (i *images) Open(_ context.Context, name string) (*tranca.Image, func(), error) {
	if name == "none" {
		return nil, nil, &tranca.RefusalError{Problems: []tranca.Problem{{
			Item: tranca.ItemFiles, Asked: "image none", Missing: "there is no image none", Mend: "tranca image pull none",
		}}}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.opened++
	i.held++
	return &tranca.Image{Name: name, Digest: "sha256:" + strings.Repeat("0", 64), Root: "/nowhere"}, func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.held--
	}, nil
}

func (i *images) counts() (opened, held int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.opened, i.held
}

func withImage(t *testing.T, o fake.Options, name string) (*engine.Engine, *images) {
	t.Helper()
	p := policy.Default()
	p.Image, p.Floor = name, tranca.LevelProcess
	store := &images{}
	e, err := engine.New(engine.Config{
		Backends: registry(t, fake.New(o)), Policy: p, Images: store,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e, store
}

func TestARunHoldsItsImageAndSaysWhich(t *testing.T) {
	e, store := withImage(t, fake.Options{}, "code")
	res, err := e.Run(t.Context(), command("exit"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(res.ImageDigest, "sha256:00") {
		t.Errorf("digest %q", res.ImageDigest)
	}
	if opened, held := store.counts(); opened != 1 || held != 0 {
		t.Errorf("opened %d times, %d still held", opened, held)
	}
}

func TestASessionHoldsItsImageUntilItIsGone(t *testing.T) {
	e, store := withImage(t, fake.Options{}, "code")
	s, err := e.Open(t.Context(), tranca.CreateRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if res := in(t, s, command("exit")); res.ImageDigest == "" {
			t.Error("a run of a session does not say its image")
		}
	}
	if opened, held := store.counts(); opened != 1 || held != 1 {
		t.Errorf("opened %d times, %d held", opened, held)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, held := store.counts(); held != 0 {
		t.Errorf("%d held after the end", held)
	}
}

func TestAnImageIsLetGoWhereNoSandboxIsMade(t *testing.T) {
	e, store := withImage(t, fake.Options{CreateErr: func() error { return errors.New("broken") }}, "code")
	if _, err := e.Run(t.Context(), command("exit")); err == nil {
		t.Fatal("it ran")
	}
	if opened, held := store.counts(); opened != 1 || held != 0 {
		t.Errorf("opened %d times, %d still held", opened, held)
	}
}

func TestAMissingImageIsRefusedWithItsMend(t *testing.T) {
	e, _ := withImage(t, fake.Options{}, "none")
	_, err := e.Run(t.Context(), command("exit"))
	var refused *tranca.RefusalError
	if !errors.As(err, &refused) || refused.Problems[0].Mend != "tranca image pull none" {
		t.Errorf("%v", err)
	}
}

func TestTheHostsTreeNeedsNoStore(t *testing.T) {
	w := setup(t, fake.Options{}, nil)
	res, err := w.Run(t.Context(), command("exit"))
	if err != nil || res.ImageDigest != "" {
		t.Errorf("%v, %v", res, err)
	}
	p := policy.Default()
	p.Image, p.Floor = "code", tranca.LevelProcess
	e, err := engine.New(engine.Config{Backends: registry(t, fake.New(fake.Options{})), Policy: p})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(context.Background())
	var refused *tranca.RefusalError
	if _, err := e.Run(t.Context(), command("exit")); !errors.As(err, &refused) || refused.Problems[0].Item != tranca.ItemFiles {
		t.Errorf("an image without a store: %v", err)
	}
}
