package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"tranca"
	"tranca/internal/policy"
)

func TestRunPythonPassesOnWhatItWasGiven(t *testing.T) {
	r := &scripted{answer: exited(0, "42\n")}
	h := connect(t, Config{Runner: r, Narrow: tranca.Narrowing{Memory: 64 << 20}})
	res := h.call(t, "run_python", map[string]any{
		"code": "print(6*7)", "stdin": "in", "args": []string{"a", "-b"}, "timeout_seconds": 1.5,
	})
	if res.IsError || !slices.Equal(blocks(res), []string{"42\n"}) {
		t.Errorf("result %v, error %v", blocks(res), res.IsError)
	}
	req, stdin := r.last(t)
	if req.Code != "print(6*7)" || req.Language != "python" || stdin != "in" || !slices.Equal(req.Args, []string{"a", "-b"}) {
		t.Errorf("request %+v with input %q", req, stdin)
	}
	want := tranca.Narrowing{Memory: 64 << 20, Wall: 1500 * time.Millisecond}
	if diff := cmp.Diff(want, req.Narrow); diff != "" {
		t.Error(diff)
	}
}

func TestRunCommand(t *testing.T) {
	r := &scripted{answer: exited(0, "")}
	h := connect(t, Config{Runner: r})
	res := h.call(t, "run_command", map[string]any{"command": []string{"ls", "-l"}})
	if res.IsError || !slices.Equal(blocks(res), []string{"(no output)"}) {
		t.Errorf("result %v, error %v", blocks(res), res.IsError)
	}
	if req, _ := r.last(t); !slices.Equal(req.Command, []string{"ls", "-l"}) || req.Code != "" {
		t.Errorf("request %+v", req)
	}
}

func TestAFailureIsAnErrorWithItsStoryInFront(t *testing.T) {
	r := &scripted{answer: func(context.Context, tranca.Request) (*tranca.Result, error) {
		return &tranca.Result{
			Exit: tranca.Exit{Code: -1, Reason: tranca.EndMemory}, Limits: policy.Default().Limits,
			Stdout: []byte("How it went: it ended normally.\n"), Stderr: []byte("oh\xff"),
			StderrTruncated: true, LimitsHit: []tranca.LimitHit{tranca.HitOutput},
			Denials: []tranca.Denial{{What: "connect example.com:443", Rule: "network: none"}},
			Changes: []tranca.Change{{Path: "/data/a\nb", Kind: tranca.ChangeCreated, Size: 3, HostExecutable: true}},
		}, nil
	}}
	h := connect(t, Config{Runner: r})
	res := h.call(t, "run_python", map[string]any{"code": "x"})
	got := blocks(res)
	if !res.IsError || len(got) != 3 {
		t.Fatalf("error %v, blocks %q", res.IsError, got)
	}
	for _, want := range []string{
		"needed more than 256 MiB of memory", "Standard error is cut", "1 MiB of each output stream",
		"Refused: connect example.com:443 (network: none)", `Changed: "/data/a\nb" created (3 bytes; programs outside may run it)`,
	} {
		if !strings.Contains(got[0], want) {
			t.Errorf("the first block lacks %q:\n%s", want, got[0])
		}
	}
	if !strings.HasPrefix(got[1], "Standard output:\n") || got[2] != "Standard error:\noh\uFFFD" {
		t.Errorf("blocks %q", got[1:])
	}
	var view tranca.AgentView
	text, err := json.Marshal(res.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &view); err != nil || view.Code != -1 || view.Success || len(view.Changes) != 1 {
		t.Errorf("structure %s: %v", text, err)
	}
}

// TestPathsThatAreNoText holds the output schema to the one field that a
// result has only then.
func TestPathsThatAreNoText(t *testing.T) {
	r := &scripted{answer: func(context.Context, tranca.Request) (*tranca.Result, error) {
		return &tranca.Result{
			Exit:    tranca.Exit{Reason: tranca.EndExited},
			Changes: []tranca.Change{{Path: "/data/\xff", Kind: tranca.ChangeRemoved}},
		}, nil
	}}
	res := connect(t, Config{Runner: r}).call(t, "run_python", map[string]any{"code": "x"})
	if text := fmt.Sprint(res.StructuredContent); res.IsError || !strings.Contains(text, "path_base64") {
		t.Errorf("error %v: %s", res.IsError, text)
	}
}

func TestErrorsTellTheAgentNothing(t *testing.T) {
	secret := "/home/alice/secret by cgroup"
	tests := []struct {
		err  error
		want string
	}{
		{&tranca.RefusalError{Backend: secret, Problems: []tranca.Problem{{Item: tranca.ItemMemory, Asked: secret, Missing: secret, Mend: secret}}}, "Only the operator"},
		{fmt.Errorf("%w: %s", tranca.ErrUnavailable, secret), "Only the operator"},
		{fmt.Errorf("%w: %s", tranca.ErrInvalid, secret), "can't be run as they are"},
		{fmt.Errorf("%w: %s", tranca.ErrNotFound, secret), "no Python"},
		{fmt.Errorf("%w: %s", tranca.ErrBusy, secret), "Try again later"},
		{fmt.Errorf("%w: %s", tranca.ErrProtocol, secret), "no fault of the program"},
		{fmt.Errorf("%w: %s", tranca.ErrGone, secret), "starts afresh"},
		{errors.New(secret), "no fault of the program"},
	}
	for _, tt := range tests {
		t.Run(tt.want, func(t *testing.T) {
			h := connect(t, Config{Runner: &scripted{answer: func(context.Context, tranca.Request) (*tranca.Result, error) { return nil, tt.err }}})
			res := h.call(t, "run_python", map[string]any{"code": "x"})
			told, err := json.Marshal(res)
			if err != nil {
				t.Fatal(err)
			}
			if !res.IsError || !strings.Contains(string(told), tt.want) {
				t.Errorf("error %v, told %s; want %q", res.IsError, told, tt.want)
			}
			for _, word := range []string{"alice", "cgroup", "limits.memory"} {
				if strings.Contains(string(told), word) {
					t.Errorf("the agent was told %q: %s", word, told)
				}
			}
			if got := h.reports(); len(got) != 1 || !errors.Is(got[0], tt.err) {
				t.Errorf("the operator was told %v", got)
			}
		})
	}
}

func TestResultsTellNothingOfWhatStandsBehind(t *testing.T) {
	p := policy.Default()
	p.Backend = "secretbackend"
	p.Source = "/etc/tranca/secretpolicy.yaml"
	p.Mounts = []tranca.Mount{{Source: "/srv/secretsource", Target: "/data", Writable: true, Protect: []string{".git/hooks"}}}
	h := connect(t, Config{Runner: &scripted{answer: exited(3, "x")}, Policy: p})
	tools, err := h.client.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	init := h.client.InitializeResult()
	for what, v := range map[string]any{
		"tools": tools, "server": init, "result": h.call(t, "run_python", map[string]any{"code": "x"}),
		"refusal": h.call(t, "run_python", map[string]any{"code": ""}),
	} {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"secret", "\"process\"", "isolation", "backend", "namespace", "seccomp", "cgroup", "sha256"} {
			if strings.Contains(string(text), word) {
				t.Errorf("%s tell %q: %s", what, word, text)
			}
		}
	}
}

func TestBadArguments(t *testing.T) {
	r := &scripted{answer: exited(0, "")}
	h := connect(t, Config{Runner: r})
	tests := []struct {
		name, tool string
		args       map[string]any
		want       string
	}{
		{"no code", "run_python", map[string]any{}, "code"},
		{"empty code", "run_python", map[string]any{"code": " \n"}, "empty"},
		{"NUL in code", "run_python", map[string]any{"code": "a\x00"}, "NUL"},
		{"NUL in an argument", "run_python", map[string]any{"code": "a", "args": []string{"\x00"}}, "NUL"},
		{"empty command", "run_command", map[string]any{"command": []string{}}, "minItems"},
		{"nameless command", "run_command", map[string]any{"command": []string{""}}, "empty"},
		{"more time", "run_python", map[string]any{"code": "a", "timeout_seconds": 31}, "maximum"},
		{"no time", "run_python", map[string]any{"code": "a", "timeout_seconds": 0}, "minimum"},
		{"time as text", "run_python", map[string]any{"code": "a", "timeout_seconds": "5"}, "type"},
		{"policy", "run_python", map[string]any{"code": "a", "policy": map[string]any{}}, "policy"},
		{"memory", "run_command", map[string]any{"command": []string{"a"}, "memory": "4GiB"}, "memory"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res := h.call(t, tt.tool, tt.args)
			if text := strings.Join(blocks(res), "\n"); !res.IsError || !strings.Contains(text, tt.want) {
				t.Errorf("error %v: %s; want %q", res.IsError, text, tt.want)
			}
		})
	}
	if n := r.count(); n != 0 {
		t.Errorf("%d of them were run", n)
	}
}

func TestNarrowBeyondThePolicyIsRefused(t *testing.T) {
	_, err := New(Config{Policy: policy.Default(), Narrow: tranca.Narrowing{Memory: 1 << 40}})
	if !errors.Is(err, tranca.ErrRefused) {
		t.Errorf("got %v", err)
	}
}

func TestCancellingACallEndsItsRun(t *testing.T) {
	started, ended := make(chan struct{}), make(chan struct{})
	h := connect(t, Config{Runner: &scripted{answer: func(ctx context.Context, _ tranca.Request) (*tranca.Result, error) {
		close(started)
		<-ctx.Done()
		close(ended)
		return &tranca.Result{Exit: tranca.Exit{Code: -1, Reason: tranca.EndClosed}}, nil
	}}})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-started
		cancel()
	}()
	if _, err := h.client.CallTool(ctx, &mcp.CallToolParams{Name: "run_python", Arguments: map[string]any{"code": "x"}}); err == nil {
		t.Error("the cancelled call has a result")
	}
	<-ended // or the test's deadline says what is wrong
}

// TestAClientThatGoesAwayEndsItsRuns speaks the protocol by hand, since the
// SDK's client waits for its calls before it goes.
func TestAClientThatGoesAwayEndsItsRuns(t *testing.T) {
	started := make(chan struct{})
	r := &scripted{answer: func(ctx context.Context, _ tranca.Request) (*tranca.Result, error) {
		close(started)
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	s, err := New(Config{
		Runner: r, Policy: policy.Default(), Version: "test",
		Logger: slog.New(slog.DiscardHandler), Report: func(error) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	in, client := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- s.Serve(t.Context(), in, io.Discard) }()
	for _, message := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_python","arguments":{"code":"x"}}}`,
	} {
		if _, err := io.WriteString(client, message+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	<-started
	client.Close()
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
}
