package engine

import (
	"container/list"
	"context"
	"fmt"
	"sync"

	"tranca"
)

// queue bounds how many runs are in flight and how many wait. Waiting is fair:
// first come, first served.
type queue struct {
	mu      sync.Mutex
	free    int
	room    int // how many may wait
	waiting list.List
	closed  bool
}

// ticket is one that waits. ready is closed when its turn has come, or when
// the queue was closed, and then granted says which.
type ticket struct {
	ready   chan struct{}
	granted bool
}

func newQueue(inFlight, room int) *queue { return &queue{free: inFlight, room: room} }

// enter waits for a turn. Every enter without an error needs one leave. The
// error wraps [tranca.ErrBusy] when too many wait already, [tranca.ErrClosed]
// when the queue was closed, or is that of ctx.
func (q *queue) enter(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	t, elem, err := q.join()
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

// join takes a free place at once, and then returns no ticket, or lines up.
func (q *queue) join() (*ticket, *list.Element, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return nil, nil, errClosed()
	case q.free > 0:
		q.free--
		return nil, nil, nil
	case q.waiting.Len() >= q.room:
		return nil, nil, fmt.Errorf("%w: %d runs wait already: try again later, or raise the queue's bound", tranca.ErrBusy, q.room)
	}
	t := &ticket{ready: make(chan struct{})}
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
		return true
	}
}

// leave gives the place to the one that has waited longest.
func (q *queue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if first := q.waiting.Front(); first != nil {
		t := q.waiting.Remove(first).(*ticket)
		t.granted = true
		close(t.ready)
		return
	}
	q.free++
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

func errClosed() error { return fmt.Errorf("%w: the engine is closed", tranca.ErrClosed) }
