package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"tranca"
)

const (
	// maxOutput is how much of each stream one call gives.
	maxOutput = 64 << 10
	// maxWait is how long a call waits for output.
	maxWait = 20 * time.Second
	// stopGrace is how long a program may take to end by SIGTERM, and stopTime
	// how long a call waits for its end.
	stopGrace = 2 * time.Second
	stopTime  = 10 * time.Second
)

type startInput struct {
	Command []string `json:"command"`
	Session string   `json:"session,omitempty"`
}

type startOutput struct {
	Program string `json:"program"`
}

type processInput struct {
	Program string  `json:"program"`
	Session string  `json:"session,omitempty"`
	Stdout  int64   `json:"stdout_offset,omitempty"`
	Stderr  int64   `json:"stderr_offset,omitempty"`
	Wait    float64 `json:"wait_seconds,omitempty"`
}

// processOutput is what the agent is told of a program.
type processOutput struct {
	Running bool   `json:"running"`
	Ended   string `json:"ended,omitempty"`
	Code    int    `json:"code"`
	Stdout  string `json:"stdout"`
	Stderr  string `json:"stderr"`
	// NextStdout and NextStderr are where to go on.
	NextStdout int64 `json:"stdout_offset"`
	NextStderr int64 `json:"stderr_offset"`
	// Missed says that output between the offset asked and what is here is not
	// kept any more.
	Missed bool `json:"missed"`
}

func (s *Server) addProcessTools() {
	p := s.policy
	mcp.AddTool(s.server, &mcp.Tool{
		Name: "start_process", Description: describeStart, InputSchema: startSchema(p),
		OutputSchema: record(map[string]any{"program": text("Its name, for the argument program.")}, "program"),
		Annotations:  s.hints("Start a program", false),
	}, s.startProcess)
	mcp.AddTool(s.server, &mcp.Tool{
		Name: "process_output", Description: describeOutput(p), InputSchema: outputOfSchema(p),
		OutputSchema: processSchema(), Annotations: s.hints("Output of a program", true),
	}, s.processOutput)
	mcp.AddTool(s.server, &mcp.Tool{
		Name: "stop_process", Description: "Stop a program of start_process: by SIGTERM, and 2 seconds later by SIGKILL.",
		InputSchema: onFiles(p, map[string]any{"program": text("Its name.")}, "program"),
		Annotations: s.hints("Stop a program", false),
	}, s.stopProcess)
}

func (s *Server) startProcess(ctx context.Context, call *mcp.CallToolRequest, in startInput) (*mcp.CallToolResult, *startOutput, error) {
	ctx, done := s.begin(ctx)
	defer done()
	req := tranca.Request{Command: in.Command}
	if err := refuseInput(req); err != nil {
		return nil, nil, err
	}
	var id string
	err := s.sessions.beside(ctx, in.Session, func(sb Session) error {
		p, err := sb.Start(ctx, in.Command)
		if err == nil {
			id = string(p.Info().ID)
		}
		return err
	})
	if err != nil {
		return nil, nil, s.failed(call.Params.Name, in.Session, err, req)
	}
	s.cfg.Logger.Info("call", slog.String("tool", call.Params.Name), slog.String("session", in.Session), slog.String("process", id))
	return &mcp.CallToolResult{Content: said("It runs as %s.", id)}, &startOutput{id}, nil
}

