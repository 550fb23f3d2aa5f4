package hostexec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"tranca"
)

// sandbox is a folder and the programs that were started in it.
type sandbox struct {
	spec tranca.Spec
	dir  string
	root *os.Root

	mu      sync.Mutex
	running map[*process]struct{}
	cpu     time.Duration
	hit     []tranca.LimitHit
	closed  bool
	lost    error
}

func (s *sandbox) ID() tranca.ID { return s.spec.ID }

// Enforcement says what is enforced and nothing more.
func (s *sandbox) Enforcement() []tranca.Enforcement {
	all := slices.Clone(held)
	for i := range all {
		all[i].Status = tranca.StatusEnforced
	}
	return all
}

func (s *sandbox) Files() tranca.Files { return files{s} }

// Usage knows the CPU time of the programs that have ended.
func (s *sandbox) Usage(context.Context) (tranca.Usage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return tranca.Usage{}, s.gone()
	}
	return tranca.Usage{CPU: s.cpu, MemoryPeak: -1, ProcessesPeak: -1, Hit: slices.Clone(s.hit)}, nil
}

func (s *sandbox) gone() error { return fmt.Errorf("%w: sandbox %s", tranca.ErrGone, s.ID()) }

// Start starts a program in a process group of its own.
func (s *sandbox) Start(ctx context.Context, cmd tranca.Command) (tranca.Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := check(cmd); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, s.gone()
	}
	if len(s.running) == 0 {
		s.cpu, s.hit = 0, nil
	}
	p, err := start(s, cmd)
	if err != nil {
		return nil, err
	}
	s.running[p] = struct{}{}
	return p, nil
}

// check refuses what no program can be started with.
func check(cmd tranca.Command) error {
	if len(cmd.Args) == 0 {
		return fmt.Errorf("%w: no program", tranca.ErrInvalid)
	}
	words := append([]string{cmd.Dir}, cmd.Args...)
	for name, value := range cmd.Env {
		if name == "" || strings.Contains(name, "=") {
			return fmt.Errorf("%w: a variable is called %q", tranca.ErrInvalid, name)
		}
		words = append(words, name, value)
	}
	for _, w := range words {
		if strings.IndexByte(w, 0) >= 0 {
			return fmt.Errorf("%w: %q has a NUL byte", tranca.ErrInvalid, w)
		}
	}
	return nil
}

// ended is told by each program.
func (s *sandbox) ended(p *process, cpu time.Duration, exit tranca.Exit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, p)
	s.cpu += cpu
	if exit.Signal == tranca.SIGXFSZ && !slices.Contains(s.hit, tranca.HitFileSize) {
		s.hit = append(s.hit, tranca.HitFileSize)
	}
}

// Kill kills the process group of each program.
func (s *sandbox) Kill(ctx context.Context) error {
	s.mu.Lock()
	var all []*process
	for p := range s.running {
		all = append(all, p)
	}
	s.mu.Unlock()
	for _, p := range all {
		p.kill()
	}
	for _, p := range all {
		select {
		case <-p.done:
		case <-ctx.Done():
			return fmt.Errorf("a program of sandbox %s may be alive: %w", s.ID(), context.Cause(ctx))
		}
	}
	return nil
}

// Close kills what runs and removes the folder.
func (s *sandbox) Close(ctx context.Context) error {
	s.mu.Lock()
	was := s.closed
	s.closed = true
	s.mu.Unlock()
	if err := s.Kill(ctx); err != nil {
		return err
	}
	if !was {
		s.lost = errors.Join(s.root.Close(), os.RemoveAll(s.dir))
	}
	return s.lost
}
