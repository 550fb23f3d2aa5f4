package fake

import (
	"context"
	"fmt"

	"tranca"
)

// Container is a fake that makes sandboxes by one of several runtimes.
type Container struct {
	*Backend
	runtimes map[string]tranca.Level
	standard string
}

var _ tranca.RuntimeProber = (*Container)(nil)

// NewContainer makes a fake that states the level container and has these
// runtimes, each with the level that a probe of it finds. standard is the one
// that is used where no policy names one.
func NewContainer(opt Options, runtimes map[string]tranca.Level, standard string) *Container {
	opt.Level = tranca.LevelContainer
	return &Container{New(opt), runtimes, standard}
}

// Probe probes the standard runtime.
func (c *Container) Probe(ctx context.Context) (tranca.Report, error) {
	return c.ProbeRuntime(ctx, c.standard)
}

// ProbeRuntime is [tranca.RuntimeProber].
func (c *Container) ProbeRuntime(ctx context.Context, name string) (tranca.Report, error) {
	r, err := c.Backend.Probe(ctx)
	if err != nil {
		return tranca.Report{}, err
	}
	level, there := c.runtimes[name]
	if !there {
		return tranca.Report{}, fmt.Errorf("%w: the engine has no runtime %s", tranca.ErrUnavailable, name)
	}
	r.Level, r.Facts[tranca.FactRuntime] = level, name
	return r, nil
}
