package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tranca"
	"tranca/internal/api"
)

// Error is what the server said of an error: a stable code, what was wrong,
// what to do, and the id of the request in the server's log. It wraps the class
// of package tranca that the code stands for.
type Error = api.Error

// call is one request.
type call struct {
	pattern string
	names   []string
	query   url.Values
	// body makes the body anew for each try, with its size, or -1.
	body        func() (io.Reader, int64)
	contentType string
	accept      string
	key         string
	// upgrade asks for another protocol.
	upgrade string
	// repeatable says that a second request does no more than the first.
	repeatable bool
	// patience is how long an answer may take to begin.
	patience time.Duration
	// release frees what an upgraded call holds.
	release context.CancelCauseFunc
	err     error
}

const (
	// forever leaves it to the caller's context.
	forever = time.Duration(0)
	// patience is how long a server may take for what it needs not wait for.
	patience = 60 * time.Second
	// maxTries and firstPause bound repetitions.
	maxTries   = 3
	firstPause = 50 * time.Millisecond
	// maxAnswer bounds an answer in JSON, maxProblem a problem.
	maxAnswer  = 128 << 20
	maxProblem = 1 << 20
)

func newCall(pattern string, names ...string) *call {
	return &call{pattern: pattern, names: names, patience: patience, accept: api.TypeJSON}
}

// json gives the call a body.
func (q *call) json(v any) *call {
	b, err := json.Marshal(v)
	q.err, q.contentType = err, api.TypeJSON
	q.body = func() (io.Reader, int64) { return bytes.NewReader(b), int64(len(b)) }
	return q
}

// with sets the query.
func (q *call) with(pairs ...string) *call {
	q.query = url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		q.query.Set(pairs[i], pairs[i+1])
	}
	return q
}

// again says that the call may be repeated.
func (q *call) again() *call {
	q.repeatable = true
	return q
}

// newKey returns a key that nobody else has.
func newKey() string { return rand.Text() }

// get asks for JSON.
func (c *Client) get(ctx context.Context, out any, query url.Values, pattern string, names ...string) error {
	q := newCall(pattern, names...).again()
	q.query = query
	return c.do(ctx, q, out)
}

// do sends a call and reads an answer in JSON into out, or none where out is
// nil.
func (c *Client) do(ctx context.Context, q *call, out any) error {
	resp, err := c.send(ctx, q)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return c.broken(ctx, err)
	case out == nil:
		return nil
	case len(b) > maxAnswer:
		return fmt.Errorf("%w: an answer of more than %d bytes", tranca.ErrProtocol, maxAnswer)
	}
	if err := json.Unmarshal(b, out); err != nil {
		return fmt.Errorf("%w: %s answered with what can't be read: %w", tranca.ErrProtocol, c.place, err)
	}
	return nil
}

// send sends a call, again where that is harmless, and returns the answer where
// it says that all is well. Its body must be closed.
func (c *Client) send(ctx context.Context, q *call) (*http.Response, error) {
	pause := firstPause
	for try := 1; ; try++ {
		resp, err := c.once(ctx, q)
		if err == nil {
			return c.checked(ctx, resp, q)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !q.repeatable || try == maxTries || !passing(err) {
			return nil, err
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
		pause *= 4
	}
}

// sleep waits, or returns why it does not.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// passingError is a connection that broke: the next one may not.
type passingError struct{ error }

func (e *passingError) Unwrap() error { return e.error }

func passing(err error) bool {
	var p *passingError
	return errors.As(err, &p)
}

var errSlow = errors.New("no answer has begun in time")

// once sends a call one time.
func (c *Client) once(ctx context.Context, q *call) (*http.Response, error) {
	method, path, err := fill(q.pattern, q.names...)
	if err = errors.Join(q.err, err); err != nil {
		return nil, err
	}
	own, cancel := context.WithCancelCause(ctx)
	req, err := c.request(own, q, method, path)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	if q.patience != forever {
		timer := time.AfterFunc(q.patience, func() { cancel(errSlow) })
		defer timer.Stop()
	}
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		slow := context.Cause(own) == errSlow
		cancel(nil)
		if slow {
			return nil, &passingError{fmt.Errorf("%w: %s: %w", tranca.ErrUnavailable, c.place, errSlow)}
		}
		return nil, c.broken(ctx, err)
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		q.release = cancel // the body is the connection now, whole
	} else {
		resp.Body = &answer{resp.Body, cancel}
	}
	return resp, nil
}

// answer is the body of an answer; closing it ends the request.
type answer struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

func (a *answer) Close() error {
	err := a.ReadCloser.Close()
	a.cancel(nil)
	return err
}

func (c *Client) request(ctx context.Context, q *call, method, path string) (*http.Request, error) {
	var body io.Reader
	var size int64
	if q.body != nil {
		body, size = q.body()
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", tranca.ErrInvalid, err)
	}
	req.ContentLength = size
	req.URL.RawQuery = q.query.Encode()
	for name, value := range map[string]string{
		"Accept": q.accept, "Content-Type": q.contentType,
		api.HeaderIdempotencyKey: q.key, "Upgrade": q.upgrade,
	} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	if q.upgrade != "" {
		req.Header.Set("Connection", "Upgrade")
	}
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	return req, nil
}

// broken says that a connection could not be made, or broke.
func (c *Client) broken(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return fmt.Errorf("%w: no server can be reached at %s (%w); %s", tranca.ErrUnavailable, c.place, op.Err, c.remedy())
	}
	return &passingError{fmt.Errorf("%w: the connection to %s broke: %w", tranca.ErrUnavailable, c.place, err)}
}

// remedy says what to do where no server answers.
func (c *Client) remedy() string {
	switch {
	case strings.Contains(c.place, "://"):
		return "see that the address is right and a server listens there: tranca serve --listen"
	case strings.HasPrefix(c.place, "/") && c.place != DefaultSocket():
		return "start one with: tranca serve --socket " + c.place
	}
	return "start one with: tranca serve"
}

// checked returns the answer if it says that all is well, else the error that
// it is.
func (c *Client) checked(ctx context.Context, resp *http.Response, q *call) (*http.Response, error) {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	upgraded := resp.StatusCode == http.StatusSwitchingProtocols
	switch {
	case upgraded && q.upgrade != "" && resp.Header.Get("Upgrade") == q.upgrade:
		return resp, nil
	case resp.StatusCode == http.StatusNoContent:
		if q.accept == api.TypeJSON { // else there is something to be had
			return resp, nil
		}
	case resp.StatusCode/100 == 2 && kind == q.accept && q.upgrade == "":
		return resp, nil
	}
	defer resp.Body.Close()
	if kind != api.TypeProblem || upgraded {
		return nil, c.foreign(resp, kind)
	}
	var p api.Problem
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxProblem))
	if err != nil {
		return nil, c.broken(ctx, err)
	}
	if err := json.Unmarshal(b, &p); err != nil || p.Code == "" {
		return nil, c.foreign(resp, kind)
	}
	return nil, &Error{Problem: p}
}

// foreign is the error of an answer that no tranca server gives.
func (c *Client) foreign(resp *http.Response, kind string) error {
	class := tranca.ErrProtocol
	if resp.StatusCode >= http.StatusBadGateway && resp.StatusCode <= http.StatusGatewayTimeout {
		class = tranca.ErrUnavailable
	}
	return fmt.Errorf("%w: %s answered with status %d and %q, as no tranca server does", class, c.place, resp.StatusCode, kind)
}
