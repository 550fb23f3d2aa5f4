package mcp

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"tranca"
	"tranca/internal/backend/fake"
	"tranca/internal/policy"
)

// scripted is a runner that remembers what it was asked and answers with a
// function.
type scripted struct {
	mu       sync.Mutex
	requests []tranca.Request
	stdin    []string
	answer   func(ctx context.Context, req tranca.Request) (*tranca.Result, error)
	// files are those of its sandbox; without them there is no folder to look at.
	files tranca.Files
}

func (s *scripted) Run(ctx context.Context, req tranca.Request, before, after func(context.Context, tranca.Files)) (*tranca.Result, error) {
	files := s.files
	if files == nil {
		files = failingFiles{tranca.ErrGone}
	}
	before(ctx, files)
	res, err := s.do(ctx, req)
	if err == nil {
		after(ctx, files)
	}
	return res, err
}

func (s *scripted) do(ctx context.Context, req tranca.Request) (*tranca.Result, error) {
	in, err := io.ReadAll(req.Stdin)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.requests = append(s.requests, req)
	s.stdin = append(s.stdin, string(in))
	s.mu.Unlock()
	return s.answer(ctx, req)
}

// sandboxFiles returns the files of a sandbox in memory.
func sandboxFiles(t *testing.T) tranca.Files {
	t.Helper()
	b := fake.New(fake.Options{Name: "fake"})
	sb, err := b.Create(t.Context(), tranca.Spec{ID: tranca.NewID(), Policy: policy.Default()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sb.Close(context.Background()) })
	return sb.Files()
}

// last returns the latest request and its standard input.
func (s *scripted) last(t *testing.T) (tranca.Request, string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.requests) == 0 {
		t.Fatal("nothing was run")
	}
	return s.requests[len(s.requests)-1], s.stdin[len(s.stdin)-1]
}

func (s *scripted) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

func exited(code int, stdout string) func(context.Context, tranca.Request) (*tranca.Result, error) {
	return func(context.Context, tranca.Request) (*tranca.Result, error) {
		return &tranca.Result{
			ID: "iaaaaaaaaaaaaaaaaaaaa", Backend: "secretbackend", Isolation: tranca.LevelProcess,
			Exit:   tranca.Exit{Code: code, Reason: tranca.EndExited},
			Stdout: []byte(stdout), Limits: policy.Default().Limits,
			Enforcement: []tranca.Enforcement{{Item: tranca.ItemFiles, Mechanism: "secretmechanism", Status: tranca.StatusEnforced}},
			Policy:      tranca.PolicyRef{Source: "/etc/tranca/secretpolicy.yaml", Digest: "sha256:0"},
			Notes:       []string{"secretnote"},
		}, nil
	}
}

// harness is a server with a client at its other end.
type harness struct {
	client   *mcp.ClientSession
	mu       sync.Mutex
	reported []error
}

func (h *harness) reports() []error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]error(nil), h.reported...)
}

// connect starts a server and returns a client that speaks to it.
func connect(t *testing.T, cfg Config) *harness {
	t.Helper()
	h := &harness{}
	cfg.Version, cfg.Logger = "test", slog.New(slog.DiscardHandler)
	if cfg.Policy.Floor == 0 {
		cfg.Policy = policy.Default()
	}
	cfg.Report = func(err error) {
		h.mu.Lock()
		h.reported = append(h.reported, err)
		h.mu.Unlock()
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	far, near := mcp.NewInMemoryTransports()
	served := make(chan error, 1)
	go func() { served <- s.serve(ctx, far) }()
	h.client, err = mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, near, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.client.Close()
		// The answer to a cancelled call may come when the client has gone.
		if err := <-served; err != nil && !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("serve: %v", err)
		}
		cancel()
	})
	return h
}

func (h *harness) call(t *testing.T, tool string, args map[string]any) *mcp.CallToolResult {
	t.Helper()
	res, err := h.client.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s(%v): %v", tool, args, err)
	}
	return res
}

// blocks lists the text blocks of a result.
func blocks(res *mcp.CallToolResult) []string {
	var all []string
	for _, c := range res.Content {
		if tc, ok := c.(*mcp.TextContent); ok {
			all = append(all, tc.Text)
		}
	}
	return all
}
