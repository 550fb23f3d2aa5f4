package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tranca"
)

// box is one sandbox that the engine made, with the plan that it was made by.
type box struct {
	e    *Engine
	plan plan
	sb   tranca.Sandbox
	// image is nil where the sandbox has the host's own tree. free lets go of it,
	// when the sandbox is gone.
	image *tranca.Image
	free  func()
	// copies is nil where no mount is of mode cow.
	copies *copies
	// statement is made once: it does not change.
	statement []tranca.Enforcement
}

// create makes a sandbox. When the backend refuses what its probe had found
// usable, the host has changed: it is probed again, and what it says now is
// the refusal. There is no other backend to fall back to.
func (e *Engine) create(ctx context.Context, id tranca.ID, p plan) (*box, error) {
	copied, err := e.track(&p)
	if err != nil {
		return nil, err
	}
	// In a time of its own: a tree that is missing is unpacked again.
	img, free, err := e.openImage(ctx, p.policy.Image)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, e.cfg.CreateTimeout,
		fmt.Errorf("%w: backend %s made no sandbox within %s", tranca.ErrUnavailable, p.backend.Name(), e.cfg.CreateTimeout))
	defer cancel()
	started := time.Now()
	sb, err := p.backend.Create(limited, tranca.Spec{ID: id, Policy: p.policy, Image: img})
	if err != nil {
		free()
		return nil, e.notCreated(ctx, limited, p, err)
	}
	e.stats.created(time.Since(started))
	e.tell(tranca.Event{Kind: tranca.EventCreated, ID: id, Backend: p.backend.Name()})
	copied.settle()
	return &box{
		e: e, plan: p, sb: sb, image: img, free: free, copies: copied, statement: statement(sb.Enforcement()),
	}, nil
}

func (e *Engine) notCreated(ctx, limited context.Context, p plan, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if limited.Err() != nil {
		return errors.Join(context.Cause(limited), err)
	}
	if errors.Is(err, tranca.ErrRefused) {
		e.probes.forget(p.backend, p.policy.Runtime)
		again := plan{policy: p.policy, digest: p.digest}
		if found := e.tryUse(ctx, &again, p.backend); found != nil {
			return found
		}
		if errors.Is(err, tranca.ErrUnavailable) {
			return e.withWeaker(ctx, p.policy, unavailable(ctx, p.policy, p.backend, err))
		}
		return err
	}
	e.cfg.Logger.WarnContext(ctx, "sandbox not created", "backend", p.backend.Name(), "error", err)
	if !classed(err) {
		err = fmt.Errorf("%w: backend %s: %w", tranca.ErrUnavailable, p.backend.Name(), err)
	}
	return err
}

// classed reports whether an error says what class it is of.
func classed(err error) bool {
	for _, class := range []error{
		tranca.ErrInvalid, tranca.ErrRefused, tranca.ErrUnavailable, tranca.ErrNotFound,
		tranca.ErrExists, tranca.ErrGone, tranca.ErrBusy, tranca.ErrClosed,
		tranca.ErrUnsupported, tranca.ErrProtocol, tranca.ErrNoSpace,
	} {
		if errors.Is(err, class) {
			return true
		}
	}
	return false
}

// sandboxFailed reports whether a start failed because its sandbox did, rather
// than because of what was to be started.
func sandboxFailed(err error) bool {
	return errors.Is(err, tranca.ErrGone) || errors.Is(err, tranca.ErrProtocol) || !classed(err)
}

// kill ends every program. It has a time of its own, since it matters most
// when the caller has gone.
func (b *box) kill(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.e.cfg.CloseTimeout)
	defer cancel()
	return b.sb.Kill(ctx)
}

// destroy destroys the sandbox; like kill, it has a time of its own. An error
// means that something may remain on the host.
func (b *box) destroy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.e.cfg.CloseTimeout)
	defer cancel()
	err := b.sb.Close(ctx)
	b.e.tell(tranca.Event{Kind: tranca.EventClosed, ID: b.sb.ID(), Backend: b.plan.backend.Name()})
	if err == nil {
		return nil
	}
	b.e.cfg.Logger.ErrorContext(ctx, "sandbox not destroyed", "id", b.sb.ID(), "backend", b.plan.backend.Name(), "error", err)
	return fmt.Errorf("the sandbox %s was not destroyed, and a part of it may remain on the host: %w", b.sb.ID(), err)
}

// A sandbox that could not be destroyed is tried again after retryFirst, and
// then less and less often, down to once in retryMost.
const (
	retryFirst = time.Second
	retryMost  = time.Minute
)

// dismiss destroys the sandbox, lets go of its image and gives its share back.
// Where it can't be destroyed both are kept until it is: what remains of it takes
// of the host what the share stands for.
func (b *box) dismiss(ctx context.Context, held *share) error {
	err := b.destroy(ctx)
	if err == nil || b.e.begin() != nil {
		b.free()
		held.free()
		return err
	}
	go func() {
		defer b.e.running.Done()
		defer held.free()
		defer b.free()
		b.destroyLater()
	}()
	return err
}

// destroyLater tries until it is done or the engine ends.
func (b *box) destroyLater() {
	for wait := retryFirst; ; wait = min(2*wait, retryMost) {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-b.e.life.Done():
			timer.Stop()
			return
		}
		ctx, cancel := context.WithTimeout(b.e.life, b.e.cfg.CloseTimeout)
		err := b.sb.Close(ctx)
		cancel()
		if err == nil {
			b.e.cfg.Logger.Info("a sandbox is destroyed at last", "id", b.sb.ID(), "backend", b.plan.backend.Name())
			return
		}
	}
}

// usage reads the counters; what can't be read is -1.
func (b *box) usage(ctx context.Context) (tranca.Usage, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.e.cfg.CloseTimeout)
	defer cancel()
	u, err := b.sb.Usage(ctx)
	if err != nil {
		return tranca.Usage{CPU: -1, MemoryPeak: -1, ProcessesPeak: -1}, err
	}
	return u, nil
}

// result begins the result of a run by a plan, which is the box's own or less.
func (b *box) result(p plan) *tranca.Result {
	return &tranca.Result{
		ID: b.sb.ID(), Backend: b.plan.backend.Name(), Isolation: b.plan.level,
		ImageDigest: digestOf(b.image, b.sb), Enforcement: b.statement,
		Policy: tranca.PolicyRef{Source: p.policy.Source, Digest: p.digest},
		Limits: p.policy.Limits,
		Notes:  slices.Clone(b.plan.notes),
	}
}

// fail marks a result as one of a sandbox that failed.
func fail(res *tranca.Result, note string) {
	res.Exit = tranca.Exit{Code: -1, Reason: tranca.EndError}
	res.Notes = append(res.Notes, note)
}

func milliseconds(d time.Duration) int64 {
	if d < 0 {
		return -1
	}
	return d.Milliseconds()
}
