package client

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"tranca"
	"tranca/internal/api"
)

// Process is a program that was started in a sandbox. Safe for concurrent use.
type Process struct {
	s  *Sandbox
	id tranca.ProcessID

	mu   sync.Mutex
	info tranca.ProcessInfo
}

// ID returns its name, which its sandbox never uses again.
func (p *Process) ID() tranca.ProcessID { return p.id }

// Info returns what was last heard of it; [Process.Refresh] asks again.
func (p *Process) Info() tranca.ProcessInfo {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.info
}

func (p *Process) heard(info tranca.ProcessInfo) (tranca.ProcessInfo, error) {
	if info.ID != p.id {
		return tranca.ProcessInfo{}, fmt.Errorf("%w: the server answers for process %q, asked for %q", tranca.ErrProtocol, info.ID, p.id)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.info = info
	return info, nil
}

func (p *Process) call(pattern string) *call {
	return newCall(pattern, string(p.s.id), string(p.id))
}

// Refresh asks what is known of it.
func (p *Process) Refresh(ctx context.Context) (tranca.ProcessInfo, error) {
	return p.ask(ctx, p.call(api.RouteProcess).again())
}

func (p *Process) ask(ctx context.Context, q *call) (tranca.ProcessInfo, error) {
	var info tranca.ProcessInfo
	if err := p.s.c.do(ctx, q, &info); err != nil {
		return tranca.ProcessInfo{}, err
	}
	return p.heard(info)
}

// longPoll is how long the server may hold a question for the end back.
const longPoll = 30 * time.Second

// Wait returns how the program ended. If ctx ends first its error is returned
// and the program goes on.
func (p *Process) Wait(ctx context.Context) (tranca.Exit, error) {
	for {
		if exit := p.Info().Exit; exit != nil {
			return *exit, nil
		}
		q := p.call(api.RouteProcess).again().with("wait_ms", strconv.FormatInt(longPoll.Milliseconds(), 10))
		q.patience += longPoll
		began := time.Now()
		info, err := p.ask(ctx, q)
		if err != nil {
			return tranca.Exit{}, err
		}
		if info.Exit == nil && time.Since(began) < time.Second {
			// It did not hold it back. Asking must not become a flood.
			if err := sleep(ctx, firstPause); err != nil {
				return tranca.Exit{}, err
			}
		}
	}
}

// Signal sends a signal to the program, or with group to its process group.
// [tranca.ErrGone] if it has ended.
func (p *Process) Signal(ctx context.Context, sig tranca.Signal, group bool) error {
	q := p.call(api.RouteSignal).json(api.SignalRequest{Signal: int(sig), Group: group})
	return p.s.c.do(ctx, q, nil)
}

// Resize changes the size of its terminal. [tranca.ErrUnsupported] if it has
// none, [tranca.ErrGone] if it has ended.
func (p *Process) Resize(ctx context.Context, size tranca.TerminalSize) error {
	return p.s.c.do(ctx, p.call(api.RouteResize).json(size).again(), nil)
}

// Write writes all of b to its standard input, and returns when it was taken.
// Several calls at once are never mixed. [tranca.ErrInvalid] if it was started
// without one, [tranca.ErrClosed] once it was closed, [tranca.ErrGone] if the
// program has ended. After an error some of b may have been taken.
func (p *Process) Write(ctx context.Context, b []byte) error {
	return p.input(ctx, b, false)
}

// CloseStdin ends its standard input. Closing it again is no error.
func (p *Process) CloseStdin(ctx context.Context) error {
	return p.input(ctx, nil, true)
}

func (p *Process) input(ctx context.Context, b []byte, last bool) error {
	q := p.call(api.RouteStdin)
	q.contentType, q.patience, q.repeatable = api.TypeBytes, forever, len(b) == 0
	q.body = func() (io.Reader, int64) { return bytes.NewReader(b), int64(len(b)) }
	if last {
		q.with("close", "true")
	}
	var taken api.InputAnswer
	if err := p.s.c.do(ctx, q, &taken); err != nil {
		return err
	}
	if taken.Written != int64(len(b)) {
		return fmt.Errorf("%w: the server says that %d of %d bytes were taken", tranca.ErrProtocol, taken.Written, len(b))
	}
	return nil
}

// Stdin returns a writer whose bytes go to the standard input as they come, in
// one request for all of them. Close ends the standard input and returns when
// the program was given all; without it, and where ctx ends first, the standard
// input stays open. A Write blocks while the program takes nothing, and fails
// once the program has ended. One goroutine uses it at a time.
func (p *Process) Stdin(ctx context.Context) io.WriteCloser {
	r, w := io.Pipe()
	in := &stdin{w: w, done: make(chan struct{})}
	q := p.call(api.RouteStdin).with("close", "true")
	q.contentType, q.patience = api.TypeBytes, forever
	q.body = func() (io.Reader, int64) { return r, -1 }
	go func() {
		defer close(in.done)
		var taken api.InputAnswer
		in.err = p.s.c.do(ctx, q, &taken)
		failed := in.err
		if failed == nil {
			failed = io.ErrClosedPipe
		}
		r.CloseWithError(failed)
	}()
	return in
}

// stdin is the writing end of a request.
type stdin struct {
	w    *io.PipeWriter
	done chan struct{}
	err  error
}

// Write implements [io.Writer].
func (s *stdin) Write(b []byte) (int, error) { return s.w.Write(b) }

// Close implements [io.Closer]. It may be called again.
func (s *stdin) Close() error {
	_ = s.w.Close() // never fails
	<-s.done
	return s.err
}
