package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"tranca"
	"tranca/client"
	"tranca/internal/bench"
)

// Engine is what `tranca run` and sessions stand on.
type Engine interface {
	tranca.Runner
	Create(context.Context, tranca.CreateRequest) (*client.Sandbox, error)
	Close(context.Context) error
}

// Backend makes a subject of an engine whose policy names one backend.
func Backend(about bench.Subject, open func(context.Context) (Engine, error)) Subject {
	return Subject{About: about, Open: func(ctx context.Context) (Runner, error) {
		e, err := open(ctx)
		if err != nil {
			return nil, err
		}
		return &engineRunner{engine: e}, nil
	}}
}

type engineRunner struct {
	engine Engine

	mu   sync.Mutex
	last *tranca.Result
}

// Run runs it as `tranca run` does.
func (r *engineRunner) Run(ctx context.Context, code string, out io.Writer) error {
	res, err := r.engine.Run(ctx, tranca.Request{Code: code, Stdout: out})
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.last = res
	r.mu.Unlock()
	return ended(ctx, res.Exit, res.Stderr)
}

// ended turns an end that isn't a good one into an error.
func ended(ctx context.Context, e tranca.Exit, stderr []byte) error {
	if e.Success() {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("the program ended with %s: %.200q", e, lastLine(stderr))
}

// Stream runs it as a program of a session, whose output is not cut.
func (r *engineRunner) Stream(ctx context.Context, code string, out io.Writer) (err error) {
	sb, err := r.engine.Create(ctx, tranca.CreateRequest{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sb.Close(context.WithoutCancel(ctx))) }()
	p, err := sb.Start(ctx, tranca.StartRequest{Args: []string{"python3", "-I", "-c", code}})
	if err != nil {
		return err
	}
	f := p.Follow(client.FollowOptions{})
	defer f.Close()
	for {
		chunk, err := f.Next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if chunk.Dropped > 0 {
			return fmt.Errorf("%d bytes of output came too late to be kept", chunk.Dropped)
		}
		if !chunk.Stderr {
			_, _ = out.Write(chunk.Data)
		}
	}
	exit, err := p.Wait(ctx)
	if err != nil {
		return err
	}
	return ended(ctx, exit, nil)
}

// Describe tells what the last result said of the boundary.
func (r *engineRunner) Describe(s *bench.Subject) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		return
	}
	s.Isolation, s.Image = r.last.Isolation.String(), r.last.ImageDigest
	s.Waived = nil
	for _, e := range r.last.Enforcement {
		if e.Status == tranca.StatusWaived {
			s.Waived = append(s.Waived, e.Item)
		}
	}
}

// Close frees the engine.
func (r *engineRunner) Close(ctx context.Context) error { return r.engine.Close(ctx) }

// Keep makes a sandbox that stays.
func (r *engineRunner) Keep(ctx context.Context) (Kept, error) {
	sb, err := r.engine.Create(ctx, tranca.CreateRequest{})
	if err != nil {
		return nil, err
	}
	return keptSandbox{sb}, nil
}

type keptSandbox struct{ *client.Sandbox }

func (k keptSandbox) Run(ctx context.Context, code string, out io.Writer) error {
	res, err := k.Sandbox.Run(ctx, tranca.Request{Code: code, Stdout: out})
	if err != nil {
		return err
	}
	return ended(ctx, res.Exit, res.Stderr)
}
