package host

import (
	"context"
	"fmt"
	"io"
	"time"

	"tranca"
	"tranca/internal/guest/wire"
)

type appender interface{ Append([]byte) []byte }

type unmarshaler interface{ Unmarshal([]byte) error }

// errNoAnswer is the cause of a deadline of ours, to tell it from the caller's.
var errNoAnswer = fmt.Errorf("%w: the guest agent does not answer in time", tranca.ErrGone)

// unary asks a question that has one answer.
func (sb *sandbox) unary(ctx context.Context, timeout time.Duration, method string, req appender, answer unmarshaler) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errNoAnswer)
	defer cancel()
	call, err := sb.sess.Open(ctx, method, 0, req.Append(nil), true)
	if err != nil {
		return sb.explain(ctx, err)
	}
	defer call.Close()
	return sb.lastAnswer(ctx, call.Stream, answer)
}

// answer takes the next message of a call. It returns io.EOF where there is
// none.
func (sb *sandbox) answer(ctx context.Context, st *wire.Stream, m unmarshaler) error {
	b, err := st.Recv(ctx)
	if err == io.EOF {
		return io.EOF
	}
	if err != nil {
		return sb.explain(ctx, err)
	}
	defer b.Free()
	if err := m.Unmarshal(b.Bytes()); err != nil {
		return sb.breach("an answer that can't be read")
	}
	return nil
}

// lastAnswer takes the one message of a call and its end.
func (sb *sandbox) lastAnswer(ctx context.Context, st *wire.Stream, m unmarshaler) error {
	if err := sb.answer(ctx, st, m); err != nil {
		if err == io.EOF {
			return sb.breach("a call ended without an answer")
		}
		return err
	}
	return sb.callEnd(ctx, st)
}

// callEnd takes the end of a call.
func (sb *sandbox) callEnd(ctx context.Context, st *wire.Stream) error {
	b, err := st.Recv(ctx)
	if b != nil {
		b.Free()
		return sb.breach("a message after the last one of a call")
	}
	if err == io.EOF {
		return nil
	}
	return sb.explain(ctx, err)
}