func (s *Server) processOutput(ctx context.Context, call *mcp.CallToolRequest, in processInput) (*mcp.CallToolResult, *processOutput, error) {
	var out *processOutput
	err := s.withProcess(ctx, call, in.Session, in.Program, func(ctx context.Context, p Process) error {
		wait, cancel := context.WithTimeout(ctx, time.Duration(min(in.Wait, maxWait.Seconds())*float64(time.Second)))
		defer cancel()
		stdout, stderr, err := p.Output(wait, in.Stdout, in.Stderr, maxOutput)
		out = s.processView(p.Info(), stdout, stderr)
		out.Missed = stdout.From > in.Stdout || stderr.From > in.Stderr
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return &mcp.CallToolResult{Content: processContent(out)}, out, nil
}

// processView is what the agent is told. The rest of a character that comes
// with the next call is left for it, as long as the program runs.
func (s *Server) processView(info tranca.ProcessInfo, stdout, stderr Piece) *processOutput {
	if info.Exit == nil {
		stdout.Data, stderr.Data = wholeRunes(stdout.Data), wholeRunes(stderr.Data)
	}
	v := &processOutput{
		Running: info.Exit == nil, Code: -1,
		Stdout: valid(string(stdout.Data)), NextStdout: stdout.From + int64(len(stdout.Data)),
		Stderr: valid(string(stderr.Data)), NextStderr: stderr.From + int64(len(stderr.Data)),
	}
	if info.Exit != nil {
		view := (&tranca.Result{Exit: *info.Exit, Limits: s.policy.Limits}).AgentView()
		v.Ended, v.Code = view.Ended, view.Code
	}
	return v
}

func processContent(v *processOutput) []mcp.Content {
	words := "It runs."
	if !v.Running {
		words = "It has ended: " + v.Ended + "."
	}
	if v.Missed {
		words += " Older output is not kept any more."
	}
	words += fmt.Sprintf(" Go on with stdout_offset %d and stderr_offset %d.", v.NextStdout, v.NextStderr)
	all := said("%s", words)
	if v.Stdout != "" {
		all = append(all, said("Standard output:\n%s", v.Stdout)...)
	}
	if v.Stderr != "" {
		all = append(all, said("Standard error:\n%s", v.Stderr)...)
	}
	return all
}

func (s *Server) stopProcess(ctx context.Context, call *mcp.CallToolRequest, in processInput) (*mcp.CallToolResult, any, error) {
	var words string
	err := s.withProcess(ctx, call, in.Session, in.Program, func(ctx context.Context, p Process) error {
		err := stop(ctx, p)
		words = "It has ended"
		if e := p.Info().Exit; e != nil {
			words += ": " + s.processView(p.Info(), Piece{}, Piece{}).Ended
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return &mcp.CallToolResult{Content: said("%s.", words)}, nil, nil
}

// stop ends a program and returns when it has ended.
func stop(ctx context.Context, p Process) error {
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	for _, sig := range []tranca.Signal{tranca.SIGTERM, tranca.SIGKILL} {
		if err := p.Signal(ctx, sig, true); err != nil && !errors.Is(err, tranca.ErrGone) {
			return err
		}
		grace, cancel := context.WithTimeout(ctx, stopGrace)
		_, err := p.Wait(grace)
		cancel()
		if err == nil || grace.Err() == nil {
			return nil // how it ended is told by its Info
		}
	}
	_, err := p.Wait(ctx)
	return err
}

var processName = regexp.MustCompile(`^p[0-9]{1,9}$`)

// withProcess is a call on a program of a session. Its error is for the agent.
func (s *Server) withProcess(ctx context.Context, call *mcp.CallToolRequest, session, id string, do func(context.Context, Process) error) error {
	ctx, done := s.begin(ctx)
	defer done()
	err := s.sessions.beside(ctx, session, func(sb Session) error {
		if !processName.MatchString(id) {
			return tell("There is no program %s there: start_process says what its programs are called.", name(id))
		}
		p, err := sb.Process(id)
		switch {
		case errors.Is(err, tranca.ErrNotFound):
			return tell("There is no program %s there: start_process says what its programs are called.", id)
		case errors.Is(err, tranca.ErrGone):
			return tell("The program %s has ended, and nothing of it is kept.", id)
		case err != nil:
			return err
		}
		return do(ctx, p)
	})
	if err != nil {
		return s.failed(call.Params.Name, session, err, tranca.Request{})
	}
	s.cfg.Logger.Info("call", slog.String("tool", call.Params.Name), slog.String("session", session), slog.String("process", id))
	return nil
}

func startSchema(p tranca.Policy) map[string]any {
	command := texts("The program and its arguments, one element each. No shell reads them.")
	command["minItems"] = 1
	return onFiles(p, map[string]any{"command": command}, "command")
}

func outputOfSchema(p tranca.Policy) map[string]any {
	return onFiles(p, map[string]any{
		"program":       text("Its name."),
		"stdout_offset": integer(0, 1<<53, "Give standard output from this byte on; 0 if left out."),
		"stderr_offset": integer(0, 1<<53, "Give standard error from this byte on; 0 if left out."),
		"wait_seconds": map[string]any{
			"type": "number", "minimum": 0, "maximum": maxWait.Seconds(),
			"description": "Where there is nothing new, wait so long for it or for the program's end; 0 if left out.",
		},
	}, "program")
}

func processSchema() map[string]any {
	number := func(description string) map[string]any {
		return map[string]any{"type": "integer", "description": description}
	}
	return record(map[string]any{
		"running":       map[string]any{"type": "boolean", "description": "It has not ended."},
		"ended":         text("How it ended, in words."),
		"code":          number("The exit code, or -1 where it has not ended by itself."),
		"stdout":        text("Standard output from the offset on."),
		"stderr":        text("Standard error from the offset on."),
		"stdout_offset": number("Where to go on in standard output."),
		"stderr_offset": number("Where to go on in standard error."),
		"missed":        map[string]any{"type": "boolean", "description": "Output before this is not kept any more."},
	}, "running", "code", "stdout", "stderr", "stdout_offset", "stderr_offset", "missed")
}
