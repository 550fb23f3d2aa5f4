package agent

import (
	"sync"

	"tranca/internal/guest/message"
)

// The bounds on what is held for a host that reads slower than the code writes.
const (
	maxHeld      = 4096
	maxHeldBytes = 256 << 10
)

// change is an event to be told. An empty type is an overflow.
type change struct {
	name string
	kind message.EventType
}

var overflow = change{}

// changes holds what is to be told. Where that becomes too much, all of it gives
// way to one overflow, after which the host has to look for itself anyway.
type changes struct {
	mu     sync.Mutex
	held   []change
	bytes  int
	closed bool
	wake   chan struct{}
}

func newChanges() *changes { return &changes{wake: make(chan struct{}, 1)} }

// put adds a change. One that says the same as the last is left out.
func (q *changes) put(c change) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := len(q.held); n > 0 && q.held[n-1] == c {
		return
	}
	if c == overflow || len(q.held) >= maxHeld || q.bytes+len(c.name) > maxHeldBytes {
		q.held, q.bytes = append(q.held[:0], overflow), 0
	} else {
		q.held = append(q.held, c)
		q.bytes += len(c.name)
	}
	q.signal()
}

// close says that nothing more comes.
func (q *changes) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.signal()
}

func (q *changes) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take returns what is held and whether that was the last.
func (q *changes) take() (held []change, last bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	held, q.held, q.bytes = q.held, nil, 0
	return held, q.closed
}
