package container

import (
	"maps"

	"tranca"
	"tranca/internal/backend/container/docker"
	"tranca/internal/guest/bootspec"
	"tranca/internal/weaken"
)

// Weaken has a backend take guarantees away from what it makes, to see the
// tests of those guarantees fail. Nil makes everything as it should be.
func Weaken(b tranca.Backend, f func(*docker.Config, *bootspec.Spec)) {
	b.(*Backend).weaken = nil
	if f != nil {
		b.(*Backend).weaken = func(pl *plan) { f(&pl.config, &pl.boot); pl.unread = true }
	}
}

// LackingSwitches says of which guarantee of a report package weaken has no
// switch, and which switch of it this backend doesn't make.
func LackingSwitches(b tranca.Backend, report tranca.Report) []string {
	e := b.(*Backend).engine
	how := switches(e)
	maps.Copy(how, firstSwitches(e))
	return weaken.Lacks(report, how)
}
