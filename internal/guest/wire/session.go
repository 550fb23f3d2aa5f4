package wire

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// ErrFull is returned by [Session.Open] when MaxStreams streams are open.
var ErrFull = errors.New("wire: too many open streams")

// ErrEnded is why a session ended whose byte stream ended between two frames.
var ErrEnded = errors.New("wire: the other side has gone")

// ErrStalled ends a session whose other side took no bytes for too long.
var ErrStalled = errors.New("wire: the other side does not read")

// linger is how long a session reads on after it could not write.
const linger = time.Second

// Config is what one side brings to a session.
type Config struct {
	// Handler answers the calls of the other side, each in a goroutine of its
	// own. When it returns, the call's streams are closed. Only the agent has
	// one; a side without one opens calls itself.
	Handler func(*Call)
	// MaxMessage bounds a received message in bytes; 0 means MaxPayload.
	MaxMessage int
	// WriteTimeout ends the session with ErrStalled when a write takes
	// longer; 0 means never.
	WriteTimeout time.Duration
}

// Call is a stream with its side streams.
type Call struct {
	Method string
	*Stream
	Sides []*Stream
}

// Close closes all streams of the call.
func (c *Call) Close() {
	for _, st := range c.Sides {
		st.Close()
	}
	c.Stream.Close()
}

// Session is one side of a byte stream. Safe for concurrent use.
type Session struct {
	conn     io.ReadWriteCloser
	cfg      Config
	handlers sync.WaitGroup

	openMu sync.Mutex // keeps open frames in the order of their numbers

	writeMu   sync.Mutex
	helloSent bool
	writeErr  error
	watch     *time.Timer

	mu      sync.Mutex
	streams map[uint32]*Stream
	next    uint32 // the number of the next open
	err     error
	done    chan struct{}
}

// New makes a session over conn. Nothing happens before Run. Closing conn must
// end a Read and a Write that are under way in it.
func New(conn io.ReadWriteCloser, cfg Config) *Session {
	if cfg.MaxMessage == 0 {
		cfg.MaxMessage = MaxPayload
	}
	enlarge(conn)
	return &Session{
		conn: conn, cfg: cfg, next: 1,
		streams: make(map[uint32]*Stream),
		done:    make(chan struct{}),
	}
}

// enlarge gives a socket room for several frames of the largest size, so that
// a sender of much wakes its receiver less often. The kernel gives what its
// bounds allow; what is no socket stays as it is.
func enlarge(conn io.ReadWriteCloser) {
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = setSendBuffer(fd, Window)
	})
}

// Run reads frames until the byte stream ends or the session fails, closes the
// byte stream, waits for the handlers, and returns why: ErrEnded, a
// [*ProtocolError] where the other side broke the protocol, or what the byte
// stream returned. It is called once.
func (s *Session) Run() error {
	s.fail(s.read())
	s.handlers.Wait()
	return s.Err()
}

// Done is closed when the session has failed or ended.
func (s *Session) Done() <-chan struct{} { return s.done }

