package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"tranca"
	"tranca/internal/policy"
)

// share is what one sandbox takes of the bounds over all sandboxes, from before
// it is made until it is destroyed.
type share struct {
	q    *queue
	need need
	once sync.Once
}

// free gives the share back. Idempotent.
func (s *share) free() { s.once.Do(func() { s.q.leave(s.need) }) }

// reserve waits until the sums over all sandboxes let another one of this
// policy be made. What could never fit is refused at once.
func (e *Engine) reserve(ctx context.Context, p *tranca.Policy) (*share, error) {
	n := need{places: 1, memory: p.Limits.Memory, cpus: p.Limits.MilliCPUs}
	if !n.within(e.space.bound, need{}) {
		return nil, e.tooLarge(p, n)
	}
	started := time.Now()
	if err := e.space.enter(ctx, n); err != nil {
		return nil, err
	}
	e.stats.waited(time.Since(started))
	return &share{q: e.space, need: n}, nil
}

// tooLarge refuses a sandbox that is larger than all of them together may be.
func (e *Engine) tooLarge(p *tranca.Policy, n need) error {
	var problems []tranca.Problem
	for _, d := range []struct {
		item        tranca.Item
		asks, bound int64
		words       string
	}{
		{tranca.ItemMemory, n.memory, e.space.bound.memory, "bytes of memory"},
		{tranca.ItemCPUs, n.cpus, e.space.bound.cpus, "thousandths of a CPU"},
	} {
		if d.bound > 0 && d.asks > d.bound {
			problems = append(problems, tranca.Problem{
				Item: d.item, Asked: policy.Asked(*p, d.item),
				Missing: fmt.Sprintf("all sandboxes here together may have %d %s", d.bound, d.words),
				Mend:    fmt.Sprintf("narrow %s to at most that", d.item),
			})
		}
	}
	return &tranca.RefusalError{Problems: problems}
}

// admit waits for a turn among what is started or run at once. Every admit
// without an error needs one e.flight.leave(onePlace).
func (e *Engine) admit(ctx context.Context) error { return e.flight.enter(ctx, onePlace) }

// queued tells that something waits for its turn.
func (e *Engine) queued(id tranca.ID) { e.tell(tranca.Event{Kind: tranca.EventQueued, ID: id}) }

var onePlace = need{places: 1}
