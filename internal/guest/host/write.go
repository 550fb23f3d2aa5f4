package host

import (
	"context"
	"fmt"
	"io"
	"io/fs"

	"tranca"
	"tranca/internal/guest/message"
	"tranca/internal/guest/wire"
)

func (f files) Write(ctx context.Context, path string, r io.Reader, mode fs.FileMode) (int64, error) {
	return f.write(ctx, &message.WriteRequest{Path: path, Mode: uint32(mode.Perm())}, r)
}

func (f files) write(ctx context.Context, req *message.WriteRequest, r io.Reader) (int64, error) {
	if err := checkPath(req.Path); err != nil {
		return 0, err
	}
	call, err := f.sb.sess.Open(ctx, message.MethodWrite, 0, req.Append(nil), false)
	if err != nil {
		return 0, f.sb.explain(ctx, err)
	}
	defer call.Close()
	sent, err := f.send(ctx, call.Stream, r)
	if req.Resume {
		return f.resumed(ctx, call, sent, err)
	}
	if err != nil {
		return sent, err
	}
	if err := call.CloseSend(); err != nil {
		return sent, f.sb.explain(ctx, err)
	}
	answer, err := f.written(ctx, call, sent)
	if err == nil && (answer.Size != sent || answer.Code != 0) {
		err = f.sb.breach("a file of another length than was sent")
	}
	return sent, err
}

// written takes the answer to a write of which so much was sent.
func (f files) written(ctx context.Context, call *wire.Call, sent int64) (answer message.WriteResponse, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout, errNoAnswer)
	defer cancel()
	err = f.sb.lastAnswer(ctx, call.Stream, &answer)
	if err == nil && (answer.Size < 0 || answer.Size > sent) {
		err = f.sb.breach("more written than was sent")
	}
	return answer, err
}

// send sends a file's content up to the reader's end.
func (f files) send(ctx context.Context, st *wire.Stream, r io.Reader) (sent int64, err error) {
	b := wire.NewBuf(mostInput)
	defer b.Free()
	for empty := 0; empty < maxEmptyReads; empty++ {
		b.Reset(mostInput)
		n, rerr := r.Read(b.Bytes())
		if n > 0 {
			empty = 0
			b.Truncate(n)
			if err := f.sendPiece(ctx, st, b); err != nil {
				return sent, err
			}
			sent += int64(n)
		}
		if rerr == io.EOF {
			return sent, nil
		}
		if rerr != nil {
			return sent, fmt.Errorf("%w: reading what is to be written: %w", tranca.ErrInvalid, rerr)
		}
	}
	return sent, fmt.Errorf("%w: reading what is to be written: %w", tranca.ErrInvalid, io.ErrNoProgress)
}

func (f files) sendPiece(ctx context.Context, st *wire.Stream, b *wire.Buf) error {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout, errNoAnswer)
	defer cancel()
	var store [message.MaxDataPrefix]byte
	b.Prepend(message.ChunkPrefix(&store, len(b.Bytes())))
	if err := st.SendBuf(ctx, b); err != nil {
		return f.sb.explain(ctx, err)
	}
	return nil
}
