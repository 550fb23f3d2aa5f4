package mcp

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"tranca/internal/terminal"
)

// Pace of progress notifications, and how much of the output goes with one.
const (
	progressEvery = time.Second
	progressTail  = 512 // bytes
	progressLines = 3
)

// progress tells the client how a run gets on, where it asked for that. All
// its methods work on nil, which tells nothing.
type progress struct {
	session *mcp.ServerSession
	token   any
	began   time.Time
	life    context.Context
	cancel  context.CancelFunc
	done    chan struct{}
	wake    chan struct{}

	mu      sync.Mutex
	started bool
	written int64
	last    []byte // of both streams as they came
}

// report starts to tell, or returns nil where the client does not ask for it.
func (s *Server) report(ctx context.Context, req *mcp.CallToolRequest) *progress {
	if req == nil || req.Params == nil || req.Session == nil || req.Params.GetProgressToken() == nil {
		return nil
	}
	p := &progress{
		session: req.Session, token: req.Params.GetProgressToken(), began: time.Now(),
		life: s.life, done: make(chan struct{}), wake: make(chan struct{}, 1),
	}
	ctx, p.cancel = context.WithCancel(ctx)
	go p.run(ctx)
	return p
}

// run tells once at the start, once when the program starts, and then at each
// tick.
func (p *progress) run(ctx context.Context) {
	defer close(p.done)
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		if p.session.NotifyProgress(ctx, p.params()) != nil {
			return
		}
		select {
		case <-tick.C:
		case <-p.wake:
		case <-ctx.Done():
			return
		}
	}
}

// stop ends the telling: nothing may come after the call's result. A client
// that reads nothing is not waited for once the server ends.
func (p *progress) stop() {
	if p == nil {
		return
	}
	p.cancel()
	select {
	case <-p.done:
	case <-p.life.Done():
	}
}

// start says that the wait in the queue is over.
func (p *progress) start() {
	if p == nil {
		return
	}
	p.mu.Lock()
	p.started = true
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Write takes output as it comes, from both streams at once.
func (p *progress) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.written += int64(len(b))
	p.last = append(p.last, tail(b, progressTail)...)
	if drop := len(p.last) - progressTail; drop > 0 {
		p.last = append(p.last[:0], p.last[drop:]...)
	}
	return len(b), nil
}

func (p *progress) params() *mcp.ProgressNotificationParams {
	p.mu.Lock()
	defer p.mu.Unlock()
	elapsed := time.Since(p.began)
	words := "waiting for its turn"
	if p.started {
		words = "running"
	}
	if elapsed >= time.Second {
		words += " for " + duration(elapsed.Truncate(time.Second))
	}
	if p.written > 0 {
		words += fmt.Sprintf("; %d bytes of output; the last of it:\n%s", p.written, lastLines(p.last))
	}
	// The value must grow with each notification; nobody knows a total.
	return &mcp.ProgressNotificationParams{ProgressToken: p.token, Progress: elapsed.Seconds(), Message: words}
}

// lastLines returns the end of output fit for a person's screen: clients show
// it as it stands.
func lastLines(b []byte) string {
	lines := bytes.Split(bytes.TrimRight(b, "\r\n"), []byte("\n"))
	lines = lines[max(0, len(lines)-progressLines):]
	var out strings.Builder
	visible := terminal.NewFilter(&out)
	_, err := visible.Write([]byte(valid(string(bytes.Join(lines, []byte("\n"))))))
	if err != nil || visible.Close() != nil {
		return ""
	}
	return out.String()
}
