package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"tranca"
)

// lookEvery is how often it is looked whether machines are alive of which
// nothing is asked.
const lookEvery = 5 * time.Second

// sessionEnd says why a session ends.
type sessionEnd struct {
	why string
	// also is a further class of the error that users of the session get.
	also error
	// failed says that the session ended by itself.
	failed bool
}

// closedSession is the end that an owner has chosen.
func closedSession(why string) sessionEnd { return sessionEnd{why: why, also: tranca.ErrClosed} }

// Close ends what runs and destroys the sandbox. Idempotent. It takes its own
// time, whatever ctx says: nothing may stay behind.
func (s *Session) Close(ctx context.Context) error {
	return s.finish(ctx, closedSession("it was destroyed"))
}

// finish ends the session, for the reason that was given first, and returns
// when its sandbox is destroyed.
func (s *Session) finish(ctx context.Context, why sessionEnd) error {
	s.mark(why)
	s.closing.Do(func() { s.lost = s.destroy(ctx) })
	return s.lost
}

// mark takes the session out of use. It reports whether this is what ended it.
func (s *Session) mark(why sessionEnd) bool {
	s.mu.Lock()
	first := s.markLocked(why)
	gone := s.gone
	s.mu.Unlock()
	if first {
		s.buried(gone)
	}
	return first
}

func (s *Session) markLocked(why sessionEnd) bool {
	if s.gone != nil {
		return false
	}
	s.gone, s.failed = &goneError{s.ID(), why.why, why.also}, why.failed
	return true
}

// buried tells everybody of the end.
func (s *Session) buried(gone error) {
	s.e.mu.Lock()
	s.e.sessions.bury(s.ID(), gone)
	s.e.mu.Unlock()
	s.e.stats.add(func(c *Stats) { c.Sessions--; c.SessionsEnded++ })
	s.turns.close()
	s.end(gone)
}

// fail ends a session whose machine can't be used any more, in the background:
// its caller is one of those that the end waits for. It is never replaced by a
// fresh one in silence.
func (s *Session) fail(why string) {
	if !s.mark(sessionEnd{why: why, failed: true}) {
		return
	}
	s.e.cfg.Logger.Warn("a session failed", "id", s.ID(), "reason", why)
	s.finishLater()
}

// finishLater destroys what was marked.
func (s *Session) finishLater() {
	if s.e.begin() != nil {
		return // the engine is being closed, and ends all sessions
	}
	go func() {
		defer s.e.running.Done()
		_ = s.finish(context.Background(), sessionEnd{}) // told to the log
	}()
}

// destroy waits for the calls that the end of s.life has cut short, and
// destroys the sandbox.
func (s *Session) destroy(ctx context.Context) error {
	timer := time.NewTimer(s.e.cfg.CloseTimeout)
	defer timer.Stop()
	s.releaseReaders()
	select {
	case <-s.silence():
	case <-timer.C:
	}
	s.keepLast(ctx)
	err := s.box.dismiss(ctx, s.held)
	s.endWaits()
	s.awaitProcesses()
	s.e.mu.Lock()
	delete(s.e.sessions.open, s)
	s.e.mu.Unlock()
	return err
}

// awaitProcesses waits for what follows the processes, which have ended.
func (s *Session) awaitProcesses() {
	s.mu.Lock()
	list := slices.Clone(s.list)
	s.mu.Unlock()
	for _, p := range list {
		<-p.done
	}
}

// silence is closed when no call starts or runs a program any more. That is for
// good: a session that is marked takes none in.
func (s *Session) silence() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runners == 0 {
		c := make(chan struct{})
		close(c)
		return c
	}
	return s.quiet.wait()
}

// use counts a call, during which the session is not idle. The error says why
// the session is gone.
func (s *Session) use() (done func(), err error) {
	if err := s.look(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone != nil {
		return nil, s.gone
	}
	s.calls++
	return s.used, nil
}

// occupy is use for what works on a session that is gone, too.
func (s *Session) occupy() func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	return s.used
}

func (s *Session) used() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls--
	s.touched = time.Now()
}

