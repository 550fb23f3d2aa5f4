package mcp

import (
	"context"
	"errors"

	"tranca"
)

// keeper is a runner over one session, which it opens when it is first needed
// and again after it is gone. Calls take turns.
type keeper struct {
	open func(context.Context) (Session, error)
	// turn holds one value while a call has its turn.
	turn    chan struct{}
	session Session
}

// Run runs the request in the session.
func (k *keeper) Run(ctx context.Context, req tranca.Request) (*tranca.Result, error) {
	select {
	case k.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-k.turn }()
	if k.session == nil {
		s, err := k.open(ctx)
		if err != nil {
			return nil, err
		}
		k.session = s
	}
	res, err := k.session.Run(ctx, req)
	if errors.Is(err, tranca.ErrGone) || errors.Is(err, tranca.ErrClosed) {
		err = errors.Join(err, k.drop(ctx))
	}
	return res, err
}

// Close closes the session. No call may be under way.
func (k *keeper) Close(ctx context.Context) error {
	if k.session == nil {
		return nil
	}
	return k.drop(ctx)
}

func (k *keeper) drop(ctx context.Context) error {
	s := k.session
	k.session = nil
	return s.Close(context.WithoutCancel(ctx))
}
