package host

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"tranca"
	"tranca/internal/guest/message"
	"tranca/internal/guest/wire"
)

var (
	_ tranca.FileResumer = files{}
	_ tranca.FileLinker  = files{}
)

// WriteFrom is [tranca.FileResumer].
func (f files) WriteFrom(ctx context.Context, path string, r io.Reader, offset int64, mode fs.FileMode) (int64, error) {
	if offset < 0 {
		return 0, fmt.Errorf("%w: offset %d", tranca.ErrInvalid, offset)
	}
	return f.write(ctx, &message.WriteRequest{Path: path, Mode: uint32(mode.Perm()), Resume: true, Offset: offset}, r)
}

// resumed ends a write that may be gone on with: also after a fault, and for a
// caller who gives up, it waits until the guest has written all that it was sent.
// So nothing of it is written later, beside whoever goes on.
func (f files) resumed(ctx context.Context, call *wire.Call, sent int64, err error) (int64, error) {
	// A guest that has stopped taking says why in its answer.
	_ = call.CloseSend()
	answer, aerr := f.written(context.WithoutCancel(ctx), call, sent)
	switch {
	case aerr != nil:
		return 0, aerr // it was refused, or the sandbox has ended
	case answer.Code != 0:
		return answer.Size, fmt.Errorf("%w: %s", classOf(wire.Code(answer.Code)), printable(answer.Reason))
	case err != nil:
		return answer.Size, err
	case answer.Size != sent:
		return answer.Size, f.sb.breach("a file of another length than was sent")
	}
	return sent, nil
}

// Symlink is [tranca.FileLinker].
func (f files) Symlink(ctx context.Context, target, path string) error {
	if err := checkPath(path); err != nil {
		return err
	}
	if target == "" || strings.IndexByte(target, 0) >= 0 || len(target) >= message.MaxPath {
		return fmt.Errorf("%w: a link to %d bytes, or with a NUL: 1 to %d bytes fit", tranca.ErrInvalid, len(target), message.MaxPath-1)
	}
	req := message.SymlinkRequest{Target: target, Path: path}
	return f.sb.unary(ctx, answerTimeout, message.MethodSymlink, &req, &message.Empty{})
}