// look says whether the session is there, and ends it where its machine has
// died.
func (s *Session) look() error {
	s.mu.Lock()
	gone := s.gone
	s.mu.Unlock()
	if gone != nil {
		return gone
	}
	if a, ok := tranca.As[interface{ Alive() bool }](s.box.sb); !ok || a.Alive() {
		return nil
	}
	s.fail("its machine died" + s.lastWords())
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone
}

// lastWords asks a dead sandbox why it died; it answers at once.
func (s *Session) lastWords() string {
	p, ok := tranca.As[interface{ Ping(context.Context) error }](s.box.sb)
	if !ok {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := p.Ping(ctx); err != nil {
		return ": " + err.Error()
	}
	return ""
}

// tie returns a context that also ends when the session or the engine does.
func (s *Session) tie(ctx context.Context) (context.Context, context.CancelFunc) {
	return tie(ctx, s.life)
}

// work begins a call in which a program runs: Close of the engine waits for it,
// the session is not idle meanwhile, and its context ends with both.
func (s *Session) work(ctx context.Context) (context.Context, func(), error) {
	if err := s.e.begin(); err != nil {
		return nil, nil, err
	}
	used, err := s.use()
	if err != nil {
		s.e.running.Done()
		return nil, nil, err
	}
	ctx, cancel := s.tie(ctx)
	return ctx, func() { cancel(); used(); s.e.running.Done() }, nil
}

// admit waits for the turn of a program, which the caller gives back to flight.
func (s *Session) admit(ctx context.Context) error {
	s.e.queued(s.ID())
	if err := s.e.admit(ctx); err != nil {
		return s.because(err)
	}
	return nil
}

// watch sees to it that the session ends in time. One timer of the engine does
// that for all sessions: an idle one costs no goroutine.
func (e *Engine) watch(s *Session) {
	s.mu.Lock()
	at := s.due(time.Now())
	s.mu.Unlock()
	e.sweepAt(at)
}

func (e *Engine) sweepAt(at time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || !e.nextSweep.IsZero() && !at.Before(e.nextSweep) {
		return
	}
	e.nextSweep = at
	if e.sweeper == nil {
		e.sweeper = time.AfterFunc(time.Until(at), e.sweep)
		return
	}
	e.sweeper.Reset(time.Until(at))
}

// sweep ends the sessions whose time is over or whose machine has died.
func (e *Engine) sweep() {
	e.mu.Lock()
	e.nextSweep = time.Time{}
	open := slices.Collect(maps.Values(e.sessions.usable))
	e.mu.Unlock()
	now := time.Now()
	next := now.Add(lookEvery)
	left := false
	for _, s := range open {
		if s.expire(now) || s.look() != nil {
			continue
		}
		left = true
		s.mu.Lock()
		if at := s.due(now); at.Before(next) {
			next = at
		}
		s.mu.Unlock()
	}
	if left {
		e.sweepAt(next)
	}
}

// due is when to look at the session again.
func (s *Session) due(now time.Time) time.Time {
	at := now.Add(lookEvery)
	if !s.expires.IsZero() && s.expires.Before(at) {
		at = s.expires
	}
	if s.idle > 0 && s.calls == 0 {
		if idle := s.touched.Add(s.idle); idle.Before(at) {
			at = idle
		}
	}
	if s.idle > 0 && s.calls > 0 && s.idle < lookEvery {
		if soon := now.Add(s.idle); soon.Before(at) {
			at = soon
		}
	}
	return at
}

// expire ends a session whose time is over. Looking and ending are one step, so
// that no call can begin between them.
func (s *Session) expire(now time.Time) bool {
	s.mu.Lock()
	why := ""
	switch {
	case s.gone != nil:
	case !s.expires.IsZero() && !now.Before(s.expires):
		why = fmt.Sprintf("its time (%s) was over", s.ttl)
	case s.idle > 0 && s.calls == 0 && now.Sub(s.touched) >= s.idle:
		why = fmt.Sprintf("it was idle for %s", s.idle)
	}
	ended := why != "" && s.markLocked(sessionEnd{why: why})
	gone := s.gone
	s.mu.Unlock()
	if ended {
		s.buried(gone)
		s.finishLater()
	}
	return ended
}
