package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"

	"tranca"
	"tranca/internal/api"
	"tranca/internal/engine"
)

var errClientGone = fmt.Errorf("%w: the client has gone", tranca.ErrClosed)

func runFresh(c *call) error {
	return c.run("", c.s.cfg.Engine.Run)
}

func runInside(c *call) error {
	s, err := c.session()
	if err != nil {
		return err
	}
	return c.run(s.ID(), s.Run)
}

// run reads a request and runs it, or finds what an earlier one with the same
// key became.
func (c *call) run(id tranca.ID, do func(context.Context, tranca.Request) (*tranca.Result, error)) error {
	req, err := c.readRun()
	if err != nil {
		return err
	}
	if id != "" && req.Profile != "" {
		return fmt.Errorf("%w: profile: the sandbox has its policy already", tranca.ErrInvalid)
	}
	c.logRun(req)
	once, err := c.once()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(once.ctx)
	defer cancel(nil)
	r := c.newRunning(func() { once.gone(cancel) })
	if !once.first {
		kept, err := once.wait(c.ctx())
		if err != nil {
			return r.failed(err)
		}
		return r.ended(kept.(*tranca.Result))
	}
	res, err := do(r.prepare(ctx, &req), req)
	if spoiled := r.spoiled(); spoiled != nil {
		res, err = nil, spoiled
	}
	if err != nil {
		once.done(nil, 0, err)
		return r.failed(err)
	}
	once.done(res, int64(len(res.Stdout)+len(res.Stderr))+4096, nil)
	return r.ended(res)
}

// readRun reads the request in either form.
func (c *call) readRun() (tranca.Request, error) {
	c.hashBody()
	if c.frames() {
		c.body.remember()
		req, err := api.ReadRun(c.body)
		if err != nil {
			if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
				err = fmt.Errorf("%w: the body ends within the request", tranca.ErrInvalid)
			}
			return req, err
		}
		c.body.wait()
		if c.body.whole() {
			// Nothing comes; and the server can listen for the client's end.
			_, _ = c.body.Read(make([]byte, 1))
			req.Stdin = nil
		}
		return req, nil
	}
	var in api.RunRequest
	if err := c.decode(&in); err != nil {
		return tranca.Request{}, err
	}
	if in.CodeBytes != 0 {
		return tranca.Request{}, fmt.Errorf("%w: code_bytes: code follows only in a body of type %s", tranca.ErrInvalid, api.TypeFrames)
	}
	return in.Request()
}

func (c *call) logRun(req tranca.Request) {
	if c.s.cfg.LogCode {
		c.attrs = append(c.attrs, slog.String("language", req.Language), slog.String("program", req.Code),
			slog.Any("command", req.Command), slog.Any("args", req.Args))
	}
}

// running is a run and who is told of it.
type running struct {
	c    *call
	st   *stream // nil where the whole result is wanted
	gone func()
	once sync.Once
	// begun is closed when it was told which sandbox it is, before which no
	// output is told; over when that will never be.
	begun, over chan struct{}

	out, err live
	stdin    *stdin
}

func (c *call) newRunning(gone func()) *running {
	r := &running{c: c, gone: gone, begun: make(chan struct{}), over: make(chan struct{})}
	r.out, r.err = live{r: r}, live{r: r, stderr: true}
	if media := eventMedia(c.r.Header.Values("Accept")); media != "" {
		r.st = c.newStream(media, false, gone)
	}
	return r
}

// prepare ties a request to the answer.
func (r *running) prepare(ctx context.Context, req *tranca.Request) context.Context {
	if r.st != nil {
		req.Stdout, req.Stderr = &r.out, &r.err
	}
	if req.Stdin != nil && r.c.frames() {
		// What is typed comes while output goes. The connection isn't used
		// again: net/http may meet the end of such a body behind the answer,
		// and then panics over its own reader (cli.TestScriptsOnAServer).
		_ = r.c.w.rc.EnableFullDuplex()
		r.c.w.Header().Set("Connection", "close")
		r.stdin = &stdin{Reader: req.Stdin, gone: r.gone}
		req.Stdin = r.stdin
	}
	return engine.Observe(ctx, func(e tranca.Event) {
		if e.Kind == tranca.EventStarted && r.st != nil {
			r.started(e.ID)
		}
	})
}

// started says once which sandbox it is.
func (r *running) started(id tranca.ID) {
	r.once.Do(func() {
		r.c.sandbox = id
		_ = r.st.Event(api.Event{Type: api.EventStarted, ID: id})
		close(r.begun)
	})
}

func (r *running) failed(err error) error {
	if r.st == nil {
		return err
	}
	close(r.over)
	r.out.seal()
	r.err.seal()
	return r.st.end(err)
}

// ended tells the result. What the live copies did not take in time goes
// before it.
func (r *running) ended(res *tranca.Result) error {
	r.c.attrs = append(r.c.attrs, slog.String("reason", string(res.Exit.Reason)))
	if r.st == nil {
		r.c.sandbox = res.ID
		return r.c.json(200, res)
	}
	r.started(res.ID)
	_ = r.st.Output(false, res.Stdout[min(r.out.seal(), len(res.Stdout)):])
	_ = r.st.Output(true, res.Stderr[min(r.err.seal(), len(res.Stderr)):])
	short, limits := *res, api.LimitsOf(res.Limits)
	short.Stdout, short.Stderr = nil, nil
	r.st.close()
	_ = r.st.Event(api.Event{
		Type: api.EventResult, Result: &short, Limits: &limits,
		StdoutBytes: int64(len(res.Stdout)), StderrBytes: int64(len(res.Stderr)),
	})
	return nil
}

// spoiled returns why standard input could not be read, where that is the
// client's fault and not its end.
func (r *running) spoiled() error {
	if r.stdin == nil {
		return nil
	}
	return r.stdin.spoiled()
}

// live takes one output stream as it comes.
type live struct {
	r      *running
	stderr bool

	mu     sync.Mutex
	sent   int
	sealed bool
}

func (l *live) Write(p []byte) (int, error) {
	select {
	case <-l.r.begun:
	case <-l.r.over:
		return 0, io.ErrClosedPipe
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sealed {
		return 0, io.ErrClosedPipe
	}
	if err := l.r.st.Output(l.stderr, p); err != nil {
		return 0, err
	}
	l.sent += len(p)
	return len(p), nil
}

// seal waits for a write that is under way, lets no other come, and returns
// how many bytes were sent.
func (l *live) seal() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sealed = true
	return l.sent
}

// stdin is standard input that comes while the program runs. Where it breaks,
// the client has gone, or sends what nobody understands: both end the run.
type stdin struct {
	io.Reader
	gone func()

	mu  sync.Mutex
	bad error
}

func (s *stdin) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		if errors.Is(err, tranca.ErrInvalid) {
			s.mu.Lock()
			s.bad = err
			s.mu.Unlock()
		}
		s.gone()
	}
	return n, err
}

func (s *stdin) spoiled() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bad
}

func cancelRun(c *call) error {
	if !c.s.answers.cancel(c.r.Header.Get(api.HeaderIdempotencyKey)) {
		return api.Errorf(api.CodeNotFound, "no run with this key is under way")
	}
	return c.none()
}
