package backends

import (
	"context"
	"sync"

	"tranca"
)

// lazy is a backend that is made when it is first needed, since making one
// costs milliseconds and most commands need one of them or none. One that
// can't be made stands in the registry all the same and says why when it is
// asked. Safe for concurrent use.
type lazy struct {
	name  string
	level tranca.Level

	mu     sync.Mutex
	make   func() (tranca.Backend, error) // nil once it was called, or closed
	made   tranca.Backend
	failed error
}

var _ tranca.Backend = (*lazy)(nil)

func newLazy(name string, level tranca.Level, make func() (tranca.Backend, error)) *lazy {
	return &lazy{name: name, level: level, make: make}
}

// get returns the backend, and makes it if nobody has.
func (l *lazy) get() (tranca.Backend, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.make != nil {
		l.made, l.failed = l.make()
		if l.failed != nil {
			l.made = nil // not an interface that holds a nil pointer
		}
		l.make = nil
	}
	return l.made, l.failed
}

// Name returns the name, without making the backend.
func (l *lazy) Name() string { return l.name }

// Level returns the level, without making the backend.
func (l *lazy) Level() tranca.Level { return l.level }

// Unwrap returns the backend, so that its abilities are found, or nil where it
// can't be made.
func (l *lazy) Unwrap() tranca.Backend {
	b, err := l.get()
	if err != nil {
		return nil
	}
	return b
}

// Probe asks the backend.
func (l *lazy) Probe(ctx context.Context) (tranca.Report, error) {
	b, err := l.get()
	if err != nil {
		return tranca.Report{Backend: l.name, Level: l.level}, err
	}
	return b.Probe(ctx)
}

// Create asks the backend.
func (l *lazy) Create(ctx context.Context, spec tranca.Spec) (tranca.Sandbox, error) {
	b, err := l.get()
	if err != nil {
		return nil, err
	}
	return b.Create(ctx, spec)
}

// Attach asks the backend.
func (l *lazy) Attach(ctx context.Context, id tranca.ID) (tranca.Sandbox, error) {
	b, err := l.get()
	if err != nil {
		return nil, err
	}
	return b.Attach(ctx, id)
}

// Close closes the backend where it was made. It is never made after that.
func (l *lazy) Close(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.make != nil {
		l.make, l.failed = nil, tranca.ErrClosed
	}
	if l.made == nil {
		return nil
	}
	return l.made.Close(ctx)
}
