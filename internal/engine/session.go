package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"tranca"
	"tranca/internal/policy"
)

// Session is one sandbox for more than one run. What a run leaves running is
// killed at its end; what it leaves in files stays for the next. Safe for
// concurrent use: runs are done one after another.
type Session struct {
	e    *Engine
	box  *box
	turn chan struct{} // holds a token while something runs

	// gone is set, with turn held, when the sandbox can't be used again. A
	// sandbox that failed is never replaced by a fresh one in silence.
	gone error

	// life ends when Close is called, and ends what runs.
	life    context.Context
	end     context.CancelFunc
	closing sync.Once
	lost    error
}

// Open makes a sandbox for several runs; n narrows the policy for all of
// them. The caller closes it. Errors are those of Run, and
// [tranca.ErrBusy] where too many sessions are open.
func (e *Engine) Open(ctx context.Context, n tranca.Narrowing) (*Session, error) {
	if err := e.begin(); err != nil {
		return nil, err
	}
	defer e.running.Done()
	if err := e.reserve(); err != nil {
		return nil, err
	}
	s, err := e.open(ctx, n)
	e.mu.Lock()
	e.opening--
	closed := e.closed
	if err == nil {
		e.sessions[s] = struct{}{}
	}
	e.mu.Unlock()
	if err == nil && closed {
		// Close has already looked through the open sessions.
		return nil, errors.Join(errClosed(), s.Close(ctx))
	}
	return s, err
}

// reserve takes one of the places for sessions.
func (e *Engine) reserve() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.sessions)+e.opening >= e.cfg.MaxSessions {
		return fmt.Errorf("%w: %d sessions are open: close one first", tranca.ErrBusy, len(e.sessions)+e.opening)
	}
	e.opening++
	return nil
}

func (e *Engine) open(ctx context.Context, n tranca.Narrowing) (*Session, error) {
	ctx, cancel := e.tie(ctx)
	defer cancel()
	p, err := e.plan(ctx, n)
	if err != nil {
		return nil, err
	}
	id := tranca.NewID()
	if err := e.admit(ctx, id); err != nil {
		return nil, err
	}
	defer e.queue.leave()
	b, err := e.create(ctx, id, p)
	if err != nil {
		return nil, err
	}
	s := &Session{e: e, box: b, turn: make(chan struct{}, 1)}
	s.life, s.end = context.WithCancel(context.Background())
	return s, nil
}

// ID names the session's sandbox.
func (s *Session) ID() tranca.ID { return s.box.sb.ID() }

// Run runs one request in the session's sandbox, after those that came
// before. Its Narrow may lower Wall and Output, add variables and choose the
// folder; everything else was settled when the session was opened. The error
// wraps [tranca.ErrClosed] after Close, and [tranca.ErrGone] once the sandbox
// has failed.
func (s *Session) Run(ctx context.Context, req tranca.Request) (*tranca.Result, error) {
	j, err := newJob(req)
	if err != nil {
		return nil, err
	}
	if err := s.e.begin(); err != nil {
		return nil, err
	}
	defer s.e.running.Done()
	ctx, cancel := s.e.tie(ctx)
	defer cancel()
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer func() { <-s.turn }()
	narrowed, err := s.narrow(req.Narrow)
	if err != nil {
		return nil, err
	}
	if err := s.e.admit(ctx, s.ID()); err != nil {
		return nil, err
	}
	defer s.e.queue.leave()
	return s.run(ctx, j, narrowed, req.Narrow)
}

// enter waits until nothing else runs in the session.
func (s *Session) enter(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
	case <-s.life.Done():
		return fmt.Errorf("%w: the session", tranca.ErrClosed)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if s.gone != nil {
		<-s.turn
		return s.gone
	}
	return nil
}

// run runs with the turn held.
func (s *Session) run(ctx context.Context, j job, p plan, n tranca.Narrowing) (*tranca.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	b := *s.box
	b.plan = p
	before := snapshot(ctx, p.policy.Mounts)
	res, err := b.runIn(ctx, j, n.Workdir, n.Env)
	s.box.runs = b.runs
	if killed := s.box.kill(ctx); killed != nil {
		s.gone = fmt.Errorf("%w: the session's sandbox could not be stopped: %w", tranca.ErrGone, killed)
		if res != nil {
			fail(res, s.gone.Error())
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.gone)
	}
	if res.Exit.Reason == tranca.EndError && s.gone == nil {
		s.gone = fmt.Errorf("%w: the session's sandbox failed in an earlier run: open a new one", tranca.ErrGone)
	}
	if b.runs > 1 {
		res.Notes = append(res.Notes, "files of an earlier run in this sandbox stay, and stay charged to its memory and disk")
	}
	before.into(ctx, res)
	return res, nil
}

// narrow returns the plan of one run. Only what the engine itself enforces
// can still be narrowed once the sandbox is made.
func (s *Session) narrow(n tranca.Narrowing) (plan, error) {
	p := s.box.plan
	if empty(n) {
		return p, nil
	}
	narrowed, problems := policy.Narrow(p.policy, n)
	if len(problems) > 0 {
		return plan{}, &tranca.RefusalError{Problems: problems}
	}
	// What was settled when the session was opened may be asked for again.
	settled := p.policy.Clone()
	settled.Limits.Wall, settled.Limits.Output = narrowed.Limits.Wall, narrowed.Limits.Output
	settled.Env, settled.Workdir = narrowed.Env, narrowed.Workdir
	digest := policy.Digest(narrowed)
	if policy.Digest(settled) != digest {
		return plan{}, fmt.Errorf("%w: only wall-clock time, output, environment and folder can be narrowed for one run of a session; narrow the rest when it is opened", tranca.ErrInvalid)
	}
	p.policy, p.digest = narrowed, digest
	return p, nil
}

// Close ends what runs and destroys the sandbox. Idempotent. It takes its own
// time, whatever ctx says: nothing may stay behind.
func (s *Session) Close(ctx context.Context) error {
	s.closing.Do(func() {
		s.end()
		s.turn <- struct{}{}
		defer func() { <-s.turn }()
		if s.gone == nil {
			s.gone = fmt.Errorf("%w: the session", tranca.ErrClosed)
		}
		s.lost = s.box.destroy(ctx)
		s.e.mu.Lock()
		delete(s.e.sessions, s)
		s.e.mu.Unlock()
	})
	return s.lost
}
