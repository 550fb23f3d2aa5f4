package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"tranca"
	"tranca/internal/backend"
	"tranca/internal/backend/pool"
	"tranca/internal/backend/process"
	"tranca/internal/engine"
	"tranca/internal/policy"
)

// subject is an engine that is measured.
type subject struct {
	engine *engine.Engine
	policy tranca.Policy
	pool   *pool.Pool // nil where every sandbox is made when it is asked for
}

// policy is the default one with what -waive names.
func (o *options) policy() tranca.Policy {
	p := policy.Default()
	p.Floor, p.Backend = tranca.LevelProcess, process.Name
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

// openPool makes an engine that keeps one sandbox booted.
func (o *options) openPool(ctx context.Context) (*subject, error) {
	b, p, err := o.backend(ctx)
	if err != nil {
		return nil, err
	}
	ready := pool.New(b, 1)
	s, err := over(ctx, ready, p)
	if err != nil {
		return nil, err
	}
	s.pool = ready
	return s, nil
}

// over makes an engine over one backend, which it closes.
func over(ctx context.Context, b tranca.Backend, p tranca.Policy) (*subject, error) {
	return overBy(ctx, b, engine.Config{Policy: p})
}

// overBy is over with more than a policy.
func overBy(ctx context.Context, b tranca.Backend, c engine.Config) (*subject, error) {
	reg, err := backend.NewRegistry(b)
	if err != nil {
		return nil, errors.Join(err, b.Close(ctx))
	}
	c.Backends = reg
	e, err := engine.New(c)
	if err != nil {
		return nil, errors.Join(err, b.Close(ctx))
	}
	return &subject{engine: e, policy: c.Policy}, nil
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

// waitReady returns when a sandbox stands booted. It is not timed: the next
// one is booted while a program runs, or between two.
func (s *subject) waitReady(ctx context.Context) error {
	if err := s.pool.Prepare(ctx, s.policy); err != nil {
		return err
	}
	for deadline := time.Now().Add(10 * time.Second); s.pool.Ready() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			return errors.New("no sandbox was booted ahead within 10 s")
		}
	}
	return nil
}

// benchID makes the name of a sandbox: 'i' and 20 characters.
func benchID(n int) tranca.ID { return tranca.ID(fmt.Sprintf("ibench%015d", n)) }
