package direct

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

// Hijack is what [http.ResponseController] looks for: the handler takes the
// connection over, and what it writes is the answer, with its head.
func (x *exchange) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	err := http.ErrHijacked
	var server *end
	x.once.Do(func() {
		fromClient, toServer := io.Pipe()
		fromServer, toClient := io.Pipe()
		server = &end{r: fromClient, w: toClient}
		x.taken = &end{r: fromServer, w: toServer}
		err = nil
		close(x.ready)
	})
	if err != nil {
		return nil, nil, err
	}
	return server, bufio.NewReadWriter(bufio.NewReader(server), bufio.NewWriter(server)), nil
}

// raw reads the head of an answer that the handler writes by itself.
func (x *exchange) raw() (*http.Response, error) {
	ctx := x.req.Context()
	stop := context.AfterFunc(ctx, func() { _ = x.taken.Close() })
	in := bufio.NewReader(x.taken)
	resp, err := http.ReadResponse(in, x.req)
	if !stop() {
		err = errors.Join(context.Cause(ctx), err)
	}
	if err != nil {
		_ = x.taken.Close()
		x.cancel(err)
		return nil, err
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		resp.Body = &upgraded{in, x.taken}
		return resp, nil
	}
	resp.Body = &refused{resp.Body, x}
	return resp, nil
}

// upgraded is the body of an answer after which the connection carries
// something else.
type upgraded struct {
	*bufio.Reader
	conn *end
}

func (u *upgraded) Write(p []byte) (int, error) { return u.conn.Write(p) }
func (u *upgraded) CloseWrite() error           { return u.conn.CloseWrite() }
func (u *upgraded) Close() error                { return u.conn.Close() }

// refused is the body of an answer that came by a connection taken over all
// the same.
type refused struct {
	io.ReadCloser
	x *exchange
}

func (r *refused) Close() error {
	err := r.ReadCloser.Close()
	r.x.cancel(context.Canceled)
	return errors.Join(err, r.x.taken.Close())
}

// end is one end of a connection within the process. It has no deadlines.
type end struct {
	r *io.PipeReader
	w *io.PipeWriter
}

var _ net.Conn = (*end)(nil)

func (e *end) Read(p []byte) (int, error)  { return e.r.Read(p) }
func (e *end) Write(p []byte) (int, error) { return e.w.Write(p) }

// CloseWrite tells the other end that nothing more comes.
func (e *end) CloseWrite() error { return e.w.Close() }

// Close implements [net.Conn].
func (e *end) Close() error {
	e.r.CloseWithError(net.ErrClosed)
	return e.w.Close()
}

func (e *end) LocalAddr() net.Addr  { return address{} }
func (e *end) RemoteAddr() net.Addr { return address{} }

func (e *end) SetDeadline(t time.Time) error {
	if !t.IsZero() {
		return os.ErrNoDeadline
	}
	return nil
}

func (e *end) SetReadDeadline(t time.Time) error  { return e.SetDeadline(t) }
func (e *end) SetWriteDeadline(t time.Time) error { return e.SetDeadline(t) }

// address is where both ends are.
type address struct{}

func (address) Network() string { return "direct" }
func (address) String() string  { return "this process" }
