package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"
	"unicode/utf8"

	"tranca"
	"tranca/internal/policy"
)

// Bounds of a session's metadata.
const (
	maxMetadata  = 64
	maxMetaKey   = 128  // bytes
	maxMetaValue = 4096 // bytes
)

// Session is one sandbox that lives: for several runs, which find each other's
// files, and for programs that outlive the call that started them. It ends when
// it is closed, when its time or its idle time is over, when its machine dies,
// or with the engine. Safe for concurrent use.
//
// The policy's ceilings (memory, CPU time, processes, disk) hold over all of
// its programs together, and one that ends programs ends all of them. Wall
// clock and output are each program's own.
type Session struct {
	e       *Engine
	box     *box
	held    *share
	profile string
	created time.Time
	meta    map[string]string
	turns   *queue // of runs

	// life ends, with the reason as its cause, when the session does, and ends
	// what runs.
	life    context.Context
	end     context.CancelCauseFunc
	closing sync.Once
	lost    error // of the destruction
	// waits ends when the sandbox is destroyed, and with it what would wait for
	// it in vain.
	waits    context.Context
	endWaits context.CancelFunc

	mu      sync.Mutex
	gone    error // a *goneError once it has ended
	failed  bool  // by itself, and not by its owner
	expires time.Time
	ttl     time.Duration // that expires was reckoned by
	idle    time.Duration
	touched time.Time
	calls   int // under way: the session is not idle
	quiet   signal
	env     map[string]string
	runs    int // that were begun
	programs
}

// Open makes a sandbox that lives for a session, after those who came before.
// The caller closes it. Errors are those of Run; an unknown profile is
// [tranca.ErrNotFound].
func (e *Engine) Open(ctx context.Context, o tranca.CreateRequest) (*Session, error) {
	s, err := e.open(ctx, o)
	if err != nil {
		e.stats.notOpened(err)
	}
	return s, err
}

func (e *Engine) open(ctx context.Context, o tranca.CreateRequest) (*Session, error) {
	from, err := e.profile(o.Profile)
	if err != nil {
		return nil, err
	}
	if err := e.checkTimes(&o); err != nil {
		return nil, err
	}
	if err := checkMetadata(o.Metadata); err != nil {
		return nil, err
	}
	if err := e.begin(); err != nil {
		return nil, err
	}
	defer e.running.Done()
	tied, cancel := e.tie(ctx)
	defer cancel()
	s, err := e.makeSession(tied, from, o)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	closed := e.closed
	e.sessions.add(s)
	e.mu.Unlock()
	e.stats.add(func(c *Stats) { c.Sessions++; c.SessionsOpened++ })
	if closed {
		// Close has already looked through the open sessions.
		return nil, errors.Join(errClosed(), s.finish(ctx, closedSession("the engine was closed")))
	}
	e.watch(s)
	return s, nil
}

// checkTimes fills in the times that were left out and refuses others.
func (e *Engine) checkTimes(o *tranca.CreateRequest) error {
	ttl, err := e.ttl(o.TTL)
	if err != nil {
		return err
	}
	o.TTL = ttl
	if o.IdleTimeout < 0 {
		return fmt.Errorf("%w: an idle time of %s", tranca.ErrInvalid, o.IdleTimeout)
	}
	if o.IdleTimeout == 0 {
		o.IdleTimeout = e.cfg.DefaultIdleTimeout
	}
	return nil
}

// ttl returns the time that a session may live; 0 is for ever.
func (e *Engine) ttl(asked time.Duration) (time.Duration, error) {
	switch most := e.cfg.MaxTTL; {
	case asked < 0:
		return 0, fmt.Errorf("%w: a time to live of %s", tranca.ErrInvalid, asked)
	case asked == 0:
		return e.cfg.DefaultTTL, nil
	case most > 0 && asked > most:
		return 0, fmt.Errorf("%w: a time to live of %s: at most %s can be asked for; keep the sandbox alive meanwhile", tranca.ErrInvalid, asked, most)
	}
	return asked, nil
}

func checkMetadata(meta map[string]string) error {
	if len(meta) > maxMetadata {
		return fmt.Errorf("%w: %d entries of metadata: at most %d can be given", tranca.ErrInvalid, len(meta), maxMetadata)
	}
	for k, v := range meta {
		if len(k) == 0 || len(k) > maxMetaKey || len(v) > maxMetaValue || !utf8.ValidString(k) || !utf8.ValidString(v) {
			return fmt.Errorf("%w: metadata %.40q: a key has 1 to %d bytes of UTF-8 and a value at most %d", tranca.ErrInvalid, k, maxMetaKey, maxMetaValue)
		}
	}
	return nil
}

