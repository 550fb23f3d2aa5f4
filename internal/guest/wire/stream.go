package wire

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"sync"
)

// ErrClosed is returned on a stream or direction that this side has closed.
var ErrClosed = errors.New("wire: stream is closed")

// Stream carries messages both ways. One goroutine may receive and another
// send at the same time; Reset and Close may be called from any.
type Stream struct {
	s  *Session
	id uint32

	sendMu sync.Mutex // keeps frames of the sending direction in order

	mu       sync.Mutex
	queue    []piece
	recvLeft int   // what the other side may still send
	owed     int   // what was taken and not given back yet
	partial  int   // bytes of the unfinished message that came so far
	recvErr  error // how the other side's direction ended
	sendLeft int
	sendErr  error // the other side's reset
	selfDone bool  // this side sent its end or reset
	reset    bool  // this side sent a reset: drop what comes
	retired  bool

	recvWake, sendWake chan struct{}
	resetc             chan struct{}
}

// piece is a message or a part of one.
type piece struct {
	buf  *Buf
	more bool
}

func newStream(s *Session, id uint32) *Stream {
	return &Stream{
		s: s, id: id, recvLeft: Window, sendLeft: Window,
		recvWake: make(chan struct{}, 1),
		sendWake: make(chan struct{}, 1),
		resetc:   make(chan struct{}),
	}
}

// cost is what a msg frame takes from the window.
func cost(payload int) int { return payload + FrameCost }

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Reseted is closed when either side resets the stream.
func (st *Stream) Reseted() <-chan struct{} { return st.resetc }

// Ended reports whether the other side closed its direction with an end. It
// is true as soon as the end has arrived, even if messages before it have not
// been received yet.
func (st *Stream) Ended() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.recvErr == io.EOF
}

// Recv returns the next message, which the caller frees. It returns io.EOF
// after the other side's end, an [*Error] after its reset, and the session's
// error when that has ended; messages that came before are returned first.
func (st *Stream) Recv(ctx context.Context) (*Buf, error) {
	p, err := st.next(ctx)
	if err != nil || !p.more {
		return p.buf, err
	}
	whole := append([]byte(nil), p.buf.Bytes()...)
	p.buf.Free()
	for p.more {
		if p, err = st.next(ctx); err != nil {
			return nil, err
		}
		whole = append(whole, p.buf.Bytes()...)
		p.buf.Free()
	}
	return &Buf{store: whole, class: -1}, nil
}

// next takes one piece from the queue and gives credit back.
func (st *Stream) next(ctx context.Context) (piece, error) {
	for {
		p, credit, err := st.take()
		if credit > 0 {
			st.giveBack(credit)
		}
		if p.buf != nil || err != nil {
			return p, err
		}
		select {
		case <-st.recvWake:
		case <-ctx.Done():
			return piece{}, context.Cause(ctx)
		case <-st.s.done:
			// What came before the session's end is still to be had.
			if p, _, err := st.take(); p.buf != nil || err != nil {
				return p, err
			}
			return piece{}, st.s.Err()
		}
	}
}

func (st *Stream) take() (p piece, credit int, err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.reset {
		return piece{}, 0, ErrClosed
	}
	if len(st.queue) == 0 {
		return piece{}, 0, st.recvErr
	}
	p = st.queue[0]
	st.queue[0] = piece{}
	st.queue = st.queue[1:]
	st.owed += cost(len(p.buf.Bytes()))
	if st.owed >= st.s.creditAt() && st.recvErr == nil {
		credit = st.owed
		st.recvLeft += credit
		st.owed = 0
	}
	return p, credit, nil
}

// Narrow has the sender keep at most n bytes under way from now on instead of a
// whole window, to spare the receiver's memory. It is called once, by the side
// that opened the stream, and n is at least the cost of the largest message
// that follows beyond [MinWindow].
func (st *Stream) Narrow(n int) {
	st.mu.Lock()
	st.sendLeft -= Window - n
	st.mu.Unlock()
}

// giveBack writes a credit frame. A failed write ends the session, which the
// caller learns from it.
func (st *Stream) giveBack(n int) {
	frame := header{kind: kindCredit, stream: st.id, length: 4}.append(make([]byte, 0, HeaderSize+4))
	_ = st.s.write(binary.BigEndian.AppendUint32(frame, uint32(n)))
}

// Send sends a message, in pieces if it is long, and with end set closes this
// side's direction. It waits for credit.
func (st *Stream) Send(ctx context.Context, msg []byte, end bool) error {
	for {
		n := min(len(msg), MaxPayload)
		last := n == len(msg)
		flags := uint8(0)
		if !last {
			flags = flagMore
		}
		frame := make([]byte, 0, 2*HeaderSize+n)
		frame = header{kind: kindMsg, flags: flags, stream: st.id, length: uint32(n)}.append(frame)
		frame = append(frame, msg[:n]...)
		if last && end {
			frame = header{kind: kindEnd, stream: st.id}.append(frame)
		}
		if err := st.send(ctx, frame, cost(n), last && end); err != nil || last {
			return err
		}
		msg = msg[n:]
	}
}

