package app

import (
	"context"
	"errors"
	"log/slog"

	"tranca"
	"tranca/internal/app/backends"
	"tranca/internal/cli"
	"tranca/internal/engine"
	"tranca/internal/mcp"
)

// agentReady is how many sandboxes wait for an agent's next call: one agent
// makes one call at a time.
const agentReady = 1

// serveMCP serves one agent over standard input and output.
func serveMCP(ctx context.Context, setup cli.MCPSetup) error {
	logger := slog.New(slog.NewTextHandler(setup.Log, nil))
	all, err := backends.All(agentReady)
	if err != nil {
		return err
	}
	// The agent's sessions, which the surface bounds, live until it goes: the
	// person behind it may be away for a day.
	e, err := engine.New(engine.Config{
		Backends: all, Policy: setup.Policy, Logger: logger, MaxTTL: -1,
	})
	if err != nil {
		return err
	}
	server, err := mcp.New(mcp.Config{
		Version: setup.Version, Policy: setup.Policy, Narrow: setup.Narrow,
		Runner: agentRunner{e},
		OpenSession: func(ctx context.Context) (mcp.Session, error) {
			s, err := e.Open(ctx, engine.OpenOptions{Narrow: setup.Narrow})
			if err != nil {
				return nil, err
			}
			return agentSession{s}, nil
		},
		Logger: logger, Report: setup.Report,
	})
	if err != nil {
		return errors.Join(err, e.Close(context.WithoutCancel(ctx)))
	}
	err = server.Serve(ctx, setup.In, setup.Out)
	return errors.Join(err, e.Close(context.WithoutCancel(ctx)))
}

// agentRunner runs calls without a session.
type agentRunner struct{ *engine.Engine }

func (r agentRunner) Run(ctx context.Context, req tranca.Request, before, after func(context.Context, tranca.Files)) (*tranca.Result, error) {
	return r.RunLooked(ctx, req, engine.Look{Before: before, After: after})
}

// agentSession is a session of the agent's.
type agentSession struct{ *engine.Session }
