// Package hostexec is a backend from outside tranca's tree, as an example: it
// starts programs by os/exec in a folder of their own, with resource limits
// and without a network.
//
// It is as weak as it looks. It hides no files, shares the host's kernel and
// processes, and says so: its level is subprocess, and its report holds only
// what it does. Use it to see how a backend is made, not to run code that you
// don't trust.
package hostexec

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"

	"tranca"
)

// Name is the backend's name in policies.
const Name = "hostexec"

// Backend starts programs on the host. Make one with New.
type Backend struct {
	mu     sync.Mutex
	closed bool
}

// New makes a backend.
func New() *Backend { return &Backend{} }

// Name returns "hostexec".
func (b *Backend) Name() string { return Name }

// held lists what is enforced, and by what; everything else is not held.
var held = []tranca.Enforcement{
	{Item: tranca.ItemIsolation, Mechanism: "a process of this host"},
	{Item: tranca.ItemNetwork, Mechanism: "own network namespace"},
	{Item: tranca.ItemEnvironment, Mechanism: "only declared variables"},
	{Item: tranca.ItemCPUTime, Mechanism: "RLIMIT_CPU of each process"},
	{Item: tranca.ItemOpenFiles, Mechanism: "RLIMIT_NOFILE"},
	{Item: tranca.ItemFileSize, Mechanism: "RLIMIT_FSIZE"},
}

// Probe tries to start a program as Start does.
func (b *Backend) Probe(ctx context.Context) (tranca.Report, error) {
	if err := b.open(); err != nil {
		return tranca.Report{}, err
	}
	try := exec.CommandContext(ctx, "/bin/sh", "-c", ":")
	try.SysProcAttr = attributes()
	if err := try.Run(); err != nil {
		return tranca.Report{}, fmt.Errorf("%w: a network namespace can't be made: %w", tranca.ErrUnavailable, err)
	}
	r := tranca.Report{Backend: Name, Level: tranca.LevelSubprocess}
	for _, e := range held {
		r.Guarantees = append(r.Guarantees, tranca.Guarantee{Item: e.Item, Held: true, Mechanism: e.Mechanism})
	}
	return r, nil
}

// Create makes a folder for the sandbox.
func (b *Backend) Create(ctx context.Context, spec tranca.Spec) (tranca.Sandbox, error) {
	if err := b.open(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(spec.Policy.Mounts) > 0 {
		return nil, &tranca.RefusalError{Backend: Name, Problems: []tranca.Problem{{
			Item: tranca.ItemMounts, Asked: "mounts", Missing: "this backend has none",
		}}}
	}
	dir, err := os.MkdirTemp("", "hostexec-")
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return &sandbox{spec: spec, dir: dir, root: root, running: map[*process]struct{}{}}, nil
}

// Attach finds nothing: a sandbox ends with the program that made it.
func (b *Backend) Attach(_ context.Context, id tranca.ID) (tranca.Sandbox, error) {
	return nil, fmt.Errorf("%w: sandbox %s", tranca.ErrGone, id)
}

// Close refuses further sandboxes.
func (b *Backend) Close(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return nil
}

func (b *Backend) open() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return fmt.Errorf("%w: backend %s", tranca.ErrClosed, Name)
	}
	return nil
}
