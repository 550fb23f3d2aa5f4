package cli

import (
	"errors"
	"io"
	"sync"
	"syscall"
)

// stream hands output on to a writer that may be slow without ever making the
// run wait: a program must not be slowed down, let alone run into its time
// limit, because nobody reads. What waits is held in memory; it is at most
// what the policy's output limit lets through.
type stream struct {
	dst io.Writer
	// failed is told the first error of dst. Later output is dropped.
	failed func(error)

	mu      sync.Mutex
	changed sync.Cond
	waiting []byte
	closed  bool
	err     error

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
// destination failed.
func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, s.err
	}
	s.waiting = append(s.waiting, p...)
	s.changed.Signal()
	return len(p), nil
}

// Close waits until all was handed on and returns the destination's error. It
// does not close the destination.
func (s *stream) Close() error {
	s.mu.Lock()
	s.closed = true
	s.changed.Signal()
	s.mu.Unlock()
	<-s.done
	return s.err
}

func (s *stream) drain() {
	defer close(s.done)
	var spare []byte
	for {
		chunk, more := s.next(spare)
		if !more {
			return
		}
		if _, err := s.dst.Write(chunk); err != nil {
			s.fail(err)
			return
		}
		spare = chunk[:0]
	}
}

// next waits for output and swaps it for an empty buffer.
func (s *stream) next(spare []byte) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.waiting) == 0 && !s.closed {
		s.changed.Wait()
	}
	chunk := s.waiting
	s.waiting = spare
	return chunk, len(chunk) > 0
}

func (s *stream) fail(err error) {
	s.mu.Lock()
	s.err, s.waiting = err, nil
	s.mu.Unlock()
	s.failed(err)
}

// brokenPipe reports whether err says that nobody reads any more.
func brokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }
