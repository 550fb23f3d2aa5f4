package mcp

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"tranca"
)

type noInput struct{}

type sessionInput struct {
	Session string `json:"session"`
}

type createOutput struct {
	Session string `json:"session"`
}

type listOutput struct {
	Sessions []sessionView `json:"sessions"`
}

func (s *Server) addSessionTools() {
	mcp.AddTool(s.server, &mcp.Tool{
		Name: "create_session", Description: describeCreate(s.policy),
		InputSchema:  object(map[string]any{}),
		OutputSchema: record(map[string]any{"session": text("Its name, for the argument session.")}, "session"),
		Annotations:  s.hints("Make a session", false),
	}, s.createSession)
	mcp.AddTool(s.server, &mcp.Tool{
		Name: "close_session", Description: "End a session: what runs in it ends, and its own files are gone.",
		InputSchema: object(map[string]any{"session": text("Its name.")}, "session"),
		Annotations: s.hints("End a session", false),
	}, s.closeSession)
	mcp.AddTool(s.server, &mcp.Tool{
		Name: "list_sessions", Description: "List the sessions that there are, oldest first.",
		InputSchema:  object(map[string]any{}),
		OutputSchema: sessionsSchema(),
		Annotations:  s.hints("List sessions", true),
	}, s.listSessions)
}

func (s *Server) createSession(ctx context.Context, call *mcp.CallToolRequest, _ noInput) (*mcp.CallToolResult, *createOutput, error) {
	ctx, done := s.begin(ctx)
	defer done()
	p := s.report(ctx, call)
	defer p.stop()
	name, err := s.sessions.create(ctx)
	if err != nil {
		return nil, nil, s.failed(call.Params.Name, "", err, tranca.Request{})
	}
	s.cfg.Logger.Info("call", slog.String("tool", call.Params.Name), slog.String("session", name))
	return &mcp.CallToolResult{Content: said("The session is %s. It starts in %s with no files of its own.", name, quoted(s.policy.Workdir))},
		&createOutput{name}, nil
}

func (s *Server) closeSession(ctx context.Context, call *mcp.CallToolRequest, in sessionInput) (*mcp.CallToolResult, any, error) {
	ctx, done := s.begin(ctx)
	defer done()
	if err := s.sessions.end(ctx, in.Session); err != nil {
		return nil, nil, s.failed(call.Params.Name, in.Session, err, tranca.Request{})
	}
	s.cfg.Logger.Info("call", slog.String("tool", call.Params.Name), slog.String("session", in.Session))
	return &mcp.CallToolResult{Content: said("The session %s has ended.", in.Session)}, nil, nil
}

func (s *Server) listSessions(context.Context, *mcp.CallToolRequest, noInput) (*mcp.CallToolResult, *listOutput, error) {
	views := s.sessions.list()
	var b strings.Builder
	for _, v := range views {
		state := fmt.Sprintf("unused for %d s", v.Unused)
		if v.Busy {
			state = "in use"
		}
		fmt.Fprintf(&b, "%s: made %d s ago, %s\n", v.Session, v.Age, state)
	}
	if len(views) == 0 {
		b.WriteString("There is no session.")
	}
	return &mcp.CallToolResult{Content: said("%s", strings.TrimSuffix(b.String(), "\n"))}, &listOutput{views}, nil
}

func sessionsSchema() map[string]any {
	number := func(description string) map[string]any {
		return map[string]any{"type": "integer", "description": description}
	}
	return record(map[string]any{"sessions": list(record(map[string]any{
		"session":        text("Its name."),
		"age_seconds":    number("How long ago it was made."),
		"unused_seconds": number("How long ago it was last used."),
		"busy":           map[string]any{"type": "boolean", "description": "A call is under way in it."},
	}, "session", "age_seconds", "unused_seconds", "busy"), "The sessions, oldest first.")}, "sessions")
}
