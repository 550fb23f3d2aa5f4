package machine

import (
	"context"
	"fmt"
	"sync"

	"tranca"
)

// Lifetime is that of a backend: it ends after all that the backend has made.
// The zero value has begun. Safe for concurrent use.
type Lifetime struct {
	mu     sync.Mutex
	closed bool
	live   sync.WaitGroup
}

// Enter counts one that the backend works for, until it calls Leave. When the
// backend has been closed the error wraps [tranca.ErrClosed].
func (l *Lifetime) Enter(backend string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return fmt.Errorf("%w: backend %s", tranca.ErrClosed, backend)
	}
	l.live.Add(1)
	return nil
}

// Stay counts one more, for one who has entered and whose work goes on by
// itself: also when the backend has been closed since.
func (l *Lifetime) Stay() { l.live.Add(1) }

// Leave takes one off the count.
func (l *Lifetime) Leave() { l.live.Done() }

// Close lets nobody enter any more, waits until all have left, and then frees
// what the backend holds. If ctx ends first, it frees nothing and returns the
// context's error. Only the first call does anything.
func (l *Lifetime) Close(ctx context.Context, backend string, free func() error) error {
	l.mu.Lock()
	closed := l.closed
	l.closed = true
	l.mu.Unlock()
	if closed {
		return nil
	}
	done := make(chan struct{})
	go func() { l.live.Wait(); close(done) }()
	select {
	case <-done:
		return free()
	case <-ctx.Done():
		return fmt.Errorf("sandboxes of backend %s are still open: %w", backend, context.Cause(ctx))
	}
}
