package main

import (
	"context"
	"errors"
	"strings"

	"tranca"
	"tranca/internal/app/backends"
	"tranca/internal/engine"
	"tranca/internal/policy"
)

// open makes the engine of one supervisor. Making the backend sweeps what dead
// supervisors left.
func (o *options) open(ctx context.Context) (tranca.Runner, func() error, error) {
	p := policy.Default()
	p.Backend, p.Runtime = o.backend, o.runtime
	p.Floor = tranca.LevelProcess // it is named, which is consent
	if o.image != "" {
		p.Image = o.image
	}
	for item := range strings.SplitSeq(o.waive, ",") {
		if item != "" {
			p.Waive = append(p.Waive, tranca.Item(item))
		}
	}
	reg, err := backends.All(0)
	if err != nil {
		return nil, nil, err
	}
	e, err := engine.New(engine.Config{Backends: reg, Policy: p, MaxInFlight: o.parallel})
	if err != nil {
		for _, b := range reg.All() {
			err = errors.Join(err, b.Close(ctx))
		}
		return nil, nil, err
	}
	return e, func() error { return e.Close(context.Background()) }, nil
}
