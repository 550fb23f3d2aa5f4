package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"tranca"
	"tranca/internal/policy"
)

// Backends is where the engine finds its backends. Safe for concurrent use.
type Backends interface {
	// All returns the backends, weakest first.
	All() []tranca.Backend
	// Get returns the backend of that name; the error wraps
	// [tranca.ErrNotFound].
	Get(name string) (tranca.Backend, error)
}

// Config is what an engine is made from. Only Backends and Policy are needed.
type Config struct {
	// Backends is the engine's from then on: Close closes them.
	Backends Backends
	// Policy is the operator's. Requests only narrow it.
	Policy tranca.Policy
	// MaxInFlight bounds how many runs are under way; more wait in line. The
	// default is twice the number of CPUs, at least 4: starting more at once
	// makes all of them slower.
	MaxInFlight int
	// MaxQueue bounds how many wait; more are refused with [tranca.ErrBusy].
	// The default is 4096.
	MaxQueue int
	// MaxSessions bounds the open sessions; more are refused with
	// [tranca.ErrBusy]. The default is 64.
	MaxSessions int
	// Observer, where set, is told of each step. It is called from the run's
	// own goroutine, from several at once, and must not block.
	Observer func(tranca.Event)
	// Logger takes what an operator should know and no result says. The
	// default discards it.
	Logger *slog.Logger
	// CreateTimeout bounds the creation of a sandbox; the default is 60 s.
	CreateTimeout time.Duration
	// CloseTimeout bounds killing and destroying one, each by itself, also
	// when the caller has gone; the default is 30 s.
	CloseTimeout time.Duration
	// StreamGrace is how long a live copy of the output may take nothing
	// after the program has ended until it is left behind; the default is 2 s.
	StreamGrace time.Duration
}

// Engine runs requests. It implements [tranca.Runner]. Safe for concurrent
// use.
type Engine struct {
	cfg    Config
	queue  *queue
	probes *probes
	digest string // of the policy that nothing narrows

	// life ends when the engine is closed, and ends what runs.
	life context.Context
	end  context.CancelFunc

	mu       sync.Mutex
	closed   bool
	sessions map[*Session]struct{}
	opening  int
	running  sync.WaitGroup
}

var _ tranca.Runner = (*Engine)(nil)

// New makes an engine. The error wraps [tranca.ErrInvalid] where the policy
// is not whole or there is no backend.
func New(cfg Config) (*Engine, error) {
	if cfg.Backends == nil || len(cfg.Backends.All()) == 0 {
		return nil, fmt.Errorf("%w: an engine needs at least one backend", tranca.ErrInvalid)
	}
	if bad := policy.Validate(cfg.Policy); len(bad) > 0 {
		return nil, fmt.Errorf("%w: policy: %w", tranca.ErrInvalid, errors.Join(bad...))
	}
	cfg.Policy = cfg.Policy.Clone()
	cfg.MaxInFlight = cmp.Or(max(cfg.MaxInFlight, 0), max(4, 2*runtime.NumCPU()))
	cfg.MaxQueue = cmp.Or(max(cfg.MaxQueue, 0), 4096)
	cfg.MaxSessions = cmp.Or(max(cfg.MaxSessions, 0), 64)
	cfg.CreateTimeout = cmp.Or(cfg.CreateTimeout, 60*time.Second)
	cfg.CloseTimeout = cmp.Or(cfg.CloseTimeout, 30*time.Second)
	cfg.StreamGrace = cmp.Or(cfg.StreamGrace, 2*time.Second)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	e := &Engine{
		cfg: cfg, queue: newQueue(cfg.MaxInFlight, cfg.MaxQueue),
		probes: newProbes(), digest: policy.Digest(cfg.Policy),
		sessions: map[*Session]struct{}{},
	}
	e.life, e.end = context.WithCancel(context.Background())
	return e, nil
}

// Policy returns the operator's policy that is in force.
func (e *Engine) Policy() tranca.Policy { return e.cfg.Policy.Clone() }

// Run runs one request in a fresh sandbox; see [tranca.Runner]. If ctx ends
// before the sandbox is made, nothing has run, and its error is returned.
func (e *Engine) Run(ctx context.Context, req tranca.Request) (*tranca.Result, error) {
	j, err := newJob(req)
	if err != nil {
		return nil, err
	}
	if err := e.begin(); err != nil {
		return nil, err
	}
	defer e.running.Done()
	ctx, cancel := e.tie(ctx)
	defer cancel()
	p, err := e.plan(ctx, req.Narrow)
	if err != nil {
		return nil, err
	}
	id := tranca.NewID()
	if err := e.admit(ctx, id); err != nil {
		return nil, err
	}
	defer e.queue.leave()
	before := snapshot(ctx, p.policy.Mounts)
	b, err := e.create(ctx, id, p)
	if err != nil {
		return nil, err
	}
	res, err := b.run(ctx, j)
	lost := b.destroy(ctx)
	if err != nil {
		return nil, errors.Join(err, lost)
	}
	if lost != nil {
		fail(res, lost.Error())
	}
	before.into(ctx, res)
	return res, nil
}

// begin counts a piece of work that Close waits for.
func (e *Engine) begin() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return errClosed()
	}
	e.running.Add(1)
	return nil
}

// tie returns a context that also ends when the engine is closed.
func (e *Engine) tie(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	untie := context.AfterFunc(e.life, func() { cancel(errClosed()) })
	return ctx, func() { untie(); cancel(nil) }
}

// admit waits for a turn.
func (e *Engine) admit(ctx context.Context, id tranca.ID) error {
	e.tell(tranca.Event{Kind: tranca.EventQueued, ID: id})
	return e.queue.enter(ctx)
}

// Close refuses new work, ends what runs, closes all sessions and then the
// backends, and returns when nothing is left. If ctx ends first its error is
// returned, and the rest goes on.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	e.closed = true
	open := make([]*Session, 0, len(e.sessions))
	for s := range e.sessions {
		open = append(open, s)
	}
	e.mu.Unlock()
	e.queue.close()
	e.end()
	errs := make([]error, len(open))
	var closing sync.WaitGroup
	for i, s := range open {
		closing.Go(func() { errs[i] = s.Close(ctx) })
	}
	done := make(chan struct{})
	go func() {
		closing.Wait()
		e.running.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		return fmt.Errorf("close: runs are still ending: %w", context.Cause(ctx))
	}
	for _, b := range e.cfg.Backends.All() {
		errs = append(errs, b.Close(ctx))
	}
	return errors.Join(errs...)
}

func (e *Engine) tell(ev tranca.Event) {
	if e.cfg.Observer != nil {
		ev.Time = time.Now()
		e.cfg.Observer(ev)
	}
}
