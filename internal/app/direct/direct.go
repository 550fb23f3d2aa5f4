package direct

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"sync"
)

// Transport is an [http.RoundTripper] that calls a handler. Safe for concurrent
// use.
//
// A handler's context ends when the request's does, when the answer's body is
// closed, and when it returns. A handler that panics breaks its answer: with
// [http.ErrAbortHandler] as a connection that broke, with anything else as a
// [*PanicError].
type Transport struct {
	handler http.Handler

	mu     sync.Mutex
	closed bool
	busy   sync.WaitGroup
	life   context.Context
	end    context.CancelFunc
}

// New returns a transport to a handler.
func New(h http.Handler) *Transport {
	t := &Transport{handler: h}
	t.life, t.end = context.WithCancel(context.Background())
	return t
}

// PanicError is what a handler panicked with.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("the server panicked: %v\n%s", e.Value, e.Stack)
}

var errClosed = errors.New("the transport was closed")

// Close refuses new requests, ends the contexts of those under way, and
// returns when no handler runs any more. Idempotent.
func (t *Transport) Close() error {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.end()
	t.busy.Wait()
	return nil
}

func (t *Transport) begin() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return errClosed
	}
	t.busy.Add(1)
	return nil
}

// RoundTrip implements [http.RoundTripper]. It returns when the handler has
// begun to answer.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := t.begin(); err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	x := &exchange{req: req, header: http.Header{}, ready: make(chan struct{}), over: make(chan struct{}), cancel: cancel}
	x.out, x.in = io.Pipe()
	untie := context.AfterFunc(t.life, func() { cancel(errClosed) })
	// What is not read when the request is over is read by nobody.
	loose := context.AfterFunc(ctx, func() { x.in.CloseWithError(context.Cause(ctx)) })
	go func() {
		defer t.busy.Done()
		x.serve(t.handler, arriving(ctx, req))
		loose()
		untie()
		cancel(nil)
	}()
	select {
	case <-x.ready:
	case <-req.Context().Done():
	case <-t.life.Done():
	}
	// Of an answer and the request's end, the latter is told.
	switch {
	case req.Context().Err() != nil:
		return nil, context.Cause(req.Context())
	case t.life.Err() != nil:
		return nil, errClosed
	}
	return x.response()
}

// arriving is the request as a server sees it.
func arriving(ctx context.Context, req *http.Request) *http.Request {
	in := req.WithContext(ctx)
	in.Proto, in.ProtoMajor, in.ProtoMinor = "HTTP/1.1", 1, 1
	in.Header = req.Header.Clone()
	if in.Header == nil {
		in.Header = http.Header{}
	}
	if in.Host == "" {
		in.Host = req.URL.Host
	}
	in.RequestURI = req.URL.RequestURI()
	in.URL = &url.URL{Path: req.URL.Path, RawPath: req.URL.RawPath, RawQuery: req.URL.RawQuery}
	switch {
	case req.Body == nil:
		in.Body, in.ContentLength = http.NoBody, 0
	case req.ContentLength == 0 && req.Body != http.NoBody:
		in.ContentLength = -1
	}
	return in
}

// exchange is one request and its answer. It is the handler's
// [http.ResponseWriter].
type exchange struct {
	req    *http.Request
	header http.Header
	cancel context.CancelCauseFunc
	out    *io.PipeReader
	in     *io.PipeWriter

	once   sync.Once
	ready  chan struct{} // closed when status, sent or failed are set
	over   chan struct{} // closed when the handler has returned
	status int
	sent   http.Header
	failed error
	taken  *end // the client's end of a connection that was taken over
}

// serve runs the handler to its end.
func (x *exchange) serve(h http.Handler, in *http.Request) {
	defer close(x.over)
	defer in.Body.Close()
	defer func() {
		err := broke(recover())
		if err == nil {
			// An answer that was cut short must not look whole.
			err = context.Cause(in.Context())
		}
		x.once.Do(func() {
			x.failed = err
			x.begin(http.StatusOK)
		})
		x.in.CloseWithError(err)
	}()
	h.ServeHTTP(x, in)
}

// broke turns what was recovered into the error that the client sees.
func broke(p any) error {
	switch {
	case p == nil:
		return nil
	case p == http.ErrAbortHandler: //nolint:errorlint // it is the value itself
		return io.ErrUnexpectedEOF
	}
	return &PanicError{Value: p, Stack: debug.Stack()}
}

func (x *exchange) begin(status int) {
	x.status, x.sent = status, x.header.Clone()
	close(x.ready)
}

// Header implements [http.ResponseWriter].
func (x *exchange) Header() http.Header { return x.header }

// WriteHeader implements [http.ResponseWriter].
// Answers that only go before the real one are passed over.
func (x *exchange) WriteHeader(status int) {
	if status >= http.StatusOK || status == http.StatusSwitchingProtocols {
		x.once.Do(func() { x.begin(status) })
	}
}

// Write implements [http.ResponseWriter]. It returns when all was read.
func (x *exchange) Write(p []byte) (int, error) {
	x.WriteHeader(http.StatusOK)
	if !bodied(x.status) {
		return 0, http.ErrBodyNotAllowed
	}
	return x.in.Write(p)
}

func bodied(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// Flush implements [http.Flusher]. Nothing is ever held back.
func (x *exchange) Flush() { x.WriteHeader(http.StatusOK) }

// FlushError is what [http.ResponseController] looks for.
func (x *exchange) FlushError() error {
	x.Flush()
	return nil
}

// EnableFullDuplex is what [http.ResponseController] looks for. It always is.
func (x *exchange) EnableFullDuplex() error { return nil }

// response is the answer, as far as it has come.
func (x *exchange) response() (*http.Response, error) {
	if x.taken != nil {
		return x.raw()
	}
	if x.failed != nil {
		return nil, x.failed
	}
	resp := &http.Response{
		StatusCode: x.status, Status: strconv.Itoa(x.status) + " " + http.StatusText(x.status),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: x.sent, ContentLength: -1, Request: x.req,
		Body: &body{x},
	}
	if n, err := strconv.ParseInt(x.sent.Get("Content-Length"), 10, 64); err == nil && n >= 0 {
		resp.ContentLength = n
	}
	return resp, nil
}

// body is the body of an answer.
type body struct{ x *exchange }

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) { return b.x.out.Read(p) }

// Close implements [io.Closer]. It ends the handler's context.
func (b *body) Close() error {
	err := b.x.out.CloseWithError(io.ErrClosedPipe)
	b.x.cancel(context.Canceled)
	return err
}
