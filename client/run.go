package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"tranca"
	"tranca/internal/api"
)

const (
	// cancelPatience is how long the server may take to take note of a
	// cancelled run, and closePatience to end it after that.
	cancelPatience = 3 * time.Second
	closePatience  = 45 * time.Second
	// maxOutput bounds each stream of a run's result, whatever a server sends.
	maxOutput = 256 << 20
)

// Run runs one request in a fresh sandbox; see [tranca.Runner]. Standard input
// goes to the program as it is read, and output comes as it is written.
//
// Output is held once, for the result, and live copies are made from there: a
// writer that takes nothing for two seconds after the run has ended is left
// behind.
//
// If ctx ends, the run is ended on the server, and Run waits for its result,
// which says [tranca.EndClosed]. Where the server doesn't answer within some
// seconds, or nothing had run, the error is that of ctx.
func (c *Client) Run(ctx context.Context, req tranca.Request) (*tranca.Result, error) {
	return c.run(ctx, req, api.RouteRun)
}

func (c *Client) run(ctx context.Context, req tranca.Request, pattern string, names ...string) (*tranca.Result, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	// The request lives on when ctx ends: its answer is the result.
	r := &running{c: c, key: newKey(), caller: ctx}
	var live context.Context
	live, r.abandon = context.WithCancelCause(context.WithoutCancel(ctx))
	var cancelling sync.WaitGroup
	cancelling.Add(1)
	stop := context.AfterFunc(ctx, func() {
		defer cancelling.Done()
		r.cancel(live, context.Cause(ctx))
	})
	defer func() {
		r.abandon(nil)
		if stop() {
			cancelling.Done()
		}
		cancelling.Wait()
	}()
	res, err := r.do(live, req, pattern, names)
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return res, err
}

// running is a run that is under way.
type running struct {
	c       *Client
	key     string
	caller  context.Context
	abandon context.CancelCauseFunc
	// begun says that the server has begun to answer.
	begun atomic.Bool
}

// cancel ends the run on the server, and the request itself where the server
// doesn't answer.
func (r *running) cancel(live context.Context, why error) {
	ctx, done := context.WithTimeout(live, cancelPatience)
	defer done()
	err := r.c.do(ctx, r.call(api.RouteCancelRun).again(), nil)
	for !r.begun.Load() && errors.Is(err, tranca.ErrNotFound) && sleep(ctx, firstPause) == nil {
		err = r.c.do(ctx, r.call(api.RouteCancelRun).again(), nil) // it may be on its way
	}
	if err == nil || errors.Is(err, tranca.ErrNotFound) && r.begun.Load() {
		// Not found is a run that has ended by itself: its result is coming.
		_ = sleep(live, closePatience)
	}
	r.abandon(why)
}

func (r *running) call(pattern string, names ...string) *call {
	q := newCall(pattern, names...)
	q.key = r.key
	return q
}

// do sends the request and takes what comes.
func (r *running) do(ctx context.Context, req tranca.Request, pattern string, names []string) (*tranca.Result, error) {
	q := r.call(pattern, names...)
	q.accept, q.contentType, q.patience = api.TypeFrames, api.TypeFrames, forever
	q.repeatable = req.Stdin == nil
	head, size, err := api.RunBody(req)
	if err != nil {
		return nil, err
	}
	q.body = func() (io.Reader, int64) {
		if req.Stdin == nil {
			return head(), size
		}
		return io.MultiReader(head(), newStdinFrames(req.Stdin)), -1
	}
	resp, err := r.c.send(ctx, q)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	r.begun.Store(true)
	return r.receive(ctx, resp.Body, req)
}

// receive takes what comes, and lets live copies come to their end.
func (r *running) receive(ctx context.Context, body io.Reader, req tranca.Request) (*tranca.Result, error) {
	out, errs := newTee(req.Stdout), newTee(req.Stderr)
	res, err := r.events(ctx, bufio.NewReaderSize(body, connBuffer), out, errs)
	grace := liveGrace
	if err != nil || r.caller.Err() != nil {
		grace = hurriedGrace
	}
	for i, t := range []*tee{out, errs} {
		if missed := t.finish(grace); missed > 0 && res != nil {
			res.Notes = append(res.Notes, fmt.Sprintf(
				"the reader of the live %s was left behind: it did not take the last %d bytes; they are in the result",
				[]string{"stdout", "stderr"}[i], missed))
		}
	}
	return res, err
}

// events takes the events of the run up to its result.
func (r *running) events(ctx context.Context, in io.Reader, out, errs *tee) (*tranca.Result, error) {
	var buf []byte
	for {
		ev, data, err := api.ReadFrame(in, &buf)
		switch {
		case errors.Is(err, tranca.ErrProtocol):
			return nil, err
		case err != nil:
			return nil, r.c.broken(ctx, unexpected(err))
		case ev.Type == api.EventStdout:
			err = out.add(data)
		case ev.Type == api.EventStderr:
			err = errs.add(data)
		case ev.Type == api.EventResult:
			return result(ev, out, errs)
		case ev.Type == api.EventError:
			return nil, problem(ev)
		}
		if err != nil {
			return nil, err
		}
	}
}

// unexpected is an end that comes before the last event.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// problem is the error that an event holds.
func problem(ev api.Event) error {
	if ev.Error == nil {
		return fmt.Errorf("%w: an event of an error without one", tranca.ErrProtocol)
	}
	return &Error{Problem: *ev.Error}
}

// result puts together what the event says and the output that came before it.
func result(ev api.Event, out, errs *tee) (*tranca.Result, error) {
	stdout, ok1 := out.first(ev.StdoutBytes)
	stderr, ok2 := errs.first(ev.StderrBytes)
	if ev.Result == nil || !ok1 || !ok2 {
		return nil, fmt.Errorf("%w: a result that does not fit the output before it", tranca.ErrProtocol)
	}
	res := ev.Result
	res.Stdout, res.Stderr = stdout, stderr
	if ev.Limits != nil {
		res.Limits = ev.Limits.Limits()
	}
	return res, nil
}

// stdinFrames puts what a reader gives into frames of standard input. A reader
// that fails ends it.
type stdinFrames struct {
	r           io.Reader
	last, ended bool
}

// newStdinFrames reads r in pieces that are put into frames where they are.
func newStdinFrames(r io.Reader) io.Reader {
	return bufio.NewReaderSize(&stdinFrames{r: r}, connBuffer)
}

// Read implements [io.Reader] for the buffer above, which is large enough.
func (s *stdinFrames) Read(p []byte) (int, error) {
	switch {
	case s.ended:
		return 0, io.EOF
	case s.last:
		s.ended = true
		api.PutStdinHead(p, 0)
		return api.StdinHead, nil
	}
	n, err := s.r.Read(p[api.StdinHead:])
	s.last = err != nil
	if n == 0 {
		return 0, nil // no frame: an empty one is the end
	}
	api.PutStdinHead(p, n)
	return api.StdinHead + n, nil
}
