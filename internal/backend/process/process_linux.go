package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"tranca"
	"tranca/internal/confine"
	"tranca/internal/guest/host"
	"tranca/internal/linux/seccomp"
	"tranca/internal/machine"
)

// Name is the backend's name in policies and flags.
const Name = "process"

// Options say what the operator decides about the host.
type Options = confine.Options

// Backend makes locked processes. Make one with [New].
type Backend struct {
	host    *confine.Host
	report  tranca.Report
	image   *os.File
	spawner *confine.Spawner

	// weaken takes a guarantee away, to see its tests fail. Only tests set it.
	weaken func(*plan)

	shelf *confine.Shelf
	tree  confine.HostTree

	mu      sync.Mutex
	filters map[seccomp.Profile][]byte

	life machine.Lifetime
}

var _ tranca.Backend = (*Backend)(nil)

// New looks at the host and makes a backend. It sweeps what dead supervisors
// left behind, and nothing of living ones. It fails only where tranca itself
// is at fault or out of resources; a host that lacks something is reported by
// Probe and refused by Create.
func New(o Options) (*Backend, error) {
	// Side by side: each waits for the kernel.
	type made struct {
		file *os.File
		err  error
	}
	img := make(chan made, 1)
	go func() {
		file, err := confine.AgentImage()
		img <- made{file, err}
	}()
	h, err := confine.OpenHost(Name, o)
	agent := <-img
	if err != nil || agent.err != nil {
		if agent.err == nil {
			agent.err = agent.file.Close()
		}
		if err == nil {
			err = h.Close()
		}
		return nil, errors.Join(err, agent.err)
	}
	return &Backend{
		host: h, report: findings(h), image: agent.file, spawner: confine.NewSpawner(), shelf: confine.NewShelf(h),
		filters: map[seccomp.Profile][]byte{},
	}, nil
}

// Name returns "process".
func (b *Backend) Name() string { return Name }

// Level returns the level that the backend has wherever it runs.
func (b *Backend) Level() tranca.Level { return tranca.LevelProcess }

// Attach is always [tranca.ErrGone]: a locked process dies with its
// supervisor.
func (b *Backend) Attach(_ context.Context, id tranca.ID) (tranca.Sandbox, error) {
	return nil, fmt.Errorf("%w: sandbox %s: a locked process dies with the process that made it", tranca.ErrGone, id)
}

// Create makes a sandbox. See [tranca.Backend].
func (b *Backend) Create(ctx context.Context, spec tranca.Spec) (tranca.Sandbox, error) {
	if err := b.life.Enter(Name); err != nil {
		return nil, err
	}
	if err := b.accepts(&spec.Policy); err != nil {
		b.life.Leave()
		return nil, err
	}
	groups := b.host.GroupLimits(spec.Policy.Limits)
	box, err := b.boot(ctx, &spec, func() {
		b.shelf.MakeAhead(groups)
		b.life.Leave()
	})
	if err != nil {
		b.life.Leave()
		return nil, err
	}
	sb, err := host.New(box, spec)
	if err != nil {
		return nil, errors.Join(err, box.Close(context.WithoutCancel(ctx)))
	}
	return sb, nil
}

// accepts refuses what this host can't enforce and the operator did not waive.
func (b *Backend) accepts(p *tranca.Policy) error {
	if err := confine.TooOld(Name); err != nil {
		return err
	}
	return confine.Accepts(&b.report, p)
}

// filter compiles a seccomp program once for each profile.
func (b *Backend) filter(p seccomp.Profile) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if f, ok := b.filters[p]; ok {
		return f, nil
	}
	prog, err := seccomp.Compile(p)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", tranca.ErrUnavailable, err)
	}
	b.filters[p] = prog.Bytes()
	return b.filters[p], nil
}

// Close waits for the sandboxes to be closed by their owners, and frees what
// the backend holds. If ctx ends first, it frees nothing and returns the
// context's error.
func (b *Backend) Close(ctx context.Context) error {
	return b.life.Close(ctx, Name, func() error {
		b.spawner.Close()
		return errors.Join(b.shelf.Clear(), b.image.Close(), b.host.Close())
	})
}