// SendBuf sends b's content, at most MaxPayload bytes, as one message without
// copying it. b stays the caller's; its headroom is used up.
func (st *Stream) SendBuf(ctx context.Context, b *Buf) error {
	n := len(b.Bytes())
	var raw [HeaderSize]byte
	header{kind: kindMsg, stream: st.id, length: uint32(n)}.put(raw[:])
	b.Prepend(raw[:])
	return st.send(ctx, b.Bytes(), cost(n), false)
}

// CloseSend ends this side's direction. It does nothing if that has ended.
func (st *Stream) CloseSend() error {
	err := st.send(context.Background(), header{kind: kindEnd, stream: st.id}.append(nil), 0, true)
	if err == ErrClosed {
		return nil
	}
	return err
}

// send writes frames of this side's direction once there is credit for them.
func (st *Stream) send(ctx context.Context, frames []byte, price int, end bool) error {
	return st.sendWith(ctx, frames, price, end, nil)
}

// sendWith is send for a last frame of which rest writes what is missing.
func (st *Stream) sendWith(ctx context.Context, frames []byte, price int, end bool, rest func() error) error {
	for {
		st.sendMu.Lock()
		ok, err := st.pay(price, end)
		if ok {
			err = st.s.writeWith(frames, rest)
		}
		st.sendMu.Unlock()
		if ok || err != nil {
			if end && ok {
				st.settle()
			}
			return err
		}
		select {
		case <-st.sendWake:
		case <-st.resetc:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-st.s.done:
			return st.s.Err()
		}
	}
}

// pay takes credit. It reports false where there is not enough yet.
func (st *Stream) pay(price int, end bool) (bool, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.sendErr != nil {
		return false, st.sendErr
	}
	if st.selfDone {
		return false, ErrClosed
	}
	if st.sendLeft < price {
		return false, nil
	}
	st.sendLeft -= price
	st.selfDone = end
	return true, nil
}

// Reset closes the stream at once and tells the other side why.
func (st *Stream) Reset(code Code, why string) {
	st.sendMu.Lock()
	defer st.sendMu.Unlock()
	st.mu.Lock()
	if st.reset || (st.selfDone && st.recvErr != nil) {
		st.mu.Unlock()
		return
	}
	st.reset, st.selfDone = true, true
	st.drop()
	if st.sendErr == nil {
		close(st.resetc)
		st.sendErr = ErrClosed
	}
	st.mu.Unlock()
	why = why[:min(len(why), MaxReason)]
	frame := header{kind: kindReset, stream: st.id, length: uint32(4 + len(why))}.append(nil)
	frame = binary.BigEndian.AppendUint32(frame, uint32(code))
	_ = st.s.write(append(frame, why...))
	wake(st.recvWake)
	st.settle()
}

// Close gives the stream up. Where both directions have not ended, it is a
// reset. Idempotent.
func (st *Stream) Close() {
	st.Reset(CodeCanceled, "closed")
	st.mu.Lock()
	st.drop()
	st.mu.Unlock()
}

// drop frees what is queued. st.mu is held.
func (st *Stream) drop() {
	for _, p := range st.queue {
		p.buf.Free()
	}
	st.queue = nil
}

// settle forgets the stream when both directions are closed.
func (st *Stream) settle() {
	st.mu.Lock()
	gone := st.selfDone && st.recvErr != nil && !st.retired
	st.retired = st.retired || gone
	st.mu.Unlock()
	if gone {
		st.s.retire(st.id)
	}
}

// charge takes a coming msg frame from the window.
func (st *Stream) charge(payload int, more bool) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.recvErr != nil {
		return broken("a message after the end of stream " + utoa(st.id))
	}
	if st.recvLeft < cost(payload) {
		return broken("more than the window on stream " + utoa(st.id))
	}
	st.recvLeft -= cost(payload)
	st.partial += payload
	if st.partial > st.s.cfg.MaxMessage {
		return broken("a message of more than the bound on stream " + utoa(st.id))
	}
	if !more {
		st.partial = 0
	}
	return nil
}

// push hands a piece to the stream's user.
func (st *Stream) push(b *Buf, more bool) {
	st.mu.Lock()
	dropped := st.reset
	if !dropped {
		st.queue = append(st.queue, piece{b, more})
	}
	st.mu.Unlock()
	if dropped {
		b.Free()
		return
	}
	wake(st.recvWake)
}

func (st *Stream) peerEnd() error {
	st.mu.Lock()
	if st.recvErr != nil || st.partial > 0 {
		st.mu.Unlock()
		return broken("a second end, or one inside a message, on stream " + utoa(st.id))
	}
	st.recvErr = io.EOF
	st.mu.Unlock()
	wake(st.recvWake)
	st.settle()
	return nil
}

func (st *Stream) peerReset(why *Error) {
	st.mu.Lock()
	if st.recvErr == nil {
		st.recvErr = why
	}
	if st.sendErr == nil {
		st.sendErr = why
		close(st.resetc)
	}
	st.mu.Unlock()
	wake(st.recvWake)
	st.settle()
}

// credit takes a credit frame of the other side.
func (st *Stream) credit(n uint32) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if n == 0 || int64(st.sendLeft)+int64(n) > Window {
		return broken("a credit of " + utoa(n) + " bytes that were not spent on stream " + utoa(st.id))
	}
	st.sendLeft += int(n)
	wake(st.sendWake)
	return nil
}
