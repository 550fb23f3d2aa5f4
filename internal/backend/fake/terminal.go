package fake

import (
	"context"
	"fmt"

	"tranca"
)

// sized is a terminal's size as its program finds it.
type sized struct {
	size    tranca.TerminalSize
	resized chan struct{} // holds a token when it was changed
}

// Resize is [tranca.Resizer].
func (p *proc) Resize(_ context.Context, size tranca.TerminalSize) error {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	switch _, alive := p.s.procs[p]; {
	case p.terminal == nil:
		return fmt.Errorf("%w: process %d has no terminal", tranca.ErrUnsupported, p.pid)
	case size.Rows == 0 || size.Columns == 0:
		return fmt.Errorf("%w: a terminal of %d rows and %d columns", tranca.ErrInvalid, size.Rows, size.Columns)
	case !alive:
		return fmt.Errorf("%w: process %d", tranca.ErrGone, p.pid)
	}
	p.terminal.size = size
	select {
	case p.terminal.resized <- struct{}{}:
	default:
	}
	return nil
}

// size says the size of its terminal, and again whenever it is changed.
func size(p *proc, _ []string) int {
	if p.terminal == nil {
		return 1
	}
	for {
		p.s.mu.Lock()
		size := p.terminal.size
		p.s.mu.Unlock()
		say(p, fmt.Sprintf("%dx%d\n", size.Rows, size.Columns))
		select {
		case <-p.terminal.resized:
		case <-p.dying:
			p.check()
		}
	}
}
