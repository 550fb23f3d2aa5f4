// Package backend holds the registry of backends: an explicit list, made by
// who wires the program. No backend registers itself.
package backend

import (
	"fmt"
	"slices"

	"tranca"
)

// Leveler is an optional ability of a backend: to say its level without a
// probe. The level is what the backend always has; what holds on this host is
// for [tranca.Backend].Probe to say. Backends of this module have it, so that
// a backend that can't be meant is not probed in vain.
type Leveler interface {
	Level() tranca.Level
}

// Level returns the level that a backend says it has without a probe, or 0
// where it says none.
func Level(b tranca.Backend) tranca.Level {
	if l, ok := tranca.As[Leveler](b); ok {
		return l.Level()
	}
	return 0
}

// Registry is a fixed set of backends. Safe for concurrent use.
type Registry struct {
	all []tranca.Backend
}

// NewRegistry makes a registry. The error wraps [tranca.ErrInvalid] where a
// backend is nil, has no name, or has the name of another.
func NewRegistry(backends ...tranca.Backend) (*Registry, error) {
	seen := map[string]bool{}
	for i, b := range backends {
		if b == nil || b.Name() == "" {
			return nil, fmt.Errorf("%w: backend %d of %d has no name", tranca.ErrInvalid, i+1, len(backends))
		}
		if seen[b.Name()] {
			return nil, fmt.Errorf("%w: two backends are called %q", tranca.ErrInvalid, b.Name())
		}
		seen[b.Name()] = true
	}
	r := &Registry{all: slices.Clone(backends)}
	slices.SortStableFunc(r.all, func(a, b tranca.Backend) int {
		return order(a) - order(b)
	})
	return r, nil
}

// order puts backends that don't say their level behind those that do.
func order(b tranca.Backend) int {
	if l := Level(b); l != 0 {
		return int(l)
	}
	return int(tranca.LevelMicroVM) + 1
}

// Get returns the backend of that name. The error wraps [tranca.ErrNotFound]
// and lists the names there are.
func (r *Registry) Get(name string) (tranca.Backend, error) {
	for _, b := range r.all {
		if b.Name() == name {
			return b, nil
		}
	}
	return nil, fmt.Errorf("%w: no backend is called %q: there is %v", tranca.ErrNotFound, name, r.Names())
}

// Names returns the names in the order of All.
func (r *Registry) Names() []string {
	names := make([]string, len(r.all))
	for i, b := range r.all {
		names[i] = b.Name()
	}
	return names
}

// All returns the backends in the order of their levels, weakest first, those
// of one level in the order in which they were given. Backends that don't say
// their level without a probe stand last.
func (r *Registry) All() []tranca.Backend { return slices.Clone(r.all) }
