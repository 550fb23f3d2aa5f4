package client

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync"

	"tranca"
	"tranca/internal/api"
)

// Dial connects to a TCP port of the sandbox's loopback, through the server.
// Errors wrap [tranca.ErrNotFound] (nothing listens), [tranca.ErrInvalid],
// [tranca.ErrBusy], [tranca.ErrGone] or [tranca.ErrUnsupported]. ctx bounds the
// dial only.
func (s *Sandbox) Dial(ctx context.Context, port int) (tranca.PortConn, error) {
	q := newCall(api.RoutePort, string(s.id), strconv.Itoa(port)).again()
	q.upgrade, q.accept = api.UpgradePort, ""
	var mu sync.Mutex
	var conn net.Conn
	live, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	traced := httptrace.WithClientTrace(live, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		mu.Lock()
		defer mu.Unlock()
		conn = info.Conn
	}})
	resp, err := s.c.send(traced, q)
	if !stop() || err != nil {
		if err == nil {
			resp.Body.Close()
		}
		cancel(nil)
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	mu.Lock()
	defer mu.Unlock()
	return s.c.portConn(resp, conn, func(err error) { q.release(err); cancel(err) })
}

// portConn makes a connection of an answer that was upgraded. How to end one
// direction is known to the answer's body or to the connection below it.
func (c *Client) portConn(resp *http.Response, conn net.Conn, cancel context.CancelCauseFunc) (tranca.PortConn, error) {
	rw, ok := resp.Body.(io.ReadWriteCloser)
	half, halves := resp.Body.(interface{ CloseWrite() error })
	if !halves {
		half, halves = conn.(interface{ CloseWrite() error })
	}
	if !ok || !halves {
		resp.Body.Close()
		cancel(nil)
		return nil, fmt.Errorf("%w: the connection to %s can't be used for a port's bytes", tranca.ErrUnsupported, c.place)
	}
	return &portConn{ReadWriteCloser: rw, half: half, cancel: cancel}, nil
}

// portConn is a [tranca.PortConn].
type portConn struct {
	io.ReadWriteCloser
	half   interface{ CloseWrite() error }
	cancel context.CancelCauseFunc
}

// CloseWrite implements [tranca.PortConn].
func (p *portConn) CloseWrite() error { return p.half.CloseWrite() }

// Close implements [io.Closer].
func (p *portConn) Close() error {
	err := p.ReadWriteCloser.Close()
	p.cancel(nil)
	return err
}
