package suite

import (
	"context"
	"sync"

	"tranca"
	"tranca/internal/backend"
)

// Hold wraps a backend for the engines of many trials, each of which closes what
// it has: the backend stays open, and is probed once. The registry holds it
// alone.
func Hold(b tranca.Backend) (*backend.Registry, error) {
	h := &held{Backend: b, found: map[string]*found{}}
	if r, ok := tranca.As[tranca.RuntimeProber](b); ok {
		return backend.NewRegistry(&heldRuntimes{h, r})
	}
	return backend.NewRegistry(h)
}

type held struct {
	tranca.Backend

	mu    sync.Mutex
	found map[string]*found
}

type found struct {
	once   sync.Once
	report tranca.Report
	err    error
}

func (h *held) of(runtime string, probe func() (tranca.Report, error)) (tranca.Report, error) {
	h.mu.Lock()
	f := h.found[runtime]
	if f == nil {
		f = &found{}
		h.found[runtime] = f
	}
	h.mu.Unlock()
	f.once.Do(func() { f.report, f.err = probe() })
	return f.report, f.err
}

// Probe implements [tranca.Backend].
func (h *held) Probe(ctx context.Context) (tranca.Report, error) {
	ctx = context.WithoutCancel(ctx)
	return h.of("", func() (tranca.Report, error) { return h.Backend.Probe(ctx) })
}

// Close implements [tranca.Backend]: the backend stays open.
func (h *held) Close(context.Context) error { return nil }

// Unwrap gives the backend's own abilities.
func (h *held) Unwrap() tranca.Backend { return h.Backend }

type heldRuntimes struct {
	*held
	prober tranca.RuntimeProber
}

// ProbeRuntime implements [tranca.RuntimeProber].
func (h *heldRuntimes) ProbeRuntime(ctx context.Context, name string) (tranca.Report, error) {
	ctx = context.WithoutCancel(ctx)
	return h.of(name, func() (tranca.Report, error) { return h.prober.ProbeRuntime(ctx, name) })
}
