package main

import (
	"context"
	"errors"
	"strings"

	"tranca"
	"tranca/internal/backend"
	"tranca/internal/backend/process"
	"tranca/internal/engine"
	"tranca/internal/policy"
)

// subject is an engine that is measured.
type subject struct {
	engine  *engine.Engine
	backend *process.Backend
}

// policy is the default one with what -waive names.
func (o *options) policy() tranca.Policy {
	p := policy.Default()
	p.Backend = process.Name
	for item := range strings.SplitSeq(o.waive, ",") {
		if item != "" {
			p.Waive = append(p.Waive, tranca.Item(item))
		}
	}
	return p
}

func (o *options) backend(context.Context) (tranca.Backend, tranca.Policy, error) {
	b, err := process.New(process.Options{})
	return b, o.policy(), err
}

// open makes an engine. ahead is how many machines it keeps booted.
func (o *options) open(_ context.Context, ahead int) (*subject, error) {
	if ahead > 0 {
		return nil, errors.New("the process backend doesn't boot machines beforehand")
	}
	b, err := process.New(process.Options{})
	if err != nil {
		return nil, err
	}
	reg, err := backend.NewRegistry(b)
	if err != nil {
		return nil, errors.Join(err, b.Close(context.Background()))
	}
	e, err := engine.New(engine.Config{Backends: reg, Policy: o.policy()})
	if err != nil {
		return nil, errors.Join(err, b.Close(context.Background()))
	}
	return &subject{engine: e, backend: b}, nil
}

func (s *subject) close() { _ = s.engine.Close(context.Background()) }

// answers runs the program in a fresh sandbox and checks its answer.
func (s *subject) answers(ctx context.Context) error {
	r, err := s.engine.Run(ctx, tranca.Request{Code: code})
	if err != nil {
		return err
	}
	return checkAnswer(r)
}

// waitReady returns when a machine stands booted.
func (s *subject) waitReady(context.Context) error { return nil }
