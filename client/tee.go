package client

import (
	"fmt"
	"io"
	"sync"
	"time"

	"tranca"
)

const (
	// liveGrace is how long a live copy may take nothing after the run has
	// ended, and hurriedGrace that where nobody waits for the result.
	liveGrace    = 2 * time.Second
	hurriedGrace = 100 * time.Millisecond
	// livePiece bounds one write to a live copy, so that a slow writer is seen
	// to make progress.
	livePiece = 64 << 10
)

// tee keeps the output of a run for its result, and has a goroutine pass it on
// to a writer from there. So a slow writer holds up neither the run nor the
// connection, and needs no buffer of its own.
type tee struct {
	mu    sync.Mutex
	kept  []byte
	sent  int
	ended bool
	left  bool          // the writer was left behind
	wake  chan struct{} // there is more, or it has ended; nil without a writer
	idle  chan struct{} // closed when the goroutine is done
}

func newTee(w io.Writer) *tee {
	t := &tee{idle: make(chan struct{})}
	if w == nil {
		close(t.idle)
		return t
	}
	t.wake = make(chan struct{}, 1)
	go t.pass(w)
	return t
}

// add keeps output.
func (t *tee) add(data []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.kept)+len(data) > maxOutput {
		return fmt.Errorf("%w: a run with more than %d bytes of output", tranca.ErrProtocol, maxOutput)
	}
	t.kept = append(t.kept, data...)
	t.poke()
	return nil
}

func (t *tee) poke() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// first returns the first n bytes, nil for none, if there are so many.
func (t *tee) first(n int64) ([]byte, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case n < 0 || n > int64(len(t.kept)):
		return nil, false
	case n == 0:
		return nil, true
	}
	return t.kept[:n:n], true
}

// pass writes until it has ended and all is written, or a write fails: a reader
// that went away is no failure of the run.
func (t *tee) pass(w io.Writer) {
	defer close(t.idle)
	for {
		piece, ended := t.next()
		if len(piece) == 0 {
			if ended {
				return
			}
			<-t.wake
			continue
		}
		n, err := w.Write(piece)
		if err != nil || n < len(piece) {
			return
		}
		t.mu.Lock()
		t.sent += n
		t.mu.Unlock()
	}
}

func (t *tee) next() (piece []byte, ended bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left {
		return nil, true
	}
	// What is kept never changes, also where a later add moves it.
	return t.kept[t.sent:min(len(t.kept), t.sent+livePiece)], t.ended
}

// finish ends the output and waits until all was passed on. A writer that takes
// nothing for the grace time is left behind: a write that hangs is abandoned,
// no other follows, and finish returns how many bytes it did not get.
func (t *tee) finish(grace time.Duration) (missed int) {
	t.mu.Lock()
	t.ended = true
	last := t.sent
	t.poke()
	t.mu.Unlock()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	for {
		select {
		case <-t.idle:
			return 0
		case <-timer.C:
		}
		t.mu.Lock()
		t.left = t.left || t.sent == last
		left, rest := t.left, len(t.kept)-t.sent
		last = t.sent
		t.mu.Unlock()
		if left {
			return rest
		}
		timer.Reset(grace)
	}
}
