package mcp

import (
	"context"
	"fmt"
	"sync"
	"testing"

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
		return noFiles{}
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
