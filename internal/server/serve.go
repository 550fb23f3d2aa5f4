package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"tranca"
	"tranca/internal/server/listen"
)

// Bounds of connections.
const (
	headerTime = 10 * time.Second
	idleTime   = 2 * time.Minute
	maxHeader  = 64 << 10
)

// checkEvery is how often the socket's file is looked at; tests look more
// often.
var checkEvery = 5 * time.Second

// checker is a listener whose address can be lost.
type checker interface{ Check() error }

// Serve answers at the listeners until ctx ends or one of them fails, and
// closes them. What only follows is ended then, the calls that are under way
// have so long as grace says to end, and the others are broken off. The engine
// is not closed. The error is nil where ctx has ended.
func (s *Server) Serve(ctx context.Context, grace time.Duration, listeners ...net.Listener) error {
	base, breakOff := context.WithCancel(context.WithoutCancel(ctx))
	defer breakOff()
	h := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeader,
		BaseContext:       func(net.Listener) context.Context { return base },
		ConnContext:       listen.WithPeer,
		ErrorLog:          slog.NewLogLogger(s.cfg.Logger.Handler(), slog.LevelWarn),

		DisableGeneralOptionsHandler: true,
	}
	failed := make(chan error, 2*len(listeners))
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	for _, l := range listeners {
		go func() {
			if err := h.Serve(listen.Limit(l, s.cfg.MaxConnections)); !errors.Is(err, http.ErrServerClosed) {
				failed <- err
			}
		}()
		if c, ok := l.(checker); ok {
			go watchSocket(watching, c, failed)
		}
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
		s.cfg.Logger.Error("the server stops", "error", err)
	}
	s.Close()
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if late := h.Shutdown(ending); late != nil {
		s.cfg.Logger.Warn("calls are broken off", "after", grace.String())
		breakOff()
		err = errors.Join(err, h.Close())
	}
	s.calls.wait()
	return err
}

// tally counts calls that are under way. Unlike a [sync.WaitGroup] it may be
// waited for while further ones begin.
type tally struct {
	mu   sync.Mutex
	n    int
	none sync.Cond
}

func newTally() *tally {
	t := &tally{}
	t.none.L = &t.mu
	return t
}

// begin counts one, until done is called.
func (t *tally) begin() (done func()) {
	t.add(1)
	return func() { t.add(-1) }
}

func (t *tally) add(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n += n; t.n == 0 {
		t.none.Broadcast()
	}
}

// wait returns when none is under way.
func (t *tally) wait() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.n > 0 {
		t.none.Wait()
	}
}

// watchSocket tells when nobody can reach the socket any more.
func watchSocket(ctx context.Context, c checker, failed chan<- error) {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := c.Check(); errors.Is(err, tranca.ErrGone) {
			failed <- err
			return
		}
	}
}
