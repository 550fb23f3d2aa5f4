package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"tranca"
	"tranca/internal/api"
)

// Sandbox is one that lives on the server. Safe for concurrent use.
type Sandbox struct {
	c  *Client
	id tranca.ID

	mu   sync.Mutex
	info tranca.SandboxInfo
}

// ID returns its name.
func (s *Sandbox) ID() tranca.ID { return s.id }

// Info returns what was last heard of it; [Sandbox.Refresh] asks again.
func (s *Sandbox) Info() tranca.SandboxInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.info
}

func (s *Sandbox) heard(info tranca.SandboxInfo) (tranca.SandboxInfo, error) {
	if info.ID != s.id {
		return tranca.SandboxInfo{}, fmt.Errorf("%w: the server answers for sandbox %q, asked for %q", tranca.ErrProtocol, info.ID, s.id)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.info = info
	return info, nil
}

// Refresh asks what is known of it. The error wraps [tranca.ErrGone], with the
// reason, once it has ended.
func (s *Sandbox) Refresh(ctx context.Context) (tranca.SandboxInfo, error) {
	var info tranca.SandboxInfo
	if err := s.c.get(ctx, &info, nil, api.RouteGet, string(s.id)); err != nil {
		return tranca.SandboxInfo{}, err
	}
	return s.heard(info)
}

// KeepAlive sets its end to so long after now; 0 is the server's default. More
// than the server allows is [tranca.ErrInvalid].
func (s *Sandbox) KeepAlive(ctx context.Context, ttl time.Duration) (tranca.SandboxInfo, error) {
	var info tranca.SandboxInfo
	q := newCall(api.RouteKeepAlive, string(s.id)).json(api.KeepAliveRequest{TTLMS: milliseconds(ttl)}).again()
	if err := s.c.do(ctx, q, &info); err != nil {
		return tranca.SandboxInfo{}, err
	}
	return s.heard(info)
}

// SetEnv changes the environment of programs that are started later. Names
// that the policy sets are [tranca.ErrRefused].
func (s *Sandbox) SetEnv(ctx context.Context, set map[string]string, unset []string) error {
	q := newCall(api.RouteEnvironment, string(s.id)).json(api.EnvironmentRequest{Set: set, Unset: unset}).again()
	return s.c.do(ctx, q, nil)
}

// Changes lists what was written to the sandbox's mounts of mode cow so far,
// sorted by path, with notes on what could not be seen. They are kept on the
// server's host when the sandbox ends.
func (s *Sandbox) Changes(ctx context.Context) ([]tranca.Change, []string, error) {
	var list api.ChangeList
	if err := s.c.get(ctx, &list, nil, api.RouteChanges, string(s.id)); err != nil {
		return nil, nil, err
	}
	return list.Changes, list.Notes, nil
}

// Run runs one request in the sandbox; see [Client.Run]. Request.Profile must
// be empty. What it leaves running is ended; its files stay.
func (s *Sandbox) Run(ctx context.Context, req tranca.Request) (*tranca.Result, error) {
	return s.c.run(ctx, req, api.RouteSandboxRun, string(s.id))
}

// Close destroys the sandbox and returns when nothing of it is left. One that
// has ended already is no error.
func (s *Sandbox) Close(ctx context.Context) error {
	err := s.c.do(ctx, newCall(api.RouteDelete, string(s.id)).again(), nil)
	if errors.Is(err, tranca.ErrGone) {
		return nil
	}
	return err
}

// Start starts a program that outlives the call. Errors wrap
// [tranca.ErrNotFound], [tranca.ErrInvalid], [tranca.ErrBusy] or
// [tranca.ErrGone].
func (s *Sandbox) Start(ctx context.Context, o tranca.StartRequest) (*Process, error) {
	q := newCall(api.RouteStart, string(s.id)).json(api.StartRequest{
		Args: o.Args, Env: o.Env, Dir: o.Dir, Tag: o.Tag, Terminal: o.Terminal,
		Stdin: o.Stdin, WallMS: milliseconds(o.Wall),
	})
	var info tranca.ProcessInfo
	if err := s.c.do(ctx, q, &info); err != nil {
		return nil, err
	}
	return s.process(info)
}

func (s *Sandbox) process(info tranca.ProcessInfo) (*Process, error) {
	if !usable(string(info.ID)) {
		return nil, fmt.Errorf("%w: the server names a process %q", tranca.ErrProtocol, info.ID)
	}
	return &Process{s: s, id: info.ID, info: info}, nil
}

// Process finds a program that was started: by its [tranca.ProcessID], by the
// pid of one that runs, or by "tag=" and its tag, of which the oldest that runs
// is meant. Errors wrap [tranca.ErrNotFound] or [tranca.ErrGone].
func (s *Sandbox) Process(ctx context.Context, selector string) (*Process, error) {
	var info tranca.ProcessInfo
	if err := s.c.get(ctx, &info, nil, api.RouteProcess, string(s.id), selector); err != nil {
		return nil, err
	}
	return s.process(info)
}

// Processes lists what was started, oldest first, with the last ones that have
// ended. A tag that is not empty lists only those.
func (s *Sandbox) Processes(ctx context.Context, tag string) ([]tranca.ProcessInfo, error) {
	q := newCall(api.RouteProcesses, string(s.id)).again()
	if tag != "" {
		q.with("tag", tag)
	}
	var list api.ProcessList
	if err := s.c.do(ctx, q, &list); err != nil {
		return nil, err
	}
	return list.Processes, nil
}
