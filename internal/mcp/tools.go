package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"tranca"
)

type pythonInput struct {
	Code    string   `json:"code"`
	Stdin   string   `json:"stdin,omitempty"`
	Args    []string `json:"args,omitempty"`
	Timeout *float64 `json:"timeout_seconds,omitempty"`
}

type commandInput struct {
	Command []string `json:"command"`
	Stdin   string   `json:"stdin,omitempty"`
	Timeout *float64 `json:"timeout_seconds,omitempty"`
}

func (s *Server) addTools() {
	closed, open := false, true
	hints := func(title string) *mcp.ToolAnnotations {
		// The world outside is not reachable, and what can be destroyed is
		// only what the operator made writable.
		destructive := &closed
		for _, m := range s.policy.Mounts {
			if m.Writable {
				destructive = &open
			}
		}
		return &mcp.ToolAnnotations{Title: title, OpenWorldHint: &closed, DestructiveHint: destructive}
	}
	mcp.AddTool(s.server, &mcp.Tool{
		Name: "run_python", Description: describePython(s.policy),
		InputSchema: pythonSchema(s.policy), OutputSchema: outputSchema(),
		Annotations: hints("Run Python"),
	}, s.runPython)
	mcp.AddTool(s.server, &mcp.Tool{
		Name: "run_command", Description: describeCommand(s.policy),
		InputSchema: commandSchema(s.policy), OutputSchema: outputSchema(),
		Annotations: hints("Run a command"),
	}, s.runCommand)
}

type output = tranca.AgentView

func (s *Server) runPython(ctx context.Context, _ *mcp.CallToolRequest, in pythonInput) (*mcp.CallToolResult, output, error) {
	req := tranca.Request{Code: in.Code, Language: "python", Args: in.Args}
	return s.run(ctx, "run_python", req, in.Stdin, in.Timeout)
}

func (s *Server) runCommand(ctx context.Context, _ *mcp.CallToolRequest, in commandInput) (*mcp.CallToolResult, output, error) {
	return s.run(ctx, "run_command", tranca.Request{Command: in.Command}, in.Stdin, in.Timeout)
}

// run is a call from its arguments to its result. Its error is what the agent
// is told where nothing was run.
func (s *Server) run(ctx context.Context, tool string, req tranca.Request, stdin string, timeout *float64) (*mcp.CallToolResult, output, error) {
	ctx, done := s.begin(ctx)
	defer done()
	if err := refuseInput(req); err != nil {
		return nil, output{}, err
	}
	req.Stdin = strings.NewReader(stdin)
	req.Narrow = s.cfg.Narrow
	s.narrowTime(&req.Narrow, timeout)
	began := time.Now()
	res, err := s.runner.Run(ctx, req)
	if err != nil {
		s.cfg.Logger.Error("call failed", slog.String("tool", tool), slog.Any("error", err))
		s.cfg.Report(err)
		return nil, output{}, errors.New(errorWords(err, req))
	}
	s.cfg.Logger.Info("call", slog.String("tool", tool), slog.String("id", string(res.ID)),
		slog.String("ended", res.Exit.String()), slog.Duration("took", time.Since(began).Round(time.Millisecond)))
	view := res.AgentView()
	return &mcp.CallToolResult{Content: content(view), IsError: !view.Success}, view, nil
}

// narrowTime lowers the time limit to what the agent asked. More than there is
// was refused by the schema; here it could not raise anything either.
func (s *Server) narrowTime(n *tranca.Narrowing, seconds *float64) {
	if seconds == nil {
		return
	}
	wall := s.policy.Limits.Wall
	if asked := *seconds * float64(time.Second); asked < float64(wall) {
		n.Wall = max(time.Duration(asked), leastTime)
	}
}

// leastTime is the shortest time limit that works.
const leastTime = 10 * time.Millisecond

// refuseInput says in full what is wrong with arguments, since the error of
// the engine is not shown to the agent.
func refuseInput(req tranca.Request) error {
	if req.Command == nil && strings.TrimSpace(req.Code) == "" {
		return errors.New("the code is empty: there is nothing to run")
	}
	if strings.ContainsRune(req.Code, 0) {
		return errors.New("the code holds a NUL character, which no program text may")
	}
	for i, arg := range slices.Concat(req.Command, req.Args) {
		if strings.ContainsRune(arg, 0) {
			return fmt.Errorf("argument %d holds a NUL character, which no argument may", i+1)
		}
	}
	if len(req.Command) > 0 && req.Command[0] == "" {
		return errors.New("the name of the program is empty")
	}
	return nil
}
