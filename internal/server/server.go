package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"tranca"
	"tranca/internal/engine"
	"tranca/internal/server/listen"
	"tranca/internal/server/route"
)

// Config is what a server is made from. Only Engine is needed.
type Config struct {
	Engine  *engine.Engine
	Version string
	// Key is what those who come by TCP have to know. Without it nobody gets in
	// by TCP.
	Key string
	// Logger takes a line for each request, without anything that code or
	// client said; the default discards it. LogCode lets code, commands and
	// arguments into it.
	Logger  *slog.Logger
	LogCode bool
	// KeepAlive is the silence after which a stream of events says that it is
	// still there; the default is 15 s.
	KeepAlive time.Duration
	// Stall is how long a client may take to send or read nothing of what is
	// due; the default is 60 s.
	Stall time.Duration
	// MaxConnections bounds the open connections; the default is 1024.
	MaxConnections int
	// MaxBodies bounds the bytes of JSON bodies and code in memory at once; the
	// default is 256 MiB.
	MaxBodies int64
	// Linger is how long a run with an idempotency key goes on when nobody
	// waits for it any more; the default is 5 s.
	Linger time.Duration
}

// Server answers requests. Safe for concurrent use.
type Server struct {
	cfg Config
	uid int
	key [sha256.Size]byte
	// fixed are the paths without names in them; the rest is made when it is
	// first needed, since a server within the command answers but one call.
	fixed   map[string]http.Handler
	mux     func() *http.ServeMux
	bodies  budget
	answers *store
	counted *requests

	// stopping ends when the server is about to stop, and ends what only
	// follows: streams of output, watches, ports.
	stopping context.Context
	stop     context.CancelFunc
	calls    *tally
}

// New makes a server. The error wraps [tranca.ErrInvalid].
func New(cfg Config) (*Server, error) {
	if cfg.Engine == nil {
		return nil, fmt.Errorf("%w: a server needs an engine", tranca.ErrInvalid)
	}
	if cfg.Key != "" {
		if _, err := listen.ParseKey([]byte(cfg.Key)); err != nil {
			return nil, err
		}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	cfg.KeepAlive = cmp.Or(cfg.KeepAlive, 15*time.Second)
	cfg.Stall = cmp.Or(cfg.Stall, time.Minute)
	cfg.MaxConnections = cmp.Or(cfg.MaxConnections, 1024)
	cfg.MaxBodies = cmp.Or(cfg.MaxBodies, 256<<20)
	cfg.Linger = cmp.Or(cfg.Linger, 5*time.Second)
	s := &Server{
		cfg: cfg, uid: os.Geteuid(), key: sha256.Sum256([]byte(cfg.Key)),
		fixed: map[string]http.Handler{}, bodies: budget{most: cfg.MaxBodies},
		answers: newStore(time.Now), counted: newRequests(), calls: newTally(),
	}
	s.stopping, s.stop = context.WithCancel(context.Background())
	s.routes()
	return s, nil
}

// routes puts one handler at each path, which knows the path's methods.
func (s *Server) routes() {
	byPath := map[string]methods{}
	for _, r := range route.All() {
		m := byPath[r.Path()]
		if m == nil {
			m = methods{}
			byPath[r.Path()] = m
		}
		m[r.Method()] = target{route: &r, handle: handlers[r.Pattern]}
	}
	for path, m := range byPath {
		if !strings.Contains(path, "{") {
			s.fixed[path] = s.dispatch(m)
		}
	}
	s.mux = sync.OnceValue(func() *http.ServeMux {
		mux := http.NewServeMux()
		for path, m := range byPath {
			mux.Handle(path, s.dispatch(m))
		}
		mux.Handle("/", s.dispatch(nil))
		return mux
	})
}

// find returns what answers a request.
func (s *Server) find(r *http.Request) http.Handler {
	if h := s.fixed[r.URL.Path]; h != nil && r.URL.RawPath == "" {
		return h
	}
	return s.mux()
}

// Local returns the handler for callers within this process, who need no key.
func (s *Server) Local() http.Handler { return s.serve(nil) }

// Handler returns the handler for connections of package listen: who comes by
// the unix socket must be this user or root, everybody else must have the key.
func (s *Server) Handler() http.Handler { return s.serve(s.admit) }

// Close ends what only follows. Requests that are under way go on. Idempotent.
func (s *Server) Close() { s.stop() }
