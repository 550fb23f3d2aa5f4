package docker

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Stream is a container's standard input, output and error. Read gives what it
// writes to standard output; what it writes to standard error is kept, up to a
// bound. One goroutine may read while another writes.
type Stream struct {
	conn   net.Conn
	frames *demux
}

var _ io.ReadWriteCloser = (*Stream)(nil)

// Attach connects to a container that is not started yet, so that nothing it
// writes is missed.
func (c *Client) Attach(ctx context.Context, id string) (*Stream, error) {
	query := url.Values{"stream": {"1"}, "stdin": {"1"}, "stdout": {"1"}, "stderr": {"1"}}
	req, err := c.request(ctx, http.MethodPost, "/containers/"+id+"/attach", query, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "tcp")
	conn, err := c.dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("engine at %s: attach: %w", c.Socket, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	r, err := upgrade(conn, req)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("engine at %s: attach: %w", c.Socket, err)
	}
	return &Stream{conn: conn, frames: newDemux(r)}, nil
}

// upgrade asks for the connection itself. Docker answers 101, others 200.
func upgrade(conn net.Conn, req *http.Request) (*bufio.Reader, error) {
	if err := req.Write(conn); err != nil {
		return nil, err
	}
	r := bufio.NewReaderSize(conn, readBuffer)
	resp, err := http.ReadResponse(r, req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusSwitchingProtocols && resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, answerError(resp, "attach")
	}
	// The body of a 200 is the raw connection: nothing is read by way of it.
	return r, nil
}

// Read reads standard output.
func (s *Stream) Read(b []byte) (int, error) { return s.frames.Read(b) }

// Write writes to standard input.
func (s *Stream) Write(b []byte) (int, error) { return s.conn.Write(b) }

// SetDeadline bounds reads and writes that are under way or come.
func (s *Stream) SetDeadline(t time.Time) error { return s.conn.SetDeadline(t) }

// Close ends the stream, and with it the container's standard input.
func (s *Stream) Close() error { return s.conn.Close() }

// Said returns the first bytes of standard error.
func (s *Stream) Said() string { return s.frames.said() }
