package server

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"tranca"
	"tranca/internal/api"
)

// Bounds of what is remembered of idempotency keys.
const (
	// rememberTime is how long an answer is remembered after it was given.
	rememberTime = 10 * time.Minute
	maxKeys      = 2048
	maxKept      = 4 << 20 // bytes of all answers
	maxAnswer    = 1 << 20 // bytes of one
	maxKey       = 255
)

// store remembers what came of requests with an idempotency key. It forgets
// answers before it forgets keys, so that what was done is rather refused than
// done again; but a busy server forgets old keys early, since it must not
// refuse new requests for their sake. Safe for concurrent use.
type store struct {
	now func() time.Time

	mu   sync.Mutex
	all  map[string]*entry
	done []*entry // in the order in which they were done
	kept int64
}

func newStore(now func() time.Time) *store {
	return &store{now: now, all: map[string]*entry{}}
}

// entry is one request.
type entry struct {
	key    string
	digest [sha256.Size]byte
	run    bool
	over   chan struct{}

	// Guarded by the store.
	end     context.CancelCauseFunc // nil once it has ended: it holds the whole request
	waiting int
	ended   time.Time
	answer  any
	size    int64
	err     error
	lost    bool // its answer was forgotten
}

// begin finds the request of a key, or makes it. An error says that the key
// was used for another request, or that too many are remembered.
func (s *store) begin(key string, digest [sha256.Size]byte, run bool, end context.CancelCauseFunc) (e *entry, first bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget()
	if e := s.all[key]; e != nil {
		if e.digest != digest {
			return nil, false, api.Errorf(api.CodeConflict, "the idempotency key was used for another request less than %s ago", rememberTime)
		}
		e.waiting++
		return e, false, nil
	}
	if len(s.all) >= maxKeys && len(s.done) == 0 {
		return nil, false, api.Errorf(api.CodeBusy, "%d requests with idempotency keys are under way: wait, or send none", maxKeys)
	}
	if len(s.all) >= maxKeys {
		s.forgetOldest()
	}
	e = &entry{key: key, digest: digest, run: run, end: end, over: make(chan struct{}), waiting: 1}
	s.all[key] = e
	return e, true, nil
}

// forget lets go of what is old, and of answers where they are too many.
func (s *store) forget() {
	for len(s.done) > 0 && s.now().Sub(s.done[0].ended) > rememberTime {
		s.forgetOldest()
	}
	for i := 0; s.kept > maxKept && i < len(s.done); i++ {
		s.drop(s.done[i])
	}
}

func (s *store) forgetOldest() {
	e := s.done[0]
	s.done[0], s.done = nil, s.done[1:]
	s.drop(e)
	delete(s.all, e.key)
}

func (s *store) drop(e *entry) {
	s.kept -= e.size
	e.answer, e.size, e.lost = nil, 0, true
}

// finish notes what came of a request. One that failed may be tried again.
func (s *store) finish(e *entry, answer any, size int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.err, e.end = err, nil
	switch {
	case err != nil:
		delete(s.all, e.key)
	default:
		e.answer, e.size, e.ended = answer, size, s.now()
		s.kept += size
		s.done = append(s.done, e)
		if size > maxAnswer {
			s.drop(e)
		}
		s.forget()
	}
	close(e.over)
}

// leave notes that nobody at this connection waits any more. A request that
// nobody waits for is ended after a while.
func (s *store) leave(e *entry, linger time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.waiting--; e.waiting > 0 {
		return
	}
	timer := time.AfterFunc(linger, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if e.waiting == 0 && e.end != nil {
			e.end(errClientGone)
		}
	})
	go func() { <-e.over; timer.Stop() }()
}

// cancel ends the run of a key, and reports whether one is under way.
func (s *store) cancel(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.all[key]
	if e == nil || !e.run || e.end == nil {
		return false
	}
	e.end(fmt.Errorf("%w: the run was cancelled", tranca.ErrClosed))
	return true
}

// once is a request that is done once, if it has a key.
type once struct {
	ctx   context.Context
	first bool
	s     *Server
	e     *entry // nil without a key
	stop  func() bool
}

// once finds out whether the request was made already. done must be called for
// one that is the first.
func (c *call) once() (*once, error) {
	key := c.r.Header.Get(api.HeaderIdempotencyKey)
	if key == "" {
		return &once{ctx: c.ctx(), first: true, s: c.s}, nil
	}
	ctx, end := context.WithCancelCause(context.WithoutCancel(c.ctx()))
	run := c.route.Pattern != api.RouteCreate
	e, first, err := c.s.answers.begin(key, c.digest(), run, end)
	if err != nil {
		end(nil)
		return nil, err
	}
	o := &once{ctx: ctx, first: first, s: c.s, e: e}
	o.stop = context.AfterFunc(c.ctx(), func() { c.s.answers.leave(e, c.s.cfg.Linger) })
	return o, nil
}

// gone is called when the client no longer takes the answer: a run that it may
// come back for goes on.
func (o *once) gone(cancel context.CancelCauseFunc) {
	if o.e == nil {
		cancel(errClientGone)
		return
	}
	if o.stop() {
		o.s.answers.leave(o.e, o.s.cfg.Linger)
	}
}

// wait returns what the first request became.
func (o *once) wait(ctx context.Context) (any, error) {
	defer o.stop()
	select {
	case <-o.e.over:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	o.s.answers.mu.Lock()
	defer o.s.answers.mu.Unlock()
	switch {
	case o.e.err != nil:
		return nil, o.e.err
	case o.e.lost:
		return nil, api.Errorf(api.CodeGone, "the request was done before, and its answer is no longer kept")
	}
	return o.e.answer, nil
}

// done notes what came of the first request.
func (o *once) done(answer any, size int64, err error) {
	if o.e != nil {
		o.stop()
		o.s.answers.finish(o.e, answer, size, err)
	}
}

// hashBody lets what is read of the body be compared with another one's.
func (c *call) hashBody() {
	if c.r.Header.Get(api.HeaderIdempotencyKey) != "" {
		c.body.hash = sha256.New()
	}
}

// digest is equal for equal requests only. One whose input is still to come is
// equal to none.
func (c *call) digest() (sum [sha256.Size]byte) {
	if !c.body.whole() {
		_, _ = rand.Read(sum[:])
		return sum
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s %q %q\n", c.route.Pattern, c.r.PathValue("id"), c.r.Header.Get("Content-Type"))
	h.Write(c.body.digest())
	copy(sum[:], h.Sum(nil))
	return sum
}

// checkKeyHeader refuses a key where none is taken, and one that is none.
func (c *call) checkKeyHeader() error {
	all := c.r.Header.Values(api.HeaderIdempotencyKey)
	switch takes := c.route.Idempotent || c.route.NeedsKey; {
	case len(all) == 0 && c.route.NeedsKey:
		return api.Errorf(api.CodeInvalid, "the header %s is missing: it says which run", api.HeaderIdempotencyKey)
	case len(all) == 0:
		return nil
	case !takes:
		return nil // as any other header that means nothing here
	case len(all) > 1 || all[0] == "" || len(all[0]) > maxKey:
		return api.Errorf(api.CodeInvalid, "the header %s: want one, of 1 to %d characters", api.HeaderIdempotencyKey, maxKey)
	}
	for i := range len(all[0]) {
		if b := all[0][i]; b <= ' ' || b > '~' {
			return api.Errorf(api.CodeInvalid, "the header %s: character %d is no visible ASCII", api.HeaderIdempotencyKey, i+1)
		}
	}
	return nil
}
