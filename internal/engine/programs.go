package engine

import (
	"context"
	"fmt"
	"time"

	"tranca"
)

// signalTime bounds the kill of one of several programs. That is done by the
// guest agent, which the code may have brought to a halt; the next step, the end
// of the sandbox, needs nobody inside.
const signalTime = 10 * time.Second

// programs is what runs in a session. The session's mutex guards it.
type programs struct {
	active  int // being started or running: runs and processes
	runners int // calls that start or run a program, for which the end waits
	starts  int // programs that were ever begun
	// cleaning is closed when a kill of everything is over. Nothing is started
	// meanwhile: it would be killed too.
	cleaning chan struct{}
	// owed says that a run has ended beside others, or a program was stopped:
	// what it may have left is killed as soon as nothing else runs.
	owed bool

	list  []*Process // oldest first
	last  int        // the number of the latest
	ended int        // of those in list
	// endedArgs is what their arguments take, in bytes.
	endedArgs int
}

// program is one place among the programs of a session.
type program struct {
	s      *Session
	begun  int  // which one it is
	beside bool // another one ran when it began
	left   bool // s.mu guards it
}

// join takes a place for a program.
func (s *Session) join(ctx context.Context) (*program, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.gone == nil && s.cleaning != nil {
		wait := s.cleaning
		s.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
		}
		s.mu.Lock()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	switch {
	case s.gone != nil:
		return nil, s.gone
	case s.active >= s.e.cfg.MaxProcesses:
		return nil, fmt.Errorf("%w: %d programs run in the sandbox: wait for one to end, or end one", tranca.ErrBusy, s.active)
	}
	s.active++
	s.runners++
	s.starts++
	return &program{s: s, begun: s.starts, beside: s.active > 1}, nil
}

// settled says that the call which began the program no longer works on it.
func (p *program) settled() {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.s.runners--
	if p.s.runners == 0 {
		p.s.quiet.tell()
	}
}

// shared reports whether another program ran at the same time, so that the
// counters were not this one's alone.
func (p *program) shared() bool {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return p.beside || p.s.starts > p.begun
}

// alone keeps others from starting where this is the only program, until the
// function that it returns is called. A program that has left is not alone: what
// runs then is another one's.
func (p *program) alone() (release func(), ok bool) {
	s := p.s
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.cleaning != nil { // another one's, which has left meanwhile
		wait := s.cleaning
		s.mu.Unlock()
		<-wait
		s.mu.Lock()
	}
	if s.active > 1 || p.left {
		return nil, false
	}
	done := make(chan struct{})
	s.cleaning = done
	return func() {
		s.mu.Lock()
		s.cleaning = nil
		s.mu.Unlock()
		close(done)
	}, true
}

// kill ends the program. Where no other one runs, everything in the sandbox is
// killed. Otherwise that is its process group and itself, should it have left
// the group; more can't be told apart from what belongs to others. proc is nil
// where the program was not started.
func (p *program) kill(ctx context.Context, proc tranca.Process) error {
	if release, ok := p.alone(); ok {
		defer release()
		return p.s.box.kill(ctx)
	}
	if proc == nil {
		return nil // a start that was given up leaves nothing: the sandbox sees to it
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(signalTime, p.s.e.cfg.CloseTimeout))
	defer cancel()
	p.s.owe(true) // what has left the group is killed when nothing else runs
	group := proc.SignalGroup(ctx, tranca.SIGKILL)
	if err := proc.Signal(ctx, tranca.SIGKILL); err != nil && !ended(err) {
		return err
	}
	if group != nil && !ended(group) {
		p.s.e.cfg.Logger.DebugContext(ctx, "a process group was not killed", "id", p.s.ID(), "error", group)
	}
	return nil
}

// leave gives up the place. With sweep, what the program left running is killed
// where no other one runs. Where others do, its group went with it, and what has
// left that is killed when the last of them ends.
func (p *program) leave(ctx context.Context, sweep bool) error {
	s := p.s
	s.mu.Lock()
	sweep = sweep || s.owed && s.active == 1
	s.mu.Unlock()
	var err error
	if sweep {
		err = p.sweep(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active--
	p.left = true
	return err
}

func (p *program) sweep(ctx context.Context) error {
	if release, ok := p.alone(); ok {
		defer release()
		err := p.s.box.kill(ctx)
		p.s.owe(err != nil)
		return err
	}
	p.s.owe(true)
	return nil
}

func (s *Session) owe(owed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owed = owed
}
