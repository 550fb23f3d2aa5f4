package engine

import (
	"context"
	"time"

	"tranca"
)

type observerKey struct{}

// Observe returns a context by which a run tells f, beside [Config.Observer],
// that its program has started and in which sandbox. f is called from the run's
// own goroutine and must not block for long.
func Observe(ctx context.Context, f func(tranca.Event)) context.Context {
	return context.WithValue(ctx, observerKey{}, f)
}

// tellBoth tells an event to who observes this run, and to who observes all.
func (e *Engine) tellBoth(ctx context.Context, ev tranca.Event) {
	if f, ok := ctx.Value(observerKey{}).(func(tranca.Event)); ok {
		ev.Time = time.Now()
		f(ev)
	}
	e.tell(ev)
}
