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
	Session string   `json:"session,omitempty"`
}

type commandInput struct {
	Command []string `json:"command"`
	Stdin   string   `json:"stdin,omitempty"`
	Timeout *float64 `json:"timeout_seconds,omitempty"`
	Session string   `json:"session,omitempty"`
}

func (s *Server) addTools() {
	p := s.policy
	mcp.AddTool(s.server, &mcp.Tool{
		Name: "run_python", Description: describePython(p),
		InputSchema: pythonSchema(p), OutputSchema: outputSchema(),
		Annotations: s.hints("Run Python", false),
	}, s.runPython)
	mcp.AddTool(s.server, &mcp.Tool{
		Name: "run_command", Description: describeCommand(p),
		InputSchema: commandSchema(p), OutputSchema: outputSchema(),
		Annotations: s.hints("Run a command", false),
	}, s.runCommand)
	s.addFileTools()
	s.addSessionTools()
	s.addProcessTools()
}

// hints are a tool's annotations. The world outside is not reachable, and what
// can be destroyed is only what the operator made writable.
func (s *Server) hints(title string, readOnly bool) *mcp.ToolAnnotations {
	closed, destructive := false, false
	for _, m := range s.policy.Mounts {
		destructive = destructive || m.Writable && !readOnly
	}
	return &mcp.ToolAnnotations{
		Title: title, ReadOnlyHint: readOnly, OpenWorldHint: &closed, DestructiveHint: &destructive,
	}
}

// output is what a run gives: the agent's view, and the images that it wrote.
type output struct {
	tranca.AgentView
	Images []imageView `json:"images"`
}

func (s *Server) runPython(ctx context.Context, call *mcp.CallToolRequest, in pythonInput) (*mcp.CallToolResult, *output, error) {
	req := tranca.Request{Code: in.Code, Language: "python", Args: in.Args, Stdin: strings.NewReader(in.Stdin)}
	return s.run(ctx, call, in.Session, req, in.Timeout)
}

func (s *Server) runCommand(ctx context.Context, call *mcp.CallToolRequest, in commandInput) (*mcp.CallToolResult, *output, error) {
	req := tranca.Request{Command: in.Command, Stdin: strings.NewReader(in.Stdin)}
	return s.run(ctx, call, in.Session, req, in.Timeout)
}

// run is a call from its arguments to its result. Its error is what the agent
// is told where nothing was run.
func (s *Server) run(ctx context.Context, call *mcp.CallToolRequest, session string, req tranca.Request, timeout *float64) (*mcp.CallToolResult, *output, error) {
	ctx, done := s.begin(ctx)
	defer done()
	if err := refuseInput(req); err != nil {
		return nil, nil, err
	}
	req.Narrow = s.cfg.Narrow
	s.narrowTime(&req.Narrow, timeout)
	p := s.report(ctx, call)
	defer p.stop()
	if p != nil {
		req.Stdout, req.Stderr = p, p
	}
	began := time.Now()
	g := gallery{shown: []imageView{}}
	res, err := s.execute(ctx, session, req, func(ctx context.Context, files tranca.Files) {
		g.prepare(ctx, files)
		p.start()
	}, g.collect)
	tool := call.Params.Name
	if err != nil {
		return nil, nil, s.failed(tool, session, err, req)
	}
	s.cfg.Logger.Info("call", slog.String("tool", tool), slog.String("session", session), slog.String("id", string(res.ID)),
		slog.String("ended", res.Exit.String()), slog.Duration("took", time.Since(began).Round(time.Millisecond)))
	out := &output{AgentView: res.AgentView(), Images: g.shown}
	return &mcp.CallToolResult{
		Content: append(content(out.AgentView), g.content()...), IsError: !out.Success,
	}, out, nil
}

// execute runs the request where it belongs.
func (s *Server) execute(ctx context.Context, session string, req tranca.Request, before, after func(context.Context, tranca.Files)) (res *tranca.Result, err error) {
	if session == "" && s.sessions.kept == nil {
		return s.cfg.Runner.Run(ctx, req, before, after)
	}
	err = s.sessions.use(ctx, session, func(sb Session) (err error) {
		before(ctx, sb.Files())
		if res, err = sb.Run(ctx, req); err == nil {
			after(ctx, sb.Files())
		}
		return err
	})
	return res, err
}

// failed tells the operator of an error, and returns what the agent is told.
func (s *Server) failed(tool, session string, err error, req tranca.Request) error {
	if own, ok := err.(*told); ok {
		s.cfg.Logger.Info("call turned away", slog.String("tool", tool), slog.String("session", session))
		return own
	}
	s.cfg.Logger.Error("call failed", slog.String("tool", tool), slog.String("session", session), slog.Any("error", err))
	s.cfg.Report(err)
	return errors.New(errorWords(err, req))
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
