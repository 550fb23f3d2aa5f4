package fake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"tranca"
)

// conn is one end of a connection in memory.
type conn struct {
	r *io.PipeReader
	w *io.PipeWriter
}

// connect returns both ends of a connection.
func connect() (a, b conn) {
	fromA, toB := io.Pipe()
	fromB, toA := io.Pipe()
	return conn{fromB, toB}, conn{fromA, toA}
}

func (c conn) Read(p []byte) (int, error)  { return c.r.Read(p) }
func (c conn) Write(p []byte) (int, error) { return c.w.Write(p) }
func (c conn) CloseWrite() error           { return c.w.Close() }
func (c conn) Close() error                { return errors.Join(c.w.Close(), c.r.Close()) }

// Dial is [tranca.PortDialer].
func (s *sandbox) Dial(ctx context.Context, port int) (tranca.PortConn, error) {
	if port < 1 || port > 65535 {
		return nil, fmt.Errorf("%w: port %d: it is 1 to 65535", tranca.ErrInvalid, port)
	}
	s.mu.Lock()
	gone := s.closed || s.failed
	p := s.ports[port]
	s.mu.Unlock()
	switch {
	case gone:
		return nil, fmt.Errorf("%w: sandbox %s", tranca.ErrGone, s.ID())
	case p == nil:
		return nil, fmt.Errorf("%w: nothing listens on port %d", tranca.ErrNotFound, port)
	}
	outer, inner := connect()
	select {
	case p.accept <- inner:
		return outer, nil
	case <-p.dying:
		return nil, fmt.Errorf("%w: nothing listens on port %d", tranca.ErrNotFound, port)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// echo listens on a port, says "ready", and sends back what it is sent until it
// is killed, which ends all connections.
func echo(p *proc, a []string) int {
	port, _ := strconv.Atoi(arg(a, 0))
	p.s.mu.Lock()
	p.accept = make(chan conn)
	p.s.ports[port] = p
	p.s.mu.Unlock()
	var open []conn
	defer func() {
		p.s.mu.Lock()
		delete(p.s.ports, port)
		p.s.mu.Unlock()
		for _, c := range open {
			_ = c.Close()
		}
	}()
	say(p, "ready")
	for {
		select {
		case c := <-p.accept:
			open = append(open, c)
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.CloseWrite()
			}()
		case <-p.dying:
			p.check()
		}
	}
}
