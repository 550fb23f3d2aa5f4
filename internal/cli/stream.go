package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"syscall"
	"time"

	"tranca/internal/terminal"
)

// stream hands output on to a writer that may be slow without ever making the
// run wait: a program must not be slowed down, let alone run into its time
// limit, because nobody reads. What waits is held in memory; it is at most
// what the policy's output limit lets through.
type stream struct {
	dst io.Writer
	// failed is told the first error of dst. Later output is dropped.
	failed func(error)
	// room bounds what waits, in bytes: a write that finds more waits for the
	// reader. 0 is no bound.
	room int

	mu      sync.Mutex
	changed sync.Cond
	waiting []byte
	writing int   // bytes that were taken from waiting and are not written yet
	written int64 // bytes in all
	closed  bool
	err     error
	left    error // of abandon

	done chan struct{}
}

// newStream starts a stream. Close ends it.
func newStream(dst io.Writer, failed func(error)) *stream {
	s := &stream{dst: dst, failed: failed, done: make(chan struct{})}
	s.changed.L = &s.mu
	go s.drain()
	return s
}

// Write takes all of p, and fails only when an earlier write to the
// destination failed or the stream was abandoned.
func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.room > 0 && len(s.waiting)+s.writing > s.room && s.err == nil && s.left == nil {
		s.changed.Wait()
	}
	if s.err != nil || s.left != nil {
		return 0, cmp.Or(s.err, s.left)
	}
	s.waiting = append(s.waiting, p...)
	s.changed.Broadcast()
	return len(p), nil
}

// abandon lets nothing more be written, and no writer wait.
func (s *stream) abandon(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = why
	s.changed.Broadcast()
}

// Close waits until all was handed on and returns the destination's error. It
// does not close the destination.
func (s *stream) Close() error { return s.finish(context.Background(), forever) }

// forever is how long somebody at a terminal may take: he who stopped its
// output knows how to go on, or to end tranca.
const forever = time.Duration(math.MaxInt64)

// finish is Close for a reader that may never read: one that takes nothing for
// the given time, or at all when ctx has ended, is left behind with an
// [unreadError]. What waits is put into the pipe itself where it can be made
// large enough. So a reader that comes later, such as a pager, loses nothing.
func (s *stream) finish(ctx context.Context, patience time.Duration) error {
	s.mu.Lock()
	s.closed = true
	s.changed.Broadcast()
	pending, last := len(s.waiting)+s.writing, s.written
	s.mu.Unlock()
	if pending > 0 {
		makeRoom(s.dst, pending)
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	stopped := ctx.Done()
	for {
		select {
		case <-s.done:
			return s.err
		case <-stopped:
			stopped, patience = nil, min(patience, time.Second)
		case <-timer.C:
			now, lost := s.progress(last)
			if lost > 0 {
				return &unreadError{lost, patience}
			}
			last = now
		}
		timer.Reset(patience)
	}
}

// progress returns how much was written. A destination that has taken no more
// than last time gets nothing from then on, and lost says what it missed.
func (s *stream) progress(last int64) (written int64, lost int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.written > last || s.err != nil {
		return s.written, 0
	}
	lost = len(s.waiting) + s.writing
	if lost > 0 {
		s.err, s.waiting = &unreadError{}, nil
	}
	return s.written, lost
}

// end is finish and, on a terminal, the end of its filter.
func (s *stream) end(ctx context.Context, patience time.Duration) error {
	err := s.finish(ctx, patience)
	if f, ok := s.dst.(*terminal.Filter); ok && err == nil {
		err = f.Close()
	}
	return err
}

// unreadError says that the output's reader took nothing for a while.
type unreadError struct {
	lost  int
	after time.Duration
}

func (e *unreadError) Error() string {
	return fmt.Sprintf("nobody read the output for %s: its last %d bytes are lost", e.after, e.lost)
}

// readerPatience is how long a reader may take nothing after the run has
// ended: as long as the program was given, within reason.
func readerPatience(w io.Writer, wall time.Duration) time.Duration {
	if terminal.Is(w) {
		return forever
	}
	return min(max(wall, 2*time.Second), time.Minute)
}

// pieceSize bounds one write, so that a slow reader is seen to make progress.
const pieceSize = 64 << 10

func (s *stream) drain() {
	defer close(s.done)
	var spare []byte
	for {
		chunk, more := s.next(spare)
		if !more {
			return
		}
		for rest := chunk; len(rest) > 0; {
			n := min(len(rest), pieceSize)
			if _, err := s.dst.Write(rest[:n]); err != nil {
				s.fail(err)
				return
			}
			rest = rest[n:]
			if !s.wrote(n) {
				return
			}
		}
		spare = chunk[:0]
	}
}

// wrote counts bytes; it is false where no more may follow.
func (s *stream) wrote(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writing -= n
	s.written += int64(n)
	s.changed.Broadcast()
	return s.err == nil
}

// next waits for output and swaps it for an empty buffer.
func (s *stream) next(spare []byte) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.waiting) == 0 && !s.closed {
		s.changed.Wait()
	}
	chunk := s.waiting
	s.waiting, s.writing = spare, len(chunk)
	return chunk, len(chunk) > 0
}

func (s *stream) fail(err error) {
	s.mu.Lock()
	s.err, s.waiting, s.writing = err, nil, 0
	s.changed.Broadcast()
	s.mu.Unlock()
	s.failed(err)
}

// brokenPipe reports whether err says that nobody reads any more.
func brokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }
