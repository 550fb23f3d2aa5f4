package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"tranca"
	"tranca/internal/api"
	"tranca/internal/engine"
	"tranca/internal/server/route"
)

// drainTime bounds how long the rest of a body that nobody wants is waited for.
const drainTime = 5 * time.Second

// call is one request on its way. It belongs to one goroutine.
type call struct {
	s       *Server
	route   *route.Route // nil where there is none
	w       *answer
	r       *http.Request
	id      string
	query   query
	body    *body
	media   string // the body's type, where it has one
	sandbox tranca.ID
	// code is what went wrong, or empty.
	code  api.Code
	attrs []slog.Attr
}

type handler func(*call) error

type target struct {
	route  *route.Route
	handle handler
}

// methods are the calls at one path.
type methods map[string]target

// allow lists the methods, for the header of that name.
func (m methods) allow() string {
	return strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}

type callKey struct{}

// serve is the outermost handler: it gives the request its id, lets it in or
// not, and catches what goes wrong.
func (s *Server) serve(admit func(*http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer s.calls.begin()()
		started := time.Now()
		c := &call{s: s, id: "r" + strings.ToLower(rand.Text())[:20]}
		c.w = newAnswer(w, s.cfg.Stall)
		c.r = r.WithContext(context.WithValue(r.Context(), callKey{}, c))
		c.body = newBody(c.r, c.w.rc, s.cfg.Stall, &s.bodies)
		c.r.Body = c.body
		h := w.Header()
		h.Set(api.HeaderRequestID, c.id)
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		defer c.end(started)
		if admit != nil {
			if err := admit(r); err != nil {
				h.Set("Connection", "close")
				c.fail(err)
				return
			}
		}
		if p := r.URL.Path; !strings.HasPrefix(p, "/") || p != "/" && path.Clean(p) != p || r.URL.RawPath != "" && path.Clean(r.URL.RawPath) != r.URL.RawPath {
			// The mux would send the client to another address.
			c.fail(noSuchPath())
			return
		}
		s.find(c.r).ServeHTTP(c.w, c.r)
	})
}

func noSuchPath() error {
	return api.Errorf(api.CodeNotFound, "there is no call at this path; GET /v1/openapi.json lists those that there are")
}

// dispatch returns what answers at one path.
func (s *Server) dispatch(m methods) http.Handler {
	return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		c := r.Context().Value(callKey{}).(*call)
		c.r = r // with what the mux found in the path
		t, ok := m[r.Method]
		switch {
		case m == nil:
			c.fail(noSuchPath())
			return
		case !ok:
			c.w.Header().Set("Allow", m.allow())
			c.fail(api.Errorf(api.CodeMethod, "the path takes %s, not %.20q", m.allow(), r.Method))
			return
		}
		c.route = t.route
		if err := c.check(); err != nil {
			c.fail(err)
			return
		}
		if err := t.handle(c); err != nil {
			c.fail(err)
		}
	})
}

// check reads what is common to all calls: query, media type, and that there
// is no body where none is taken.
func (c *call) check() (err error) {
	if c.query, err = parseQuery(c.r.URL.RawQuery, c.route.Query); err != nil {
		return err
	}
	if err := c.checkKeyHeader(); err != nil {
		return err
	}
	return c.checkMedia()
}

// end logs the call, and answers for one that broke.
func (c *call) end(started time.Time) {
	if p := recover(); p != nil {
		if p == http.ErrAbortHandler { //nolint:errorlint // it is the value itself
			c.log(started)
			c.body.free()
			panic(p)
		}
		c.s.cfg.Logger.LogAttrs(c.r.Context(), slog.LevelError, "panic", slog.String("request_id", c.id), slog.String("stack", string(debug.Stack())))
		defer c.body.free()
		if c.w.began || c.w.hijacked {
			c.log(started)
			panic(http.ErrAbortHandler)
		}
		c.problem(api.NewProblem(api.CodeInternal, "the call broke"))
	}
	if !c.w.hijacked {
		c.body.leave()
	}
	c.body.free()
	c.log(started)
}

