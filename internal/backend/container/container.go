package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"tranca"
	"tranca/internal/advisory"
	"tranca/internal/guest/host"
	"tranca/internal/machine"
)

// Name is the backend's name in policies and flags.
const Name = "container"

// Options say what the operator decides.
type Options struct {
	// Engine names the engine: "docker", "podman", or a local socket
	// ("unix:///run/podman/podman.sock"). Empty takes the first that is there.
	Engine string
	// Image is what the engine calls the image of policies that name none.
	Image string
	// RuntimeFolder and CacheFolder are where files of this program are kept;
	// empty means the usual ones.
	RuntimeFolder, CacheFolder string
	// Advisories are the known holes of versions; nil is the built-in table.
	Advisories *advisory.InForce
}

// Backend makes sandboxes in containers. Make one with [New].
type Backend struct {
	options Options
	owner   owner
	host    *hostSide
	profile string // the engine's system call filter

	// weaken takes a guarantee away, to see its tests fail. Only tests set it.
	weaken func(*plan)

	loading sync.Mutex // held while an image is given to the engine

	life machine.Lifetime

	mu     sync.Mutex
	engine *engine // nil until one was found
	files  files
	found  map[string]finding // by runtime
}

var (
	_ tranca.Backend       = (*Backend)(nil)
	_ tranca.Reporter      = (*Backend)(nil)
	_ tranca.RuntimeProber = (*Backend)(nil)
)

// New makes a backend. It looks for an engine when it is first needed. It fails
// only where tranca itself is at fault or out of resources.
func New(o Options) (*Backend, error) {
	filter, err := profile()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", tranca.ErrUnavailable, err)
	}
	h, err := openHost(o.RuntimeFolder)
	if err != nil {
		return nil, err
	}
	return &Backend{
		options: o, owner: newOwner(), host: h, profile: filter, found: map[string]finding{},
	}, nil
}

// Name returns "container".
func (b *Backend) Name() string { return Name }

// Level returns the level of containers. A runtime with a kernel of its own has
// a higher one, which [Backend.ProbeRuntime] finds.
func (b *Backend) Level() tranca.Level { return tranca.LevelContainer }

// ready finds the engine, puts the files in place that containers see, and
// sweeps what dead processes left: all of it once.
func (b *Backend) ready(ctx context.Context) (*engine, error) {
	// Not each caller has entered.
	if err := b.life.Enter(Name); err != nil {
		return nil, err
	}
	defer b.life.Leave()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.engine != nil {
		return b.engine, nil
	}
	cached := make(chan error, 1)
	go func() {
		var err error
		b.files, err = cacheFiles(b.options.CacheFolder, b.profile)
		cached <- err
	}()
	e, err := find(ctx, b.options.Engine, os.Getenv)
	if cacheErr := <-cached; err == nil && cacheErr != nil {
		e.Close()
		err = cacheErr
	}
	if err != nil {
		return nil, err
	}
	e.known = b.options.Advisories
	b.engine = e
	// Beside the making of the first sandbox, which it has nothing to do with.
	b.life.Stay()
	go func() {
		defer b.life.Leave()
		// Somebody else's leftovers are no reason not to run.
		_ = b.sweep(context.Background(), e)
	}()
	return e, nil
}

// Attach is always [tranca.ErrGone]: a container dies with its stream, which
// the process that made it holds.
func (b *Backend) Attach(_ context.Context, id tranca.ID) (tranca.Sandbox, error) {
	return nil, fmt.Errorf("%w: sandbox %s: a container of tranca dies with the process that made it", tranca.ErrGone, id)
}

// Create makes a sandbox. See [tranca.Backend].
func (b *Backend) Create(ctx context.Context, spec tranca.Spec) (tranca.Sandbox, error) {
	if err := b.life.Enter(Name); err != nil {
		return nil, err
	}
	box, err := b.boot(ctx, &spec)
	if err != nil {
		b.life.Leave()
		return nil, err
	}
	box.closedHook = b.life.Leave
	sb, err := host.New(box, spec)
	if err != nil {
		return nil, errors.Join(err, box.Close(context.WithoutCancel(ctx)))
	}
	return sb, nil
}

// Close waits for the sandboxes to be closed by their owners, and frees what
// the backend holds. If ctx ends first, it frees nothing and returns the
// context's error.
func (b *Backend) Close(ctx context.Context) error {
	return b.life.Close(ctx, Name, func() error {
		if b.engine != nil {
			b.engine.Close()
		}
		return b.host.close()
	})
}

// The times that an engine gets.
const (
	// createTime bounds the making of a sandbox, as an image may have to be
	// unpacked first.
	createTime = 60 * time.Second
	// bootTime bounds the guest agent's answer.
	bootTime = 20 * time.Second
	// removeTime bounds a sandbox's destruction, an engine that is started anew
	// in between included.
	removeTime = 60 * time.Second
)