// Err is why the session ended; nil while it lives.
func (s *Session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Fail ends the session with err, unless it has ended before.
func (s *Session) Fail(err error) { s.fail(err) }

func (s *Session) fail(err error) {
	s.mu.Lock()
	first := s.err == nil
	if first {
		s.err = err
		close(s.done)
	}
	s.mu.Unlock()
	if first {
		s.conn.Close()
	}
}

// Open starts a call with its first message, in one write. With end set the
// caller sends nothing further on it. The caller closes the call.
func (s *Session) Open(ctx context.Context, method string, sides int, msg []byte, end bool) (*Call, error) {
	if len(method) == 0 || len(method) > MaxMethod || sides > MaxSides {
		return nil, errors.New("wire: method or side streams out of bounds: " + method)
	}
	s.openMu.Lock()
	call, err := s.add(method, sides)
	if err != nil {
		s.openMu.Unlock()
		return nil, err
	}
	frames := header{kind: kindOpen, flags: uint8(sides), stream: call.id, length: uint32(len(method))}.append(nil)
	frames = append(frames, method...)
	short := len(msg) <= MaxPayload
	if short {
		frames = header{kind: kindMsg, stream: call.id, length: uint32(len(msg))}.append(frames)
		frames = append(frames, msg...)
		if end {
			frames = header{kind: kindEnd, stream: call.id}.append(frames)
		}
		// A full window always covers it. A side that resets a stream before
		// it was opened only hurts itself.
		_, err = call.pay(cost(len(msg)), end)
	}
	if err == nil {
		err = s.write(frames)
	}
	s.openMu.Unlock()
	call.settle()
	if err == nil && !short {
		err = call.Send(ctx, msg, end)
	}
	if err != nil {
		call.Close()
		return nil, err
	}
	return call, nil
}

// add makes the streams of a call under the next number.
func (s *Session) add(method string, sides int) (*Call, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	if len(s.streams)+1+sides > MaxStreams || s.next >= maxStreamID {
		return nil, ErrFull
	}
	call := &Call{Method: method, Stream: newStream(s, s.next)}
	s.streams[s.next] = call.Stream
	for i := range sides {
		side := newStream(s, s.next+1+uint32(i))
		// The opener sends nothing on it.
		if s.cfg.Handler == nil {
			side.selfDone = true
		} else {
			side.recvErr = io.EOF
		}
		call.Sides = append(call.Sides, side)
		s.streams[side.id] = side
	}
	s.next += 1 + uint32(sides)
	return call, nil
}

// creditAt is how much a receiver takes before it gives credit back: so much
// that it seldom costs the sender a wake, and so little that there is something
// to send meanwhile. The side that answers does it earlier, for senders that
// keep to less than a window.
func (s *Session) creditAt() int {
	if s.cfg.Handler != nil {
		return MinWindow
	}
	return Window / 2
}

// retire forgets a stream whose both directions are closed.
func (s *Session) retire(id uint32) {
	s.mu.Lock()
	delete(s.streams, id)
	s.mu.Unlock()
}

// write puts whole frames on the byte stream.
func (s *Session) write(frames []byte) error { return s.writeWith(frames, nil) }

// writeWith has rest, where it is set, write what is still missing of the last
// frame.
func (s *Session) writeWith(frames []byte, rest func() error) error {
	s.writeMu.Lock()
	defer s.writeMu.Unlock()
	if err := s.Err(); err != nil {
		return err
	}
	if !s.helloSent {
		s.helloSent = true
		frames = append(appendHello(make([]byte, 0, HeaderSize+helloSize+len(frames))), frames...)
	}
	if s.cfg.WriteTimeout > 0 {
		if s.watch == nil {
			s.watch = time.AfterFunc(s.cfg.WriteTimeout, func() { s.fail(ErrStalled) })
		} else {
			s.watch.Reset(s.cfg.WriteTimeout)
		}
		defer s.watch.Stop()
	}
	if s.writeErr != nil {
		return s.writeErr
	}
	_, err := s.conn.Write(frames)
	if err == nil && rest != nil {
		err = rest()
	}
	if err != nil {
		// The other side has gone, most likely. What it wrote before may still
		// be there to be read, so the reader gets the time to find the end.
		s.writeErr = err
		time.AfterFunc(linger, func() { s.fail(err) })
	}
	return err
}

// read is the loop that takes frames in. It never writes.
func (s *Session) read() error {
	r := bufio.NewReaderSize(s.conn, 4<<10)
	var raw [HeaderSize]byte
	for greeted := false; ; greeted = true {
		if _, err := io.ReadFull(r, raw[:]); err != nil {
			return ended(err)
		}
		h, err := parseHeader(raw[:])
		if err != nil {
			return err
		}
		if greeted == (h.kind == kindHello) {
			return broken("frame kind " + strconv.Itoa(int(h.kind)) + " where hello comes first and once")
		}
		if h.kind == kindMsg {
			err = s.readMsg(r, h)
		} else {
			err = s.readControl(r, h)
		}
		if err != nil {
			return err
		}
	}
}

// ended tells an end between frames from one within a frame. A reset is the end
// of a side that had not read everything.
func ended(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return broken("the byte stream ended inside a frame")
	}
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		return ErrEnded
	}
	return err
}

// endedInside is ended for what comes behind a header.
func endedInside(err error) error {
	if err = ended(err); err == ErrEnded {
		return ended(io.ErrUnexpectedEOF)
	}
	return err
}

func (s *Session) readMsg(r io.Reader, h header) error {
	st, err := s.find(h)
	if err != nil {
		return err
	}
	if err := st.charge(int(h.length), h.flags&flagMore != 0); err != nil {
		return err
	}
	b := NewBuf(int(h.length))
	if _, err := io.ReadFull(r, b.Bytes()); err != nil {
		b.Free()
		return endedInside(err)
	}
	st.push(b, h.flags&flagMore != 0)
	return nil
}

func (s *Session) readControl(r io.Reader, h header) error {
	var store [4 + MaxReason]byte
	p := store[:h.length]
	if _, err := io.ReadFull(r, p); err != nil {
		return endedInside(err)
	}
	switch h.kind {
	case kindHello:
		return checkHello(p)
	case kindOpen:
		return s.opened(h, string(p))
	}
	st, err := s.find(h)
	if st == nil || err != nil {
		return err
	}
	switch h.kind {
	case kindEnd:
		return st.peerEnd()
	case kindReset:
		st.peerReset(&Error{Code: Code(binary.BigEndian.Uint32(p)), Message: string(p[4:])})
		return nil
	}
	return st.credit(binary.BigEndian.Uint32(p))
}

// opened takes an open frame of the other side.
func (s *Session) opened(h header, method string) error {
	if s.cfg.Handler == nil {
		return broken("open from the side that only answers")
	}
	if h.stream != s.nextID() {
		return broken("open of stream " + utoa(h.stream) + " out of order")
	}
	call, err := s.add(method, int(h.flags))
	if err == ErrFull {
		return broken("more than " + strconv.Itoa(MaxStreams) + " streams")
	}
	if err != nil {
		return err
	}
	s.handlers.Go(func() {
		defer call.Close()
		s.cfg.Handler(call)
	})
	return nil
}

func (s *Session) nextID() uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next
}

// find returns the stream of a frame. It returns none where the stream is
// gone and the frame may have crossed with its end.
func (s *Session) find(h header) (*Stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.streams[h.stream]; st != nil {
		return st, nil
	}
	if h.stream < s.next && (h.kind == kindCredit || h.kind == kindReset) {
		return nil, nil
	}
	return nil, broken("frame kind " + strconv.Itoa(int(h.kind)) + " on stream " + utoa(h.stream) + ", which is not open")
}
