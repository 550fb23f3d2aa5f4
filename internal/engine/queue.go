package engine

import (
	"container/list"
	"context"
	"fmt"
	"sync"

	"tranca"
)

// need is what one piece of work takes of the bounds while it holds them.
type need struct {
	places int64
	memory int64 // bytes
	cpus   int64 // thousandths of a CPU
}

func (n need) plus(o need) need {
	return need{n.places + o.places, n.memory + o.memory, n.cpus + o.cpus}
}

func (n need) minus(o need) need {
	return need{n.places - o.places, n.memory - o.memory, n.cpus - o.cpus}
}

// within reports whether so much fits into what is left of a bound; a bound of
// 0 is none.
func (n need) within(bound, used need) bool {
	fits := func(n, bound, used int64) bool { return bound == 0 || n <= bound-used }
	return fits(n.places, bound.places, used.places) &&
		fits(n.memory, bound.memory, used.memory) && fits(n.cpus, bound.cpus, used.cpus)
}

// queue bounds the sum of what is held at once and how many wait. It is fair:
// first come, first served, and the one that has waited longest is not
// overtaken by one that would fit, so that a large need is not starved by small
// ones.
type queue struct {
	bound need
	room  int // how many may wait

	mu      sync.Mutex
	used    need
	waiting list.List
	closed  bool
}

// ticket is one that waits. ready is closed when its turn has come, or when
// the queue was closed, and then granted says which.
type ticket struct {
	need    need
	ready   chan struct{}
	granted bool
}

func newQueue(bound need, room int) *queue { return &queue{bound: bound, room: room} }

// enter waits for a turn. Every enter without an error needs one leave with
// the same need, which could be met if nobody else were there. The error wraps
// [tranca.ErrBusy] when too many wait already, [tranca.ErrClosed] when the
// queue was closed, or is that of ctx.
func (q *queue) enter(ctx context.Context, n need) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	t, elem, err := q.join(n)
	if err != nil || t == nil {
		return err
	}
	select {
	case <-t.ready:
	case <-ctx.Done():
		if q.abandon(elem, t) {
			return context.Cause(ctx)
		}
	}
	if !t.granted {
		return errClosed()
	}
	return nil
}

// join takes what is free at once, and then returns no ticket, or lines up.
func (q *queue) join(n need) (*ticket, *list.Element, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return nil, nil, errClosed()
	case q.waiting.Len() == 0 && n.within(q.bound, q.used):
		q.used = q.used.plus(n)
		return nil, nil, nil
	case q.waiting.Len() >= q.room:
		return nil, nil, fmt.Errorf("%w: %d requests wait already: try again later, or raise the queue's bound", tranca.ErrBusy, q.room)
	}
	t := &ticket{need: n, ready: make(chan struct{})}
	return t, q.waiting.PushBack(t), nil
}

// abandon leaves the line. It reports false where the turn came first.
func (q *queue) abandon(elem *list.Element, t *ticket) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-t.ready:
		return false
	default:
		q.waiting.Remove(elem)
		q.serve() // it may have stood before one that fits
		return true
	}
}

// leave gives back what was taken, to those that have waited longest.
func (q *queue) leave(n need) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used = q.used.minus(n)
	q.serve()
}

// serve lets those in that fit, in order, up to the first that does not.
func (q *queue) serve() {
	for first := q.waiting.Front(); first != nil; first = q.waiting.Front() {
		t := first.Value.(*ticket)
		if !t.need.within(q.bound, q.used) {
			return
		}
		q.used = q.used.plus(t.need)
		q.waiting.Remove(first)
		t.granted = true
		close(t.ready)
	}
}

// close turns away all that wait and all that come.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for first := q.waiting.Front(); first != nil; first = q.waiting.Front() {
		close(q.waiting.Remove(first).(*ticket).ready)
	}
}

// state returns what is held and how many wait.
func (q *queue) state() (used need, waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.used, q.waiting.Len()
}

func errClosed() error { return fmt.Errorf("%w: the engine is closed", tranca.ErrClosed) }
