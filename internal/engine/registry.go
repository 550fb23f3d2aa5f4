package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tranca"
)

// maxTombs is how many ended sessions are remembered with their reason.
const maxTombs = 1024

// registry is the table of sessions. The engine's mutex guards it.
type registry struct {
	usable map[tranca.ID]*Session
	// open are those whose sandbox is not destroyed yet.
	open  map[*Session]struct{}
	tombs map[tranca.ID]error
	order []tranca.ID // of the tombs; a ring once it is full
	next  int
}

func newRegistry() registry {
	return registry{
		usable: map[tranca.ID]*Session{}, open: map[*Session]struct{}{}, tombs: map[tranca.ID]error{},
	}
}

func (r *registry) add(s *Session) {
	r.usable[s.ID()] = s
	r.open[s] = struct{}{}
}

// bury takes a session out of use and remembers why.
func (r *registry) bury(id tranca.ID, why error) {
	delete(r.usable, id)
	if _, there := r.tombs[id]; there {
		return
	}
	r.tombs[id] = why
	if len(r.order) < maxTombs {
		r.order = append(r.order, id)
		return
	}
	delete(r.tombs, r.order[r.next])
	r.order[r.next] = id
	r.next = (r.next + 1) % maxTombs
}

// all returns every session whose sandbox is there, oldest first.
func (r *registry) all() []*Session {
	return slices.SortedFunc(maps.Keys(r.open), older)
}

func older(a, b *Session) int {
	if c := a.created.Compare(b.created); c != 0 {
		return c
	}
	return strings.Compare(string(a.ID()), string(b.ID()))
}

// goneError says that a session has ended and why.
type goneError struct {
	id   tranca.ID
	why  string
	also error // tranca.ErrClosed where the owner ended it
}

func (e *goneError) Error() string {
	return fmt.Sprintf("%v: sandbox %s: %s", tranca.ErrGone, e.id, e.why)
}

func (e *goneError) Is(target error) bool {
	return target == tranca.ErrGone || e.also != nil && target == e.also
}

// Sessions returns what is known of each open session, oldest first.
func (e *Engine) Sessions() []tranca.SandboxInfo {
	e.mu.Lock()
	open := slices.Collect(maps.Values(e.sessions.usable))
	e.mu.Unlock()
	slices.SortFunc(open, older)
	infos := make([]tranca.SandboxInfo, len(open))
	for i, s := range open {
		infos[i] = s.Info()
	}
	return infos
}

// Session returns an open session. An id that nobody knows is
// [tranca.ErrNotFound]; one whose sandbox is no more is [tranca.ErrGone] with
// the reason, as long as that is remembered, which is for the last 1024.
func (e *Engine) Session(ctx context.Context, id tranca.ID) (*Session, error) {
	if !wellFormed(id) {
		return nil, fmt.Errorf("%w: sandbox %.40q: an id is 'i' and 20 of a-z and 0-9", tranca.ErrNotFound, id)
	}
	e.mu.Lock()
	s, tomb, closed := e.sessions.usable[id], e.sessions.tombs[id], e.closed
	e.mu.Unlock()
	switch {
	case s != nil:
		return s, s.look()
	case tomb != nil:
		return nil, tomb
	case closed:
		return nil, errClosed()
	}
	return nil, e.stranger(ctx, id)
}

// stranger asks the backends for a sandbox that this engine did not make. None
// of them can give it back together with the policy that it was made by, and
// without that its limits can't be kept; so at best they know what became of it.
func (e *Engine) stranger(ctx context.Context, id tranca.ID) error {
	gone := false
	for _, b := range e.cfg.Backends.All() {
		sb, err := b.Attach(ctx, id)
		switch {
		case err == nil && sb != nil:
			return fmt.Errorf("%w: sandbox %s is alive on backend %s, but the policy it was made by is not known any more", tranca.ErrUnsupported, id, b.Name())
		case errors.Is(err, tranca.ErrGone):
			gone = true // if it ever was: the backend can't know
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
	}
	if gone {
		return fmt.Errorf("%w: sandbox %s is not of those that were made here of late; those of an earlier server ended with it", tranca.ErrGone, id)
	}
	return fmt.Errorf("%w: sandbox %s", tranca.ErrNotFound, id)
}

func wellFormed(id tranca.ID) bool {
	if len(id) != 21 || id[0] != 'i' {
		return false
	}
	return strings.IndexFunc(string(id), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}) < 0
}
