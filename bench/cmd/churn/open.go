package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"tranca"
	"tranca/internal/backend"
	"tranca/internal/backend/process"
	"tranca/internal/engine"
	"tranca/internal/policy"
)

// open makes the engine of one supervisor. Making the backend sweeps what dead
// supervisors left.
func (o *options) open(context.Context) (tranca.Runner, func() error, error) {
	if o.backend != process.Name {
		return nil, nil, fmt.Errorf("-backend %s: churn knows %s", o.backend, process.Name)
	}
	p := policy.Default()
	p.Backend = o.backend
	for item := range strings.SplitSeq(o.waive, ",") {
		if item != "" {
			p.Waive = append(p.Waive, tranca.Item(item))
		}
	}
	b, err := process.New(process.Options{})
	if err != nil {
		return nil, nil, err
	}
	reg, err := backend.NewRegistry(b)
	if err != nil {
		return nil, nil, errors.Join(err, b.Close(context.Background()))
	}
	e, err := engine.New(engine.Config{Backends: reg, Policy: p, MaxInFlight: o.parallel})
	if err != nil {
		return nil, nil, errors.Join(err, b.Close(context.Background()))
	}
	return e, func() error { return e.Close(context.Background()) }, nil
}