// fail answers with a problem. Where the answer has begun already, the
// connection is broken, so that nobody takes a part for the whole.
func (c *call) fail(err error) {
	p := c.problemOf(err)
	c.code = p.Code
	if p.Code == api.CodeInternal {
		c.attrs = append(c.attrs, slog.String("error", err.Error()))
	}
	if c.w.hijacked {
		return
	}
	if c.w.began {
		panic(http.ErrAbortHandler)
	}
	c.problem(p)
}

// problemOf returns the problem that an error is. What the body said of its
// own failure is the cause of whatever came of it.
func (c *call) problemOf(err error) api.Problem {
	var own *api.Error
	if fault := c.body.fault(); fault != nil && !errors.As(err, &own) {
		err = fault
	}
	p := api.ProblemOf(err)
	p.RequestID = c.id
	return p
}

func (c *call) problem(p api.Problem) {
	p.RequestID = c.id
	h := c.w.Header()
	for _, name := range []string{"Content-Length", "Location"} {
		h.Del(name)
	}
	switch p.Status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", "Bearer")
	case http.StatusTooManyRequests:
		h.Set("Retry-After", "1")
	}
	c.write(p.Status, api.TypeProblem, p)
}

// json answers with a value.
func (c *call) json(status int, v any) error {
	c.write(status, api.TypeJSON, v)
	return nil
}

func (c *call) write(status int, media string, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		c.s.cfg.Logger.Error("an answer can't be written", "request_id", c.id, "error", err)
		panic(http.ErrAbortHandler)
	}
	c.bytes(status, media, append(b, '\n'))
}

func (c *call) bytes(status int, media string, b []byte) {
	h := c.w.Header()
	h.Set("Content-Type", media)
	h.Set("Content-Length", strconv.Itoa(len(b)))
	c.body.leave() // before its rest is looked at, to write the header
	c.w.WriteHeader(status)
	_, _ = c.w.Write(b) // a client that has gone reads nothing
}

// none answers that it was done.
func (c *call) none() error {
	c.body.leave()
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// ctx is the request's: it ends when the client goes away.
func (c *call) ctx() context.Context { return c.r.Context() }

// until is ctx, and ends too when the server is about to stop.
func (c *call) until() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(c.ctx())
	untie := context.AfterFunc(c.s.stopping, func() { cancel(errStopping()) })
	return ctx, func() { untie(); cancel(nil) }
}

func errStopping() error {
	return api.Errorf(api.CodeUnavailable, "the server is stopping")
}

// session finds the sandbox that the path names.
func (c *call) session() (*engine.Session, error) {
	s, err := c.s.cfg.Engine.Session(c.ctx(), tranca.ID(c.r.PathValue("id")))
	if err != nil {
		return nil, err
	}
	c.sandbox = s.ID()
	return s, nil
}

// log writes a line of the call. What code or client said is not in it.
func (c *call) log(started time.Time) {
	took := time.Since(started)
	name := "none"
	if c.route != nil {
		name = c.route.Name
	}
	c.s.counted.add(name, c.w.status, took)
	attrs := append([]slog.Attr{
		slog.String("request_id", c.id), slog.String("call", name), slog.Int("status", c.w.status),
		slog.Int64("took_us", took.Microseconds()), slog.Int64("read", c.body.n), slog.Int64("written", c.w.n),
	}, c.attrs...)
	if c.sandbox != "" {
		attrs = append(attrs, slog.String("sandbox", string(c.sandbox)))
	}
	if c.code != "" {
		attrs = append(attrs, slog.String("code", string(c.code)))
	}
	level := slog.LevelInfo
	if name == "health" || name == "metrics" {
		level = slog.LevelDebug
	}
	if c.code == api.CodeInternal {
		level = slog.LevelError
	}
	c.s.cfg.Logger.LogAttrs(context.WithoutCancel(c.ctx()), level, "request", attrs...)
}
