package fake

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"tranca"
)

// Options say what the backend pretends to be.
type Options struct {
	// Name is "fake" if empty.
	Name string
	// Level is [tranca.LevelGVisor] if 0, which the default policy accepts.
	Level tranca.Level
	// Missing lists items that it says it does not hold.
	Missing []tranca.Item
	// Facts are added to those of its report. Without them it shows the host's
	// tree and those of images.
	Facts map[string]string
	// Advisories are the known holes that it reports.
	Advisories []tranca.Advisory
	// ProbeErr, where set, is asked at each probe.
	ProbeErr func() error
	// CreateErr, where set, is asked at each creation.
	CreateErr func() error
	// CloseErr, where set, is asked when a sandbox is closed, after which it
	// is gone all the same.
	CloseErr func() error
	// KillErr, where set, is asked at each kill of a sandbox; with an error
	// nothing is killed.
	KillErr func() error
	// SignalErr, where set, is asked at each signal to a process; with an error
	// none is delivered.
	SignalErr func() error
}

// Backend is the fake. Safe for concurrent use.
type Backend struct {
	opt Options

	mu     sync.Mutex
	live   map[tranca.ID]*sandbox
	probes int
	closed bool
}

var _ tranca.Backend = (*Backend)(nil)

// New makes a fake backend.
func New(opt Options) *Backend {
	if opt.Name == "" {
		opt.Name = "fake"
	}
	if opt.Level == 0 {
		opt.Level = tranca.LevelGVisor
	}
	return &Backend{opt: opt, live: map[tranca.ID]*sandbox{}}
}

// Name returns the name from the options.
func (b *Backend) Name() string { return b.opt.Name }

// Level returns the level from the options.
func (b *Backend) Level() tranca.Level { return b.opt.Level }

// Probe reports every item as held but those that the options name.
func (b *Backend) Probe(ctx context.Context) (tranca.Report, error) {
	b.mu.Lock()
	b.probes++
	b.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return tranca.Report{}, err
	}
	if b.opt.ProbeErr != nil {
		if err := b.opt.ProbeErr(); err != nil {
			return tranca.Report{}, err
		}
	}
	r := tranca.Report{
		Backend: b.Name(), Level: b.opt.Level, Advisories: slices.Clone(b.opt.Advisories),
		Facts: map[string]string{"landlock ABI": "7", tranca.FactRoots: "host, image"},
	}
	maps.Copy(r.Facts, b.opt.Facts)
	for _, item := range tranca.Items() {
		g := tranca.Guarantee{Item: item, Held: true, Mechanism: "memory of the fake"}
		if slices.Contains(b.opt.Missing, item) {
			g = tranca.Guarantee{Item: item, Missing: "the fake leaves it out", Mend: "fake.Options"}
		}
		r.Guarantees = append(r.Guarantees, g)
	}
	return r, nil
}

// Create makes a sandbox.
func (b *Backend) Create(ctx context.Context, spec tranca.Spec) (tranca.Sandbox, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if b.opt.CreateErr != nil {
		if err := b.opt.CreateErr(); err != nil {
			return nil, err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, fmt.Errorf("%w: backend %s", tranca.ErrClosed, b.Name())
	}
	if b.live[spec.ID] != nil {
		return nil, fmt.Errorf("%w: sandbox %s", tranca.ErrExists, spec.ID)
	}
	s := newSandbox(b, spec)
	b.live[spec.ID] = s
	return s, nil
}

// Attach finds a sandbox that this backend has made.
func (b *Backend) Attach(_ context.Context, id tranca.ID) (tranca.Sandbox, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.live[id]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("%w: sandbox %s", tranca.ErrGone, id)
}

// Close refuses further sandboxes.
func (b *Backend) Close(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return nil
}

// Live returns how many sandboxes are not closed.
func (b *Backend) Live() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.live)
}

// Probes returns how often Probe was called.
func (b *Backend) Probes() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.probes
}

func (b *Backend) forget(id tranca.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.live, id)
}
