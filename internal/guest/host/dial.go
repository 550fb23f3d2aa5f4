package host

import (
	"context"
	"errors"
	"fmt"
	"io"

	"tranca"
	"tranca/internal/guest/message"
	"tranca/internal/guest/wire"
)

var _ tranca.PortDialer = (*sandbox)(nil)

const (
	// mostPiece is the largest piece that is sent to a port; see mostInput.
	mostPiece = 32<<10 - message.MaxDataPrefix
	// portWindow is what may wait in the agent for a peer that does not read.
	portWindow = wire.MinWindow + 32<<10 + wire.FrameCost
)

// Dial is [tranca.PortDialer].
func (sb *sandbox) Dial(ctx context.Context, port int) (tranca.PortConn, error) {
	if port < 1 || port > 65535 {
		return nil, fmt.Errorf("%w: port %d: it is 1 to 65,535", tranca.ErrInvalid, port)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout, errNoAnswer)
	defer cancel()
	req := message.DialRequest{Port: uint32(port)}
	call, err := sb.sess.Open(ctx, message.MethodDial, 0, req.Append(nil), false)
	if err != nil {
		return nil, sb.explain(ctx, err)
	}
	if err := sb.answer(ctx, call.Stream, &message.Empty{}); err != nil {
		if isEOF(err) {
			err = sb.breach("a connection that ended before it was made")
		}
		call.Close()
		return nil, err
	}
	call.Narrow(portWindow)
	return &portConn{sb: sb, call: call}, nil
}

// portConn is one connection. What the host does not read stays inside, by the
// stream's credits.
type portConn struct {
	sb   *sandbox
	call *wire.Call
	buf  *wire.Buf // what Read holds, of the reader alone
	rest []byte    // what of it was not returned yet
	err  error     // why nothing follows
}

func (c *portConn) Read(p []byte) (int, error) {
	for len(c.rest) == 0 {
		if len(p) == 0 || c.err != nil {
			return 0, c.err
		}
		c.buf.Free()
		c.buf = nil
		if c.err = c.next(); c.err != nil {
			return 0, c.err
		}
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// next takes the next piece.
func (c *portConn) next() error {
	b, err := c.call.Recv(context.Background())
	if err != nil {
		return c.explain(err)
	}
	var chunk message.FileChunk
	if err := chunk.Unmarshal(b.Bytes()); err != nil {
		b.Free()
		return c.sb.breach("what comes over a connection can't be read")
	}
	c.buf, c.rest = b, chunk.Data
	return nil
}

func (c *portConn) Write(p []byte) (sent int, err error) {
	for len(p) > 0 {
		n := min(len(p), mostPiece)
		if err := c.send(p[:n]); err != nil {
			return sent, err
		}
		sent += n
		p = p[n:]
	}
	return sent, nil
}

func (c *portConn) send(p []byte) error {
	b := wire.NewBuf(len(p))
	defer b.Free()
	copy(b.Bytes(), p)
	var store [message.MaxDataPrefix]byte
	b.Prepend(message.ChunkPrefix(&store, len(p)))
	if err := c.call.SendBuf(context.Background(), b); err != nil {
		return c.explain(err)
	}
	return nil
}

func (c *portConn) CloseWrite() error {
	if err := c.call.CloseSend(); err != nil {
		return c.explain(err)
	}
	return nil
}

func (c *portConn) Close() error {
	c.call.Close()
	return nil
}

// explain says in the module's classes why a direction has ended.
func (c *portConn) explain(err error) error {
	if err == io.EOF {
		return io.EOF
	}
	if errors.Is(err, wire.ErrClosed) {
		return fmt.Errorf("%w: the connection", tranca.ErrClosed)
	}
	return c.sb.explain(context.Background(), err)
}
