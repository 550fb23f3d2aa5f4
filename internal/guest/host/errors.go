package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"tranca"
	"tranca/internal/guest/wire"
	"tranca/internal/machine"
)

// maxTold bounds how much of a text of the guest is shown, in bytes.
const maxTold = 300

// explain turns an error of a stream or of the session into one of the
// module's classes, or of ctx where that has ended and nothing worse happened.
func (sb *sandbox) explain(ctx context.Context, err error) error {
	var told *wire.Error
	var broke *wire.ProtocolError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && sb.sess.Err() == nil && !errors.As(err, &told):
		return context.Cause(ctx)
	case errors.As(err, &told):
		return fmt.Errorf("%w: %s", classOf(told.Code), printable(told.Message))
	case errors.As(err, &broke):
		return fmt.Errorf("%w: %s", tranca.ErrProtocol, broke.What)
	case errors.Is(err, tranca.ErrProtocol), errors.Is(err, tranca.ErrInvalid), errors.Is(err, tranca.ErrGone):
		return err
	case errors.Is(err, wire.ErrStalled):
		return fmt.Errorf("%w: the guest agent took nothing for %v", tranca.ErrProtocol, writeTimeout)
	case errors.Is(err, wire.ErrFull):
		return fmt.Errorf("%w: too many calls to the guest agent at once", tranca.ErrBusy)
	}
	sb.mu.Lock()
	closed := sb.closed
	sb.mu.Unlock()
	if closed {
		return fmt.Errorf("%w: the sandbox", tranca.ErrClosed)
	}
	if o, ok := sb.m.(machine.Obituary); ok {
		if words := printable(o.LastWords()); words != "" {
			return fmt.Errorf("%w: the sandbox has ended (%v): %s", tranca.ErrGone, err, words)
		}
	}
	return fmt.Errorf("%w: the sandbox has ended (%v)", tranca.ErrGone, err)
}

// classOf is the one table from the guest's codes to the module's classes.
func classOf(code wire.Code) error {
	switch code {
	case wire.CodeInvalidArgument:
		return tranca.ErrInvalid
	case wire.CodeNotFound:
		return tranca.ErrNotFound
	case wire.CodeAlreadyExists:
		return tranca.ErrExists
	case wire.CodeResourceExhausted:
		return tranca.ErrNoSpace
	case wire.CodeUnavailable:
		return tranca.ErrBusy
	case wire.CodeFailedPrecondition, wire.CodeCanceled:
		return tranca.ErrGone
	case wire.CodeUnimplemented:
		return tranca.ErrUnsupported
	}
	return tranca.ErrRefused
}

// printable makes a text of the guest fit for a person's screen.
func printable(s string) string {
	if len(s) > maxTold {
		s = s[:maxTold] + "..."
	}
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
