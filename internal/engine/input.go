package engine

import (
	"context"
	"fmt"
	"io"
	"sync"

	"tranca"
)

// input is the standard input of a process as an ordered pipe without a buffer:
// a write has ended when the sandbox has taken all of it, so its memory is the
// writer's. Whole writes are never mixed.
type input struct {
	turn   chan struct{} // holds a token while somebody writes
	pieces chan []byte
	taken  chan int      // how many bytes of a piece were read
	eof    chan struct{} // closed by CloseStdin
	over   chan struct{} // closed when nobody reads any more
	end    sync.Once
	rest   bool // closed already; turn guards it
}

func newInput() *input {
	return &input{
		turn: make(chan struct{}, 1), pieces: make(chan []byte), taken: make(chan int),
		eof: make(chan struct{}), over: make(chan struct{}),
	}
}

// Read is called by the sandbox, from one goroutine.
func (i *input) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	select {
	case b := <-i.pieces:
		n := copy(p, b)
		i.taken <- n
		return n, nil
	case <-i.eof:
	case <-i.over:
	}
	return 0, io.EOF
}

// enter waits until nobody else writes.
func (i *input) enter(ctx context.Context) error {
	select {
	case i.turn <- struct{}{}:
		return nil
	case <-i.over:
		return errProcessEnded()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (i *input) write(ctx context.Context, b []byte) error {
	if err := i.enter(ctx); err != nil {
		return err
	}
	defer func() { <-i.turn }()
	if i.rest {
		return fmt.Errorf("%w: the program's standard input was closed", tranca.ErrClosed)
	}
	all := len(b)
	for len(b) > 0 {
		select {
		case i.pieces <- b:
			b = b[<-i.taken:]
		case <-i.over:
			return errProcessEnded()
		case <-ctx.Done():
			return fmt.Errorf("%d of %d bytes were written: %w", all-len(b), all, context.Cause(ctx))
		}
	}
	return nil
}

// closeWrite ends the input after what was written.
func (i *input) closeWrite(ctx context.Context) error {
	if err := i.enter(ctx); err != nil {
		return err
	}
	defer func() { <-i.turn }()
	if !i.rest {
		i.rest = true
		close(i.eof)
	}
	return nil
}

// abandon tells readers and writers that the program has ended.
func (i *input) abandon() { i.end.Do(func() { close(i.over) }) }

func errProcessEnded() error { return fmt.Errorf("%w: the program has ended", tranca.ErrGone) }
