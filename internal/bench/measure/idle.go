package measure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tranca/internal/bench"
	"tranca/internal/hoststate"
)

// idle adds up what the processes of idle sandboxes have written, one subject
// after the other: nothing is timed here.
func (r *run) idle(ctx context.Context) error {
	for _, s := range r.keepers([]bench.MeasureName{bench.IdleMemory}) {
		if r.overdue() {
			return nil
		}
		r.tell(s.About.Name)
		each, err := r.idleOf(ctx, s)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var unclear *unclearError
		switch {
		case errors.As(err, &unclear):
			s.missing[bench.IdleMemory] = err.Error()
		case err != nil:
			r.failed(ctx, s, []bench.MeasureName{bench.IdleMemory}, err)
		default:
			s.add(bench.IdleMemory, each)
		}
	}
	return nil
}

// unclearError says that the memory could not be told, for no fault of the
// sandboxes.
type unclearError struct{ why string }

func (e *unclearError) Error() string { return e.why }

func (r *run) idleOf(ctx context.Context, s *subject) (each float64, err error) {
	ctx, cancel := r.patient(ctx)
	defer cancel()
	before, err := hoststate.Running()
	if err != nil {
		return 0, err
	}
	var kept []Kept
	defer func() {
		for _, k := range kept {
			err = errors.Join(err, k.Close(context.WithoutCancel(ctx)))
		}
	}()
	for range r.pace.idle {
		k, err := s.runner.(Keeper).Keep(ctx)
		if err != nil {
			return 0, err
		}
		kept = append(kept, k)
	}
	time.Sleep(r.pace.quiet) // what they do at their start is over
	procs, elsewhere, err := hoststate.Since(before)
	if err != nil {
		return 0, err
	}
	if len(procs) == 0 {
		procs = elsewhere // an engine made them
	}
	if len(procs) == 0 {
		return 0, &unclearError{"none of its processes is seen from here"}
	}
	if len(procs)%r.pace.idle != 0 {
		return 0, &unclearError{fmt.Sprintf("%d processes came with %d sandboxes: something else on this host began or ended meanwhile", len(procs), r.pace.idle)}
	}
	var sum int64
	for _, pid := range procs {
		n, err := hoststate.PrivateDirty(pid)
		if err != nil {
			return 0, &unclearError{"the memory of a process of it can't be read: " + err.Error()}
		}
		sum += n
	}
	return float64(sum) / float64(r.pace.idle), nil
}
