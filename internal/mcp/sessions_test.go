package mcp

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"tranca"
	"tranca/internal/policy"
)

// fakeSession counts what is done with it, and fails where two calls meet.
type fakeSession struct {
	*scripted
	t      *testing.T
	busy   sync.Mutex
	closed bool
}

func (s *fakeSession) Run(ctx context.Context, req tranca.Request) (*tranca.Result, error) {
	if !s.busy.TryLock() {
		s.t.Error("two calls at once in one session")
		return nil, tranca.ErrBusy
	}
	defer s.busy.Unlock()
	return s.do(ctx, req)
}

func (s *fakeSession) Files() tranca.Files {
	if s.scripted.files == nil {
		return failingFiles{tranca.ErrGone}
	}
	return s.scripted.files
}

func (s *fakeSession) Start(context.Context, []string) (Process, error) {
	return nil, tranca.ErrUnsupported
}

func (s *fakeSession) Process(string) (Process, error) { return nil, tranca.ErrNotFound }

func (s *fakeSession) Close(context.Context) error {
	s.closed = true
	return nil
}

func keeping() tranca.Policy {
	p := policy.Default()
	p.KeepFiles = true
	return p
}

func TestCallsShareASessionWhereThePolicySaysSo(t *testing.T) {
	s := &fakeSession{scripted: &scripted{answer: exited(0, "ok")}, t: t}
	opened := 0
	t.Run("calls", func(t *testing.T) {
		h := connect(t, Config{Policy: keeping(), OpenSession: func(context.Context) (Session, error) {
			opened++
			return s, nil
		}})
		var calls sync.WaitGroup
		for range 8 {
			calls.Go(func() { h.call(t, "run_python", map[string]any{"code": "x"}) })
		}
		calls.Wait()
	})
	if opened != 1 || !s.closed || s.count() != 8 {
		t.Errorf("opened %d times, closed %v, ran %d", opened, s.closed, s.count())
	}
}

func TestALostSessionIsOpenedAgain(t *testing.T) {
	var sessions []*fakeSession
	open := func(context.Context) (Session, error) {
		answer := exited(0, "ok")
		if len(sessions) == 0 {
			answer = func(context.Context, tranca.Request) (*tranca.Result, error) {
				return nil, fmt.Errorf("%w: killed", tranca.ErrGone)
			}
		}
		s := &fakeSession{scripted: &scripted{answer: answer}, t: t}
		sessions = append(sessions, s)
		return s, nil
	}
	h := connect(t, Config{Policy: keeping(), OpenSession: open})
	first := h.call(t, "run_python", map[string]any{"code": "x"})
	second := h.call(t, "run_python", map[string]any{"code": "x"})
	if !first.IsError || second.IsError || len(sessions) != 2 || !sessions[0].closed {
		t.Errorf("first error %v, second error %v, %d sessions", first.IsError, second.IsError, len(sessions))
	}
}

func TestWithoutKeepingEachCallIsFresh(t *testing.T) {
	r := &scripted{answer: exited(0, "ok")}
	h := connect(t, Config{Runner: r, OpenSession: func(context.Context) (Session, error) {
		t.Error("a session was opened")
		return nil, tranca.ErrUnsupported
	}})
	h.call(t, "run_python", map[string]any{"code": "x"})
	h.call(t, "run_command", map[string]any{"command": []string{"x"}})
	if r.count() != 2 {
		t.Errorf("ran %d", r.count())
	}
}

// TestALostSessionSaysSo has each tool find that the session is gone.
func TestALostSessionSaysSo(t *testing.T) {
	for tool, args := range everyTool("s1") {
		switch tool {
		case "close_session", "process_output", "stop_process":
			continue // they have nothing to lose
		}
		t.Run(tool, func(t *testing.T) {
			gone := &closing{failing{tranca.ErrGone, nil}, func() {}}
			h := connect(t, Config{OpenSession: func(context.Context) (Session, error) { return gone, nil }})
			h.call(t, "create_session", nil)
			for range 2 {
				if got := blocks(h.call(t, tool, args)); len(got) != 1 || !strings.HasPrefix(got[0], "The session s1 has ended, and its files are gone.") {
					t.Errorf("told %q", got)
				}
			}
			if got := blocks(h.call(t, "list_sessions", nil)); got[0] != "There is no session." {
				t.Errorf("listed %q", got)
			}
		})
	}
}

// TestFilesOfALostSandboxThatIsKept opens the kept one again.
func TestFilesOfALostSandboxThatIsKept(t *testing.T) {
	opened := 0
	h := connect(t, Config{Policy: keeping(), OpenSession: func(context.Context) (Session, error) {
		opened++
		if opened == 1 {
			return failing{tranca.ErrGone, nil}, nil
		}
		return &fakeSession{scripted: &scripted{answer: exited(0, ""), files: sandboxFiles(t)}, t: t}, nil
	}})
	if first := h.call(t, "write_file", map[string]any{"path": "a/b/c", "content": "x"}); !first.IsError || !strings.Contains(blocks(first)[0], "starts afresh") {
		t.Errorf("first: %q", blocks(first))
	}
	if second := h.call(t, "write_file", map[string]any{"path": "a/b/c", "content": "x"}); second.IsError || opened != 2 {
		t.Errorf("second: %q, opened %d times", blocks(second), opened)
	}
	if third := blocks(h.call(t, "read_file", map[string]any{"path": "a/b/c"})); third[0] != "x" {
		t.Errorf("third: %q", third)
	}
}

// TestWaitingForATurnCanBeCancelled leaves the one that has it alone.
func TestWaitingForATurnCanBeCancelled(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	s := &fakeSession{t: t, scripted: &scripted{answer: func(ctx context.Context, req tranca.Request) (*tranca.Result, error) {
		close(started)
		<-release
		return exited(0, "first")(ctx, req)
	}}}
	h := connect(t, Config{Policy: keeping(), OpenSession: func(context.Context) (Session, error) { return s, nil }})
	first := make(chan *mcp.CallToolResult)
	go func() { first <- h.call(t, "run_python", map[string]any{"code": "x"}) }()
	<-started
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := h.client.CallTool(ctx, &mcp.CallToolParams{Name: "read_file", Arguments: map[string]any{"path": "x"}}); err == nil {
		t.Error("the second did not wait")
	}
	close(release)
	if res := <-first; res.IsError || blocks(res)[0] != "first" {
		t.Errorf("the first: %q", blocks(res))
	}
}
