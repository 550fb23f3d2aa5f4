package container

import (
	"tranca"
	"tranca/internal/backend/container/docker"
	"tranca/internal/guest/bootspec"
)

// Weaken has a backend take guarantees away from what it makes, to see the
// tests of those guarantees fail. Nil makes everything as it should be.
func Weaken(b tranca.Backend, f func(*docker.Config, *bootspec.Spec)) {
	b.(*Backend).weaken = nil
	if f != nil {
		b.(*Backend).weaken = func(pl *plan) { f(&pl.config, &pl.boot); pl.unread = true }
	}
}
