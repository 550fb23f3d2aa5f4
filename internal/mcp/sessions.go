package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"tranca"
)

// maxSessions bounds the sessions that one client has open at once. Each holds
// memory on the host while nothing runs in it.
const maxSessions = 8

// place is where calls find a sandbox that outlives them. Calls take turns.
type place struct {
	// name is what the agent calls it: "s1". It is not the sandbox's id, which
	// is the operator's. The one that the policy keeps has none.
	name    string
	created time.Time
	// turn holds one value while a call has its turn. Only the one that has it
	// changes session.
	turn chan struct{}

	mu      sync.Mutex
	session Session // nil where none is open
	used    time.Time
}

// sessions are all places of one client.
type sessions struct {
	open func(context.Context) (Session, error)
	// kept is where calls without a session go, or nil where each of them has
	// a sandbox of its own.
	kept *place

	mu      sync.Mutex
	named   map[string]*place
	opening int
	count   int // names that were given away
}

func newSessions(keep bool, open func(context.Context) (Session, error)) *sessions {
	t := &sessions{open: open, named: map[string]*place{}}
	if keep {
		t.kept = newPlace("", nil)
	}
	return t
}

func newPlace(name string, s Session) *place {
	now := time.Now()
	return &place{name: name, session: s, created: now, used: now, turn: make(chan struct{}, 1)}
}

// create opens a session and returns its name.
func (t *sessions) create(ctx context.Context) (string, error) {
	t.mu.Lock()
	if len(t.named)+t.opening >= maxSessions {
		t.mu.Unlock()
		return "", tell("There are %d sessions already, which is the most: close one with close_session.", maxSessions)
	}
	t.opening++
	t.mu.Unlock()
	s, err := t.open(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.opening--
	if err != nil {
		return "", err
	}
	t.count++
	name := "s" + strconv.Itoa(t.count)
	t.named[name] = newPlace(name, s)
	return name, nil
}

// find returns the place of that name; "" is the kept one.
func (t *sessions) find(name string) (*place, error) {
	if name == "" {
		if t.kept == nil {
			return nil, tell("A session is needed here: make one with create_session.")
		}
		return t.kept, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.named[name]; p != nil {
		return p, nil
	}
	if n, err := strconv.Atoi(name[1:]); err == nil && name == "s"+strconv.Itoa(n) && n > 0 && n <= t.count {
		return nil, errEnded(name)
	}
	return nil, tell("There is no session %s: list_sessions says which there are, and create_session makes one.", strconv.Quote(clip(name)))
}

func errEnded(name string) error {
	return tell("The session %s has ended, and its files are gone. Nothing was done. Make another one with create_session.", name)
}

// use calls do with the session of that name when its turn has come. A session
// that turns out to be gone is forgotten; the kept one is opened again by the
// next call.
func (t *sessions) use(ctx context.Context, name string, do func(Session) error) error {
	p, err := t.find(name)
	if err != nil {
		return err
	}
	if err := p.enter(ctx); err != nil {
		return err
	}
	defer p.leave()
	s, err := t.opened(ctx, p)
	if err != nil {
		return err
	}
	err = do(s)
	if isLost(err) {
		return t.lost(ctx, p, s, err)
	}
	return err
}

// beside calls do with the session of that name, whatever else goes on in it.
func (t *sessions) beside(ctx context.Context, name string, do func(Session) error) error {
	p, err := t.find(name)
	if err != nil {
		return err
	}
	p.touch()
	s := p.current()
	if s == nil {
		if err := p.enter(ctx); err != nil {
			return err
		}
		s, err = t.opened(ctx, p)
		p.leave()
		if err != nil {
			return err
		}
	}
	err = do(s)
	if isLost(err) {
		if left := p.enter(ctx); left != nil {
			return errors.Join(err, left)
		}
		defer p.leave()
		return t.lost(ctx, p, s, err)
	}
	return err
}

// enter waits for the turn.
func (p *place) enter(ctx context.Context) error {
	select {
	case p.turn <- struct{}{}:
		p.touch()
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *place) leave() {
	p.touch()
	<-p.turn
}

func (p *place) touch() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used = time.Now()
}

func (p *place) current() Session {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.session
}

// opened returns the session, which it opens where there is none. The turn is
// held.
func (t *sessions) opened(ctx context.Context, p *place) (Session, error) {
	if s := p.current(); s != nil {
		return s, nil
	}
	s, err := t.open(ctx)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.session = s
	return s, nil
}

// isLost reports whether a call failed because its sandbox is gone.
func isLost(err error) bool {
	return errors.Is(err, tranca.ErrGone) || errors.Is(err, tranca.ErrClosed)
}

// lost forgets a session that is gone. Its turn is held.
func (t *sessions) lost(ctx context.Context, p *place, s Session, gone error) error {
	if p.name == "" {
		p.mu.Lock()
		if p.session == s {
			p.session = nil
		}
		p.mu.Unlock()
	} else {
		t.mu.Lock()
		delete(t.named, p.name)
		t.mu.Unlock()
		gone = errors.Join(errEnded(p.name), gone)
	}
	return errors.Join(gone, s.Close(context.WithoutCancel(ctx)))
}

// end closes the session of that name, and so ends what runs in it.
func (t *sessions) end(ctx context.Context, name string) error {
	if name == "" {
		return tell("Name a session: list_sessions says which there are.")
	}
	p, err := t.find(name)
	if err != nil {
		return err
	}
	t.mu.Lock()
	delete(t.named, name)
	t.mu.Unlock()
	return p.session.Close(context.WithoutCancel(ctx))
}

// sessionView is what the agent is told of a session.
type sessionView struct {
	Session string `json:"session"`
	Age     int64  `json:"age_seconds"`
	Unused  int64  `json:"unused_seconds"`
	Busy    bool   `json:"busy"`
}

// list returns the sessions that have a name, oldest first.
func (t *sessions) list() []sessionView {
	t.mu.Lock()
	places := make([]*place, 0, len(t.named))
	for _, p := range t.named {
		places = append(places, p)
	}
	t.mu.Unlock()
	slices.SortFunc(places, func(a, b *place) int {
		return cmp.Or(cmp.Compare(len(a.name), len(b.name)), cmp.Compare(a.name, b.name))
	})
	views := make([]sessionView, len(places))
	for i, p := range places {
		p.mu.Lock()
		views[i] = sessionView{
			Session: p.name, Age: seconds(time.Since(p.created)),
			Unused: seconds(time.Since(p.used)), Busy: len(p.turn) > 0,
		}
		p.mu.Unlock()
	}
	return views
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

// closeAll closes every session. No call may be under way.
func (t *sessions) closeAll(ctx context.Context) error {
	t.mu.Lock()
	all := make([]Session, 0, len(t.named)+1)
	for _, p := range t.named {
		all = append(all, p.session)
	}
	clear(t.named)
	t.mu.Unlock()
	if t.kept != nil && t.kept.session != nil {
		all = append(all, t.kept.session)
		t.kept.session = nil
	}
	errs := make([]error, len(all))
	var closing sync.WaitGroup
	for i, s := range all {
		closing.Go(func() { errs[i] = s.Close(context.WithoutCancel(ctx)) })
	}
	closing.Wait()
	return errors.Join(errs...)
}

// told is an error that was written for the agent.
type told struct{ words string }

func (e *told) Error() string { return e.words }

func tell(format string, args ...any) error { return &told{fmt.Sprintf(format, args...)} }
