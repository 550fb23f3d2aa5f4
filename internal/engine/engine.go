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
	"tranca/internal/changeset"
)

// Backends is where the engine finds its backends. Safe for concurrent use.
type Backends interface {
	// All returns the backends, weakest first.
	All() []tranca.Backend
	// Get returns the backend of that name; the error wraps
	// [tranca.ErrNotFound].
	Get(name string) (tranca.Backend, error)
}

// Config is what an engine is made from. Only Backends and a policy are needed.
type Config struct {
	// Backends is the engine's from then on: Close closes them.
	Backends Backends
	// Policy is the operator's, as the first profile, of the name
	// [DefaultProfile]. It may be left out where Profiles has one. Requests only
	// narrow it.
	Policy tranca.Policy
	// Profiles are further policies, of which a request may name one.
	Profiles []Profile
	// Images are the root trees that policies may name. Without them there is
	// only the host's own.
	Images Images
	// Changes opens where what code writes to mounts of mode cow is kept, at its
	// first use; the engine closes it. Without it such mounts are refused.
	Changes func() (*changeset.Store, error)

	// MaxInFlight bounds how many runs are under way, and how many sandboxes and
	// programs of sessions are being started; more wait in line. The default is
	// twice the number of CPUs, at least 4: starting more at once makes all of
	// them slower.
	MaxInFlight int
	// MaxQueue bounds how many wait in one line, for a sandbox or for their
	// turn; more are refused with [tranca.ErrBusy]. The default is 4096.
	MaxQueue int
	// MaxSandboxes bounds how many sandboxes there are at once, those of runs
	// and those of sessions together; more wait in line. The default is 64 more
	// than MaxInFlight.
	MaxSandboxes int
	// MaxMemory in bytes and MaxMilliCPUs bound the sums of what all sandboxes
	// may use by their policies. 0 is no bound. A sandbox that could never fit
	// is refused at once.
	MaxMemory, MaxMilliCPUs int64

	// DefaultTTL is how long a session lives where nobody says it; the default
	// is 10 minutes. MaxTTL is the longest that may be asked for; the default is
	// 24 hours. Where MaxTTL is negative there is no longest time, and a session
	// for which none was asked lives until it is closed: for an owner within
	// this process.
	DefaultTTL, MaxTTL time.Duration
	// DefaultIdleTimeout is a session's idle time where nobody says it; 0 is
	// never.
	DefaultIdleTimeout time.Duration
	// MaxProcesses bounds the programs that are started and run at once in one
	// session; more are refused with [tranca.ErrBusy]. The default is 64. What
	// they start themselves is bounded by the policy.
	MaxProcesses int
	// MaxSessionRuns bounds how many runs ([Session.Run]) are under way at once
	// in one session; more wait in order. The default is 1: then each run has
	// the counters to itself, and what it leaves running is killed at its end.
	MaxSessionRuns int
	// FollowGrace is how long a follower of a process may take nothing until the
	// process no longer waits for it; the default is 10 s.
	FollowGrace time.Duration

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

// withDefaults fills in what was left out.
func (cfg Config) withDefaults() Config {
	cfg.MaxInFlight = cmp.Or(max(cfg.MaxInFlight, 0), max(4, 2*runtime.NumCPU()))
	cfg.MaxQueue = cmp.Or(max(cfg.MaxQueue, 0), 4096)
	cfg.MaxSandboxes = cmp.Or(max(cfg.MaxSandboxes, 0), 64+cfg.MaxInFlight)
	cfg.MaxMemory, cfg.MaxMilliCPUs = max(cfg.MaxMemory, 0), max(cfg.MaxMilliCPUs, 0)
	if cfg.MaxTTL >= 0 {
		cfg.MaxTTL = cmp.Or(cfg.MaxTTL, 24*time.Hour)
		cfg.DefaultTTL = min(cmp.Or(cfg.DefaultTTL, 10*time.Minute), cfg.MaxTTL)
	}
	cfg.MaxProcesses = cmp.Or(max(cfg.MaxProcesses, 0), 64)
	cfg.MaxSessionRuns = cmp.Or(max(cfg.MaxSessionRuns, 0), 1)
	cfg.FollowGrace = cmp.Or(cfg.FollowGrace, 10*time.Second)
	cfg.CreateTimeout = cmp.Or(cfg.CreateTimeout, 60*time.Second)
	cfg.CloseTimeout = cmp.Or(cfg.CloseTimeout, 30*time.Second)
	cfg.StreamGrace = cmp.Or(cfg.StreamGrace, 2*time.Second)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return cfg
}

// Engine runs requests. It implements [tranca.Runner]. Safe for concurrent
// use.
type Engine struct {
	cfg      Config
	profiles []profile
	space    *queue // bounds all sandboxes
	flight   *queue // bounds what is started or run at once
	probes   *probes
	stats    *counters

	// life ends when the engine is closed, and ends what runs.
	life context.Context
	end  context.CancelCauseFunc

	mu       sync.Mutex
	closed   bool
	store    *changeset.Store // nil until it is needed
	sessions registry
	sweeper  *time.Timer
	// nextSweep is when the sessions are looked at; zero where nothing is set.
	nextSweep time.Time
	running   sync.WaitGroup
}

var _ tranca.Runner = (*Engine)(nil)

// New makes an engine. The error wraps [tranca.ErrInvalid] where a policy is
// not whole or there is no backend.
func New(cfg Config) (*Engine, error) {
	if cfg.Backends == nil || len(cfg.Backends.All()) == 0 {
		return nil, fmt.Errorf("%w: an engine needs at least one backend", tranca.ErrInvalid)
	}
	all, err := profiles(&cfg)
	if err != nil {
		return nil, err
	}
	if cfg.DefaultTTL < 0 || cfg.DefaultIdleTimeout < 0 {
		return nil, fmt.Errorf("%w: a session's time is negative", tranca.ErrInvalid)
	}
	cfg = cfg.withDefaults()
	bound := need{int64(cfg.MaxSandboxes), cfg.MaxMemory, cfg.MaxMilliCPUs}
	e := &Engine{
		cfg: cfg, profiles: all,
		space:  newQueue(bound, cfg.MaxQueue),
		flight: newQueue(need{places: int64(cfg.MaxInFlight)}, cfg.MaxQueue),
		probes: newProbes(), stats: newCounters(), sessions: newRegistry(),
	}
	e.life, e.end = context.WithCancelCause(context.Background())
	return e, nil
}

// Run runs one request in a fresh sandbox; see [tranca.Runner]. If ctx ends
// before the sandbox is made, nothing has run, and its error is returned.
func (e *Engine) Run(ctx context.Context, req tranca.Request) (*tranca.Result, error) {
	return e.RunLooked(ctx, req, Look{})
}

func (e *Engine) runOnce(ctx context.Context, req tranca.Request, look Look) (*tranca.Result, error) {
	j, err := newJob(req)
	if err != nil {
		return nil, err
	}
	from, err := e.profile(req.Profile)
	if err != nil {
		return nil, err
	}
	if err := e.begin(); err != nil {
		return nil, err
	}
	defer e.running.Done()
	ctx, cancel := e.tie(ctx)
	defer cancel()
	p, err := e.plan(ctx, from, req.Narrow)
	if err != nil {
		return nil, err
	}
	id := tranca.NewID()
	e.queued(id)
	held, err := e.reserve(ctx, &p.policy)
	if err != nil {
		return nil, err
	}
	if err := e.admit(ctx); err != nil {
		held.free()
		return nil, err
	}
	defer e.flight.leave(onePlace)
	return e.runFresh(ctx, id, p, held, j, look)
}

// runFresh runs a job in a sandbox of its own, and gives its share back.
func (e *Engine) runFresh(ctx context.Context, id tranca.ID, p plan, held *share, j job, look Look) (*tranca.Result, error) {
	before := snapshot(ctx, p.policy.Mounts)
	b, err := e.create(ctx, id, p)
	if err != nil {
		held.free()
		return nil, err
	}
	b.look(ctx, look.Before)
	res, err := b.run(ctx, j)
	if err == nil {
		b.look(ctx, look.After)
		b.keepInto(ctx, res)
	}
	lost := b.dismiss(ctx, held)
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
	return tie(ctx, e.life)
}

// tie returns a context that also ends when a life does, and for its reason.
func tie(ctx, life context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	untie := context.AfterFunc(life, func() { cancel(context.Cause(life)) })
	return ctx, func() { untie(); cancel(nil) }
}

// Close refuses new work, ends what runs, closes all sessions and then the
// backends, and returns when nothing is left. If ctx ends first its error is
// returned, and the rest goes on.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	e.closed = true
	open := e.sessions.all()
	if e.sweeper != nil {
		e.sweeper.Stop()
	}
	e.mu.Unlock()
	e.space.close()
	e.flight.close()
	e.end(errClosed())
	errs := make([]error, len(open))
	var closing sync.WaitGroup
	for i, s := range open {
		closing.Go(func() { errs[i] = s.finish(ctx, closedSession("the engine was closed")) })
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
	e.mu.Lock()
	store := e.store
	e.store = nil
	e.mu.Unlock()
	if store != nil {
		errs = append(errs, store.Close())
	}
	return errors.Join(errs...)
}

func (e *Engine) tell(ev tranca.Event) {
	if e.cfg.Observer != nil {
		ev.Time = time.Now()
		e.cfg.Observer(ev)
	}
}
