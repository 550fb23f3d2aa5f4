package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"tranca/internal/hoststate"
)

type options struct {
	time           time.Duration
	clients, kills int
	seed           uint64
	tranca         string
}

// run is the whole soak.
func (o *options) run(ctx context.Context) error {
	program, err := filepath.Abs(o.tranca)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "soak-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	look := hoststate.Default()
	look.Programs = []string{program}
	look.Self = true
	before, err := hoststate.Take(look)
	if err != nil {
		return err
	}
	seen := &tally{ended: map[string]int{}, failed: map[string]int{}}
	start := time.Now()
	for n := range o.kills + 1 {
		life := &life{
			program: program, socket: filepath.Join(dir, "tranca.sock"), seen: seen,
			rnd: rand.New(rand.NewPCG(o.seed, uint64(n))), clients: o.clients,
			time: o.time / time.Duration(o.kills+1), kill: n < o.kills,
		}
		if err := life.run(ctx); err != nil {
			return fmt.Errorf("server %d: %w", n, err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		fmt.Printf("soak: %3.0f s: server %d has ended: %s\n", time.Since(start).Seconds(), n, seen)
	}
	left, err := hoststate.WaitClean(before, look, 15*time.Second)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("%d things are left on the host:\n\t%s", len(left), strings.Join(left, "\n\t"))
	}
	fmt.Printf("soak: %d clients, %.0f s, server killed %d times; %s: nothing is left\n",
		o.clients, time.Since(start).Seconds(), o.kills, seen)
	return seen.enough()
}

// life is that of one server.
type life struct {
	program, socket string
	seen            *tally
	rnd             *rand.Rand
	clients         int
	time            time.Duration
	kill            bool // with -9, in the midst of it

	server *server
	mu     sync.Mutex
	ending bool
}

func (l *life) run(ctx context.Context) error {
	var err error
	if l.server, err = start(ctx, l.program, l.socket); err != nil {
		return err
	}
	defer l.server.Stop()
	warm, last := min(l.time/4, 10*time.Second), l.time/5
	if !l.kill {
		last = 0
	}
	if err := l.rest(ctx, "warming up", warm); err != nil {
		return err
	}
	before, err := l.server.look()
	if err != nil {
		return err
	}
	if err := l.rest(ctx, "in the midst", l.time-warm-last); err != nil {
		return err
	}
	if err := l.server.grewBeyond(before); err != nil {
		return err
	}
	if !l.kill {
		return l.server.Stop()
	}
	ending, cancel := context.WithTimeout(ctx, last+time.Second)
	defer cancel()
	timer := time.AfterFunc(last/2+time.Duration(l.rnd.Int64N(int64(last/2)+1)), func() {
		l.mu.Lock()
		l.ending = true
		l.mu.Unlock()
		l.server.Kill()
		cancel()
	})
	defer timer.Stop()
	if err := l.busy(ending); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return l.server.died()
}

// rest keeps the clients busy for some time, and returns when all that they
// made has gone.
func (l *life) rest(ctx context.Context, when string, most time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	if err := l.busy(limited); err != nil {
		return fmt.Errorf("%s: %w", when, err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return l.server.clear(ctx)
}

// busy lets clients do things until ctx ends, and kills sandboxes meanwhile.
func (l *life) busy(ctx context.Context) error {
	all, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var working sync.WaitGroup
	for range l.clients {
		rnd := rand.New(rand.NewPCG(l.rnd.Uint64(), 1))
		working.Go(func() {
			for all.Err() == nil {
				if err := l.act(all, rnd); err != nil {
					cancel(err)
				}
			}
		})
	}
	rnd := rand.New(rand.NewPCG(l.rnd.Uint64(), 2))
	working.Go(func() { l.murder(all, rnd) })
	working.Wait()
	if err := context.Cause(all); !errors.Is(err, ctx.Err()) {
		return err
	}
	return nil
}

// murder kills the guest agent of some sandbox now and then.
func (l *life) murder(ctx context.Context, rnd *rand.Rand) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(200+rnd.IntN(1500)) * time.Millisecond):
		}
		if agents := l.server.agents(); len(agents) > 0 {
			victim := agents[rnd.IntN(len(agents))]
			if p, err := os.FindProcess(victim); err == nil && p.Kill() == nil {
				l.seen.end("sandbox killed")
			}
		}
	}
}
