package engine

import (
	"context"

	"tranca"
)

// Look is what else a run's owner wants of its sandbox, which is gone when the
// run has its result. Both are optional, and called at most once.
type Look struct {
	// Before is called when the sandbox is there and its turn has come, before
	// the program starts.
	Before func(context.Context, tranca.Files)
	// After is called when the program has ended, if Before would have been.
	// What the program left running may still be alive and change what is seen.
	After func(context.Context, tranca.Files)
}

// RunLooked is Run with a look at the sandbox's files. The looks count neither
// as the program's time nor as its output; their bounds are the caller's.
func (e *Engine) RunLooked(ctx context.Context, req tranca.Request, look Look) (*tranca.Result, error) {
	res, err := e.runOnce(ctx, req, look)
	e.stats.ran(res, err)
	return res, err
}

// look calls what is set.
func (b *box) look(ctx context.Context, do func(context.Context, tranca.Files)) {
	if do != nil {
		do(ctx, b.sb.Files())
	}
}
