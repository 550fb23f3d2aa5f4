package host

import (
	"context"
	"fmt"

	"tranca"
	"tranca/internal/guest/message"
)

var _ tranca.Resizer = (*process)(nil)

// terminal checks the size of a terminal and makes its message; nil is none.
func terminal(size *tranca.TerminalSize) (*message.PTY, error) {
	if size == nil {
		return nil, nil
	}
	if size.Rows == 0 || size.Columns == 0 {
		return nil, fmt.Errorf("%w: a terminal of %d rows and %d columns: each is 1 to 65,535",
			tranca.ErrInvalid, size.Rows, size.Columns)
	}
	return &message.PTY{Cols: uint32(size.Columns), Rows: uint32(size.Rows)}, nil
}

// Resize is [tranca.Resizer].
func (p *process) Resize(ctx context.Context, size tranca.TerminalSize) error {
	if p.cmd.Terminal == nil {
		return fmt.Errorf("%w: the program has no terminal", tranca.ErrUnsupported)
	}
	pty, err := terminal(&size)
	if err != nil {
		return err
	}
	return p.ask(ctx, message.MethodUpdate, &message.UpdateRequest{
		Process: message.ProcessSelector{PID: uint32(p.pid)}, PTY: pty,
	})
}
