// Package pool wraps a backend so that sandboxes are booted ahead of their
// use. Each is used once, by one owner: what is saved is the wait for the
// boot, never a fresh sandbox.
//
// A sandbox is kept only for a policy without mounts, and with the host's own
// tree. What a mount protects or hides is looked up when the sandbox is made, and
// the host's folder may have changed since; an image is kept from being removed
// only while somebody uses it.
package pool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"tranca"
)

const (
	// bootTime bounds a boot in the background, closeTime a destruction.
	bootTime  = 30 * time.Second
	closeTime = 30 * time.Second
)

// Pool is a backend that keeps sandboxes ready. Safe for concurrent use.
type Pool struct {
	tranca.Backend
	size int

	mu      sync.Mutex
	policy  string // the policy that sandboxes are kept for, in JSON
	ready   []tranca.Sandbox
	booting int
	closed  bool
	work    sync.WaitGroup
}

var _ tranca.Backend = (*Pool)(nil)

// New wraps a backend. Up to size sandboxes are kept for the policy that was
// asked for last; with another policy they are destroyed. The first boot
// ahead happens after the first Create, or by [Pool.Prepare].
func New(b tranca.Backend, size int) *Pool { return &Pool{Backend: b, size: size} }

// Unwrap returns the wrapped backend, for [tranca.As].
func (p *Pool) Unwrap() tranca.Backend { return p.Backend }

// Prepare boots ahead for a policy and returns when as many sandboxes are
// ready as the pool keeps.
func (p *Pool) Prepare(ctx context.Context, policy tranca.Policy) error {
	key, ok := keyOf(policy)
	if !ok {
		return nil
	}
	for p.want(key) {
		sb, err := p.boot(ctx, policy)
		if err := p.keep(key, sb, err); err != nil {
			return err
		}
	}
	return nil
}

// Ready returns how many sandboxes stand ready.
func (p *Pool) Ready() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.ready)
}

// Create hands out a sandbox that is ready, or makes one.
func (p *Pool) Create(ctx context.Context, spec tranca.Spec) (tranca.Sandbox, error) {
	key, ok := keyOf(spec.Policy)
	if !ok {
		return p.Backend.Create(ctx, spec)
	}
	// The next one is booted when this one is closed: a boot beside the program
	// would take the time from it that it saves the next.
	refill := func() { p.refill(key, spec.Policy) }
	for {
		sb := p.take(key)
		if sb == nil {
			made, err := p.Backend.Create(ctx, spec)
			if err != nil {
				return nil, err
			}
			return &named{Sandbox: made, id: spec.ID, closed: refill}, nil
		}
		if alive(sb) {
			return &named{Sandbox: sb, id: spec.ID, kept: true, closed: refill}, nil
		}
		if err := closeOne(sb); err != nil {
			return nil, err
		}
	}
}

// Close destroys what is kept and closes the wrapped backend.
func (p *Pool) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	left := p.ready
	p.ready = nil
	p.mu.Unlock()
	p.work.Wait()
	var errs []error
	for _, sb := range left {
		errs = append(errs, sb.Close(ctx))
	}
	return errors.Join(append(errs, p.Backend.Close(ctx))...)
}

// keyOf names a policy by all that a sandbox is made from.
func keyOf(policy tranca.Policy) (string, bool) {
	if len(policy.Mounts) > 0 || policy.Image != tranca.ImageHost {
		return "", false
	}
	policy.Source = ""
	key, err := json.Marshal(policy)
	return string(key), err == nil
}

// take returns a ready sandbox of the policy, or nil. Those of another policy
// go.
func (p *Pool) take(key string) tranca.Sandbox {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.policy != key {
		for _, sb := range p.ready {
			p.work.Add(1)
			go func() {
				defer p.work.Done()
				_ = closeOne(sb) // the backend's sweep is the second line
			}()
		}
		p.policy, p.ready = key, nil
		return nil
	}
	if len(p.ready) == 0 {
		return nil
	}
	sb := p.ready[0]
	p.ready = p.ready[1:]
	return sb
}

// want claims one boot, if more sandboxes shall be ready. Who claims calls
// keep.
func (p *Pool) want(key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.policy == "" {
		p.policy = key
	}
	if p.closed || p.policy != key || len(p.ready)+p.booting >= p.size {
		return false
	}
	p.booting++
	p.work.Add(1)
	return true
}

// keep puts a booted sandbox away, or destroys it if nobody wants it any more.
func (p *Pool) keep(key string, sb tranca.Sandbox, err error) error {
	defer p.work.Done()
	p.mu.Lock()
	p.booting--
	if err == nil && !p.closed && p.policy == key {
		p.ready = append(p.ready, sb)
		sb = nil
	}
	p.mu.Unlock()
	if err != nil {
		return fmt.Errorf("boot ahead: %w", err)
	}
	if sb != nil {
		return closeOne(sb)
	}
	return nil
}

// refill boots ahead in the background. An error shows at the next Create,
// which then boots by itself.
func (p *Pool) refill(key string, policy tranca.Policy) {
	for p.want(key) {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), bootTime)
			defer cancel()
			sb, err := p.boot(ctx, policy)
			_ = p.keep(key, sb, err)
		}()
	}
}

func (p *Pool) boot(ctx context.Context, policy tranca.Policy) (tranca.Sandbox, error) {
	return p.Backend.Create(ctx, tranca.Spec{ID: tranca.NewID(), Policy: policy})
}

func closeOne(sb tranca.Sandbox) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return sb.Close(ctx)
}

// alive reports whether a sandbox is there still, without a question that it
// would take time to answer. One that can't be asked is taken at its word.
func alive(sb tranca.Sandbox) bool {
	a, ok := tranca.As[interface{ Alive() bool }](sb)
	return !ok || a.Alive()
}

// named is a sandbox under the id of who uses it: it was booted before anyone
// had one for it.
type named struct {
	tranca.Sandbox
	id     tranca.ID
	kept   bool // was booted ahead
	once   sync.Once
	closed func()
}

// Close closes the sandbox, and has the pool filled again.
func (n *named) Close(ctx context.Context) error {
	defer n.once.Do(n.closed)
	return n.Sandbox.Close(ctx)
}

func (n *named) ID() tranca.ID { return n.id }

// Unwrap returns the wrapped sandbox, for [tranca.As].
func (n *named) Unwrap() tranca.Sandbox { return n.Sandbox }
