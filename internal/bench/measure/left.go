package measure

import (
	"context"
	"errors"
	"slices"
	"time"

	"tranca/internal/bench"
	"tranca/internal/hoststate"
)

// left looks what each subject leaves when it has ended as a whole. Until then
// it may keep what serves more than one sandbox. Where nothing at all has come
// to the host since the beginning, a quick run lets that do for all of them;
// else each is opened once more, with the host looked at before and after.
func (r *run) left(ctx context.Context) error {
	// Bare has nothing to leave. It may have failed, and is not open then.
	running := slices.DeleteFunc(r.opened(), func(s *subject) bool { return s.About.Kind == bench.KindBare })
	for _, s := range running {
		r.closeOne(ctx, s)
	}
	if r.cfg.Quick && r.before != nil {
		left, err := hoststate.WaitClean(r.before, hoststate.Default(), r.pace.after)
		if err == nil && len(left) == 0 {
			for _, s := range running {
				s.About.LeftChecked = true
			}
			return nil
		}
	}
	for _, s := range running {
		if r.overdue() {
			return nil // the rest is not looked at, and says so
		}
		r.tell(s.About.Name)
		err := r.leftOf(ctx, s)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			s.fail(r.step.Phase, err)
		}
	}
	return nil
}

func (r *run) leftOf(ctx context.Context, s *subject) error {
	before, err := hoststate.Take(hoststate.Default())
	if err != nil {
		return err
	}
	err = r.openOne(ctx, s)
	if keeper, ok := s.runner.(Keeper); ok && err == nil {
		var kept Kept
		if kept, err = keeper.Keep(ctx); err == nil {
			_, _, err = start(ctx, kept.Run)
			err = errors.Join(err, kept.Close(context.WithoutCancel(ctx)))
		}
	}
	r.closeOne(ctx, s)
	if err != nil {
		return err
	}
	s.About.Left, err = hoststate.WaitClean(before, hoststate.Default(), r.pace.after)
	s.About.LeftChecked = err == nil
	return err
}

// stillLeft looks once more at what seemed to be left. Others on the host come
// and go: what has gone by the end was theirs, or is no leak. What a subject
// leaves stays.
func (r *run) stillLeft(ctx context.Context) error {
	deadline := time.Now().Add(r.pace.atEnd)
	for _, s := range r.all {
		for len(s.About.Left) > 0 && time.Now().Before(deadline) && ctx.Err() == nil {
			still, err := hoststate.Still(s.About.Left, hoststate.Default())
			if err != nil {
				s.fail(r.step.Phase, err)
				break
			}
			if s.About.Left = still; len(still) > 0 {
				time.Sleep(200 * time.Millisecond)
			}
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
