package host

import (
	"context"
	"fmt"

	"tranca"
)

// spell is the time from one Begin of the machine to the next: at least one
// program runs in it, and what the machine counts is the sum of all of them.
// A limit that ends programs ends the spell.
type spell struct {
	limited chan struct{} // closed when such a limit was told
	reason  tranca.Reason // set before limited is closed
	several bool          // more than one program was started; sb.mu guards it
}

// programs is what runs in a sandbox, guarded by its mutex.
type programs struct {
	running map[*process]struct{} // those that are being started as well
	spell   *spell
	// beginning says that a Start prepares the machine for a spell.
	beginning bool
	// killing counts those who kill all programs at this moment.
	killing int
	// last is what was counted at the end of the program that ended last.
	last *seen
	// changed is closed when a Start that waits should look again; nil where
	// none waits.
	changed chan struct{}
}

// settled reports whether a program may join the others. Not while a kill is
// under way or what it reaches is still dying: it would be killed with them, or
// live on beyond a limit that is told once only.
func (ps *programs) settled() bool {
	if ps.beginning || ps.killing > 0 {
		return false
	}
	for p := range ps.running {
		if p.killed || p.spell.reason != "" {
			return false
		}
	}
	return true
}

// news wakes the Starts that wait.
func (ps *programs) news() {
	if ps.changed != nil {
		close(ps.changed)
		ps.changed = nil
	}
}

// claim takes p in among the sandbox's programs, once nothing is being killed.
// It reports whether p is the first, for which the machine has to Begin.
func (sb *sandbox) claim(ctx context.Context, p *process) (first bool, err error) {
	for {
		if err := sb.sess.Err(); err != nil {
			return false, sb.explain(ctx, err)
		}
		first, wait, err := sb.tryClaim(p)
		if wait == nil {
			return first, err
		}
		select {
		case <-wait:
		case <-sb.ended:
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// tryClaim returns what to wait for where p can't be taken in yet.
func (sb *sandbox) tryClaim(p *process) (first bool, wait <-chan struct{}, err error) {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	if sb.closed {
		return false, nil, fmt.Errorf("%w: the sandbox", tranca.ErrClosed)
	}
	ps := &sb.programs
	if !ps.settled() {
		if ps.changed == nil {
			ps.changed = make(chan struct{})
		}
		return false, ps.changed, nil
	}
	if first = len(ps.running) == 0; first {
		ps.spell = &spell{limited: make(chan struct{})}
		ps.beginning = true
		sb.fileTooBig = false
	} else {
		ps.spell.several = true
	}
	p.spell = ps.spell
	ps.running[p] = struct{}{}
	return first, nil, nil
}

// begin resets the machine's counters for the first program of a spell.
func (sb *sandbox) begin(ctx context.Context) error {
	select {
	case <-sb.m.Limit(): // of the spell before
	default:
	}
	err := sb.m.Begin(ctx)
	sb.mu.Lock()
	sb.programs.beginning = false
	sb.programs.news()
	sb.mu.Unlock()
	if err != nil {
		return fmt.Errorf("preparing the sandbox for a program: %w", err)
	}
	return nil
}

// release forgets p. The sandbox is idle after the last one.
func (sb *sandbox) release(p *process) {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	delete(sb.programs.running, p)
	sb.programs.last = p.seen
	sb.fileTooBig = sb.fileTooBig || p.exit.Signal == tranca.SIGXFSZ
	sb.programs.news()
}

// alone reports whether p was the only program of its spell.
func (sb *sandbox) alone(p *process) bool {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	return !p.spell.several
}

// passed tells all programs of a spell that a limit ends them, and kills them.
// The machine kills too, but a program that was about to start may have come
// up after that. Whoever learns of the limit calls it, while a program of his
// keeps the spell from ending.
func (sb *sandbox) passed(s *spell, r tranca.Reason) {
	sb.mu.Lock()
	first := s.reason == ""
	if first {
		s.reason = r
		close(s.limited)
	}
	sb.mu.Unlock()
	if first {
		sb.killAgain()
	}
}

// reasonOf is the limit that has ended a spell, as far as it was told.
func (sb *sandbox) reasonOf(s *spell) tranca.Reason {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	return s.reason
}

// killAgain kills what a kill may have missed. If it fails the next kill finds
// it.
func (sb *sandbox) killAgain() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = sb.killPrograms(ctx)
}

// condemned reports whether p was killed, by its owner or by a limit, before
// its start was known to have happened.
func (sb *sandbox) condemned(p *process) bool {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	return p.killed || p.spell.reason != ""
}

// condemn notes that the owner ends all programs, before it is done: their
// ends are then the owner's, whatever the guest says. Nothing starts until
// pardon.
func (sb *sandbox) condemn() []*process {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	sb.programs.killing++
	all := make([]*process, 0, len(sb.programs.running))
	for p := range sb.programs.running {
		p.killed = true
		all = append(all, p)
	}
	return all
}

// condemnAlone is condemn for a program that no other one runs beside.
func (sb *sandbox) condemnAlone(p *process) bool {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	if len(sb.programs.running) > 1 {
		return false
	}
	sb.programs.killing++
	p.killed = true
	return true
}

// pardon ends what condemn began.
func (sb *sandbox) pardon() {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	sb.programs.killing--
	sb.programs.news()
}

func (sb *sandbox) wasKilled(p *process) bool {
	sb.mu.Lock()
	defer sb.mu.Unlock()
	return p.killed
}
