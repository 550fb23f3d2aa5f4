//go:build linux

package app

import (
	"context"
	"errors"
	"log/slog"

	"tranca"
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
	// The agent's sessions, which the surface bounds, live until it goes: the
	// person behind it may be away for a day.
	e, err := Engine(setup.Policy, logger, agentReady)
	if err != nil {
		return err
	}
	server, err := mcp.New(mcp.Config{
		Version: setup.Version, Policy: setup.Policy, Narrow: setup.Narrow,
		Runner: agentRunner{e},
		OpenSession: func(ctx context.Context) (mcp.Session, error) {
			s, err := e.Open(ctx, tranca.CreateRequest{Narrow: setup.Narrow})
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

func (s agentSession) Start(ctx context.Context, command []string) (mcp.Process, error) {
	p, err := s.Session.Start(ctx, tranca.StartRequest{Args: command})
	if err != nil {
		return nil, err
	}
	return agentProcess{p}, nil
}

func (s agentSession) Process(id string) (mcp.Process, error) {
	p, err := s.Session.Process(id)
	if err != nil {
		return nil, err
	}
	return agentProcess{p}, nil
}

// agentProcess is a program of the agent's.
type agentProcess struct{ *engine.Process }

// Output reads what is there now, so that the program is never held back for
// longer than that takes.
func (p agentProcess) Output(wait context.Context, stdoutFrom, stderrFrom int64, most int) (stdout, stderr mcp.Piece, err error) {
	stdout.From, stderr.From = stdoutFrom, stderrFrom
	f := p.Follow(engine.FollowOptions{StdoutFrom: stdoutFrom, StderrFrom: stderrFrom})
	defer f.Close()
	info := p.Info()
	for first := true; first || unread(stdout, info.Stdout, most) || unread(stderr, info.Stderr, most); first = false {
		c, err := f.Next(wait)
		if err != nil {
			// The end, or nothing came in time: what is there is the answer.
			return stdout, stderr, nil
		}
		piece := &stdout
		if c.Stderr {
			piece = &stderr
		}
		if len(piece.Data) == 0 {
			piece.From = c.Offset
		}
		piece.Data = append(piece.Data, c.Data[:min(len(c.Data), most-len(piece.Data))]...)
	}
	return stdout, stderr, nil
}

// unread reports whether there is more to be had of a stream.
func unread(p mcp.Piece, s tranca.StreamInfo, most int) bool {
	return len(p.Data) < most && p.From+int64(len(p.Data)) < s.Written
}
