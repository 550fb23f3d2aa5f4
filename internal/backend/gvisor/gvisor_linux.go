package gvisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"tranca"
	"tranca/internal/advisory"
	"tranca/internal/backend/gvisor/image"
	"tranca/internal/confine"
	"tranca/internal/guest/host"
	"tranca/internal/linux/seccomp"
	"tranca/internal/machine"
)

// Name is the backend's name in policies and flags.
const Name = "gvisor"

// The platforms: the ways in which a Sentry gets at the code's system calls.
const (
	// Systrap works everywhere.
	Systrap = "systrap"
	// KVM needs a processor that virtualizes, and is used only where a trial
	// sandbox has booted with it.
	KVM = "kvm"
)

// Options say what the operator decides about the host.
type Options struct {
	confine.Options
	// Platform is Systrap or KVM; empty is Systrap.
	Platform string
	// CacheFolder is where the second binary is unpacked; empty is "tranca" in
	// the user's cache folder.
	CacheFolder string
	// DebugLog is a file to which Sentries append their log; empty is none.
	// What they say last is then there, and in no result.
	DebugLog string
	// Advisories are the known holes of versions; nil is the built-in table.
	Advisories *advisory.InForce
}

// Backend makes sandboxes under gVisor. Make one with [New].
type Backend struct {
	options Options
	host    *confine.Host
	report  tranca.Report
	agent   *os.File // the guest agent's binary
	sentry  *os.File // the second binary
	spawner *confine.Spawner

	// weaken takes a guarantee away, to see its tests fail. Only tests set it.
	weaken func(*plan)

	shelf *confine.Shelf
	tree  confine.HostTree

	life machine.Lifetime

	mu      sync.Mutex
	filter  []byte    // the code's, once it is compiled
	trial   sync.Once // of a platform that has to be tried
	refused error     // what the trial said
}

var _ tranca.Backend = (*Backend)(nil)

// New looks at the host and makes a backend. It unpacks the second binary where
// that has not been done, and sweeps what dead supervisors left behind. It
// fails where this program has no gVisor in it; a host that lacks something is
// reported by Probe and refused by Create.
func New(o Options) (*Backend, error) {
	switch o.Platform {
	case "":
		o.Platform = Systrap
	case Systrap, KVM:
	default:
		return nil, fmt.Errorf("%w: gVisor has no platform %q: it is %s or %s", tranca.ErrInvalid, o.Platform, Systrap, KVM)
	}
	b := &Backend{options: o}
	var err error
	if b.sentry, err = image.Open(o.CacheFolder); err != nil {
		return nil, err
	}
	if b.agent, err = agentImage(); err != nil {
		return nil, errors.Join(err, b.sentry.Close())
	}
	if b.host, err = confine.OpenHost(Name, o.Options); err != nil {
		return nil, errors.Join(err, b.sentry.Close(), b.agent.Close())
	}
	b.report = b.findings()
	b.shelf = confine.NewShelf(b.host)
	b.spawner = confine.NewSpawner()
	return b, nil
}

// agentImage is the guest agent's binary, opened for reading alone: a Sentry
// executes no other.
func agentImage() (*os.File, error) {
	f, err := confine.AgentImage()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return os.Open(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
}

// Name returns "gvisor".
func (b *Backend) Name() string { return Name }

// Level returns the level that the backend has wherever it runs.
func (b *Backend) Level() tranca.Level { return tranca.LevelGVisor }

// Attach is always [tranca.ErrGone]: a Sentry dies with its supervisor.
func (b *Backend) Attach(_ context.Context, id tranca.ID) (tranca.Sandbox, error) {
	return nil, fmt.Errorf("%w: sandbox %s: a gVisor sandbox dies with the process that made it", tranca.ErrGone, id)
}

// Create makes a sandbox. See [tranca.Backend].
func (b *Backend) Create(ctx context.Context, spec tranca.Spec) (tranca.Sandbox, error) {
	if err := b.life.Enter(Name); err != nil {
		return nil, err
	}
	m, err := b.create(ctx, &spec)
	if err != nil {
		b.life.Leave()
		return nil, err
	}
	sb, err := host.New(m, spec)
	if err != nil {
		return nil, errors.Join(err, m.Close(context.WithoutCancel(ctx)))
	}
	return sb, nil
}

// create boots a machine that says when it is gone.
func (b *Backend) create(ctx context.Context, spec *tranca.Spec) (*box, error) {
	if err := b.usable(ctx); err != nil {
		return nil, err
	}
	if err := confine.Accepts(&b.report, &spec.Policy); err != nil {
		return nil, err
	}
	groups := b.groupsOf(&spec.Policy)
	return b.boot(ctx, spec, func() {
		b.shelf.MakeAhead(groups)
		b.life.Leave()
	})
}

// codeFilter compiles the code's seccomp program once. Unix sockets are the
// Sentry's own: none of the host's is behind one.
func (b *Backend) codeFilter() ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.filter == nil {
		prog, err := seccomp.Compile(seccomp.Profile{UnixSockets: true})
		if err != nil {
			return nil, fmt.Errorf("%w: %w", tranca.ErrUnavailable, err)
		}
		b.filter = prog.Bytes()
	}
	return b.filter, nil
}

// Close waits for the sandboxes to be closed by their owners, and frees what
// the backend holds. If ctx ends first, it frees nothing and returns the
// context's error.
func (b *Backend) Close(ctx context.Context) error {
	return b.life.Close(ctx, Name, func() error {
		b.spawner.Close()
		return errors.Join(b.shelf.Clear(), b.agent.Close(), b.sentry.Close(), b.host.Close())
	})
}
