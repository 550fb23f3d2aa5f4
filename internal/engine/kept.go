package engine

import (
	"math"
	"time"

	"tranca"
	"tranca/internal/weaken"
)

// endless is a wall clock that no test waits for.
const endless = 1000 * time.Hour

// kept are the policy's limits, of which the engine keeps two itself: the wall
// clock and the bound on output.
func (p *plan) kept() tranca.Limits {
	l := p.policy.Limits
	if weaken.Enabled {
		l.Wall = p.wall(l.Wall)
		if weaken.Takes(p.backend.Name(), tranca.ItemOutput) {
			l.Output.Size = math.MaxInt32
		}
	}
	return l
}

// wall is a wall clock as the engine keeps it.
func (p *plan) wall(d time.Duration) time.Duration {
	if weaken.Enabled && d > 0 && weaken.Takes(p.backend.Name(), tranca.ItemWall) {
		return endless
	}
	return d
}