func (e *Engine) makeSession(ctx context.Context, from *profile, o tranca.CreateRequest) (*Session, error) {
	p, err := e.plan(ctx, from, o.Narrow)
	if err != nil {
		return nil, err
	}
	id := tranca.NewID()
	e.queued(id)
	held, err := e.reserve(ctx, &p.policy)
	if err != nil {
		return nil, err
	}
	b, err := e.makeBox(ctx, id, p)
	if err != nil {
		held.free()
		return nil, err
	}
	now := time.Now()
	s := &Session{
		e: e, box: b, held: held, profile: from.name, created: now, meta: maps.Clone(o.Metadata),
		turns: newQueue(need{places: int64(e.cfg.MaxSessionRuns)}, e.cfg.MaxQueue),
		idle:  o.IdleTimeout, touched: now, ttl: o.TTL,
	}
	if o.TTL > 0 {
		s.expires = now.Add(o.TTL)
	}
	s.life, s.end = context.WithCancelCause(context.Background())
	s.waits, s.endWaits = context.WithCancel(context.Background())
	return s, nil
}

func (e *Engine) makeBox(ctx context.Context, id tranca.ID, p plan) (*box, error) {
	if err := e.admit(ctx); err != nil {
		return nil, err
	}
	defer e.flight.leave(onePlace)
	return e.create(ctx, id, p)
}

// Done is closed when the session has ended, before its sandbox is destroyed.
func (s *Session) Done() <-chan struct{} { return s.life.Done() }

// ID names the session's sandbox.
func (s *Session) ID() tranca.ID { return s.box.sb.ID() }

// Info returns what is known of the session. It does not count as a use of it.
func (s *Session) Info() tranca.SandboxInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &s.box.plan
	meta := maps.Clone(s.meta)
	if meta == nil {
		meta = map[string]string{}
	}
	return tranca.SandboxInfo{
		ID: s.ID(), Profile: s.profile, Backend: p.backend.Name(), Isolation: p.level,
		Policy:      tranca.PolicyRef{Source: p.policy.Source, Digest: p.digest},
		Enforcement: s.box.statement, Created: s.created, Expires: s.expires,
		IdleTimeoutMS: s.idle.Milliseconds(), Metadata: meta, Processes: s.active,
	}
}

// KeepAlive lets the session end so long from now, be that later or earlier
// than before; 0 is the configuration's time. Errors wrap [tranca.ErrInvalid] or
// [tranca.ErrGone].
func (s *Session) KeepAlive(ttl time.Duration) (tranca.SandboxInfo, error) {
	ttl, err := s.e.ttl(ttl)
	if err != nil {
		return tranca.SandboxInfo{}, err
	}
	done, err := s.use()
	if err != nil {
		return tranca.SandboxInfo{}, err
	}
	defer done()
	s.mu.Lock()
	s.ttl, s.expires = ttl, time.Time{}
	if ttl > 0 {
		s.expires = time.Now().Add(ttl)
	}
	s.mu.Unlock()
	s.e.watch(s)
	return s.Info(), nil
}

// SetEnv changes the environment of programs that are started later. A name
// that the policy sets is [tranca.ErrRefused]; removing one that is not set is
// nothing.
func (s *Session) SetEnv(set map[string]string, unset []string) error {
	done, err := s.use()
	if err != nil {
		return err
	}
	defer done()
	s.mu.Lock()
	defer s.mu.Unlock()
	env := maps.Clone(s.env)
	if env == nil {
		env = map[string]string{}
	}
	for _, name := range unset {
		delete(env, name)
	}
	maps.Copy(env, set)
	if _, problems := policy.Narrow(s.box.plan.policy, tranca.Narrowing{Env: env}); len(problems) > 0 {
		return &tranca.RefusalError{Problems: problems}
	}
	s.env = env
	return nil
}

// narrow returns the plan of one run. Only what the engine itself enforces
// can still be narrowed once the sandbox is made.
func (s *Session) narrow(n tranca.Narrowing) (plan, map[string]string, error) {
	p := s.box.plan
	s.mu.Lock()
	env := s.env
	s.mu.Unlock()
	if len(env) > 0 {
		env = maps.Clone(env)
		maps.Copy(env, n.Env)
		n.Env = env
	}
	if empty(n) {
		return p, nil, nil
	}
	narrowed, problems := policy.Narrow(p.policy, n)
	if len(problems) > 0 {
		return plan{}, nil, &tranca.RefusalError{Problems: problems}
	}
	// What was settled when the session was opened may be asked for again.
	settled := p.policy.Clone()
	settled.Limits.Wall, settled.Limits.Output = narrowed.Limits.Wall, narrowed.Limits.Output
	settled.Env, settled.Workdir = narrowed.Env, narrowed.Workdir
	digest := policy.Digest(narrowed)
	if policy.Digest(settled) != digest {
		return plan{}, nil, fmt.Errorf("%w: only wall-clock time, output, environment and folder can be narrowed for one run of a session; narrow the rest when it is opened", tranca.ErrInvalid)
	}
	p.policy, p.digest = narrowed, digest
	return p, n.Env, nil
}
