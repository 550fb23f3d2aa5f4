package container

import (
	"context"
	"errors"
	"time"

	"tranca"
)

// sweepTime bounds a sweep.
const sweepTime = 30 * time.Second

// sweep removes what dead processes of this user have left on the engine and
// beside it, and nothing else. Anything without this program's labels is never
// looked at.
func (b *Backend) sweep(ctx context.Context, e *engine) error {
	ctx, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	list, err := e.List(ctx, labelSandbox, labelUser+"="+b.owner.user)
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range list {
		if !b.owner.abandoned(c.Labels, time.Now()) {
			continue
		}
		if err := e.Remove(ctx, c.ID); err != nil && !errors.Is(err, tranca.ErrNotFound) {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, b.host.sweepStages())...)
}
