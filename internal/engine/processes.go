package engine

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tranca"
)

const (
	// maxEnded is how many ended processes are kept in a session.
	maxEnded = 64
	// maxEndedBytes bounds what is kept of their output, all together, and of
	// their arguments.
	maxEndedBytes = 1 << 20
)

func ended(err error) bool { return errors.Is(err, tranca.ErrGone) }

// enlist takes a process that was started into the list.
func (s *Session) enlist(p *Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	p.id = processID(s.last)
	s.list = append(s.list, p)
}

// retire counts a process as ended and forgets what is too much: first the
// output of the oldest, then the oldest themselves.
func (s *Session) retire(p *Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended++
	s.endedArgs += p.argBytes()
	p.over = true
	s.list = slices.DeleteFunc(s.list, func(o *Process) bool {
		if !o.over || o == p || s.ended <= maxEnded && s.endedArgs <= maxEndedBytes {
			return false
		}
		s.ended--
		s.endedArgs -= o.argBytes()
		return true
	})
	var kept int64
	for _, o := range slices.Backward(s.list) {
		if !o.over {
			continue
		}
		bytes, read := o.out.kept()
		if kept+bytes > maxEndedBytes && !read {
			o.out.drop()
			continue
		}
		kept += bytes
	}
}

func (p *Process) argBytes() (n int) {
	for _, a := range p.req.Args {
		n += len(a)
	}
	return n
}

// releaseReaders lets no program that is about to end wait for its readers.
func (s *Session) releaseReaders() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.list {
		if !p.over {
			p.out.hurry()
		}
	}
}

// Processes returns what is known of the programs that were started by Start,
// oldest first: those that run and the last 64 that have ended, or fewer where
// their arguments take more than 1 MiB. With a tag, only those that have it.
func (s *Session) Processes(tag string) []tranca.ProcessInfo {
	s.mu.Lock()
	list := slices.Clone(s.list)
	s.mu.Unlock()
	infos := make([]tranca.ProcessInfo, 0, len(list))
	for _, p := range list {
		if tag == "" || p.req.Tag == tag {
			infos = append(infos, p.Info())
		}
	}
	return infos
}

// Process finds a program: "p3" by its id, "412" by the pid of one that runs,
// "tag=web" as the oldest that runs with that tag. Errors wrap
// [tranca.ErrNotFound], or [tranca.ErrGone] where it has ended and is not kept
// any more, or the session has ended.
func (s *Session) Process(selector string) (*Process, error) {
	if err := s.look(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if tag, ok := strings.CutPrefix(selector, "tag="); ok {
		return s.runningOne(selector, func(p *Process) bool { return p.req.Tag == tag })
	}
	if digits, ok := strings.CutPrefix(selector, "p"); ok && number(digits) > 0 {
		return s.numbered(number(digits))
	}
	if pid := number(selector); pid > 0 {
		return s.runningOne(selector, func(p *Process) bool { return p.proc.PID() == pid })
	}
	return nil, fmt.Errorf("%w: program %.80q: name it as p3, by a pid, or as tag=NAME", tranca.ErrNotFound, selector)
}

// number returns a positive number in canonical form, or 0.
func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || strconv.Itoa(n) != s {
		return 0
	}
	return n
}

func (s *Session) numbered(n int) (*Process, error) {
	id := processID(n)
	for _, p := range s.list {
		if p.id == id {
			return p, nil
		}
	}
	if n <= s.last {
		return nil, fmt.Errorf("%w: program %s has ended, and is not kept any more", tranca.ErrGone, id)
	}
	return nil, fmt.Errorf("%w: program %s", tranca.ErrNotFound, id)
}

// runningOne returns the oldest running process that matches.
func (s *Session) runningOne(selector string, match func(*Process) bool) (*Process, error) {
	var before *Process
	for _, p := range s.list {
		switch {
		case !match(p):
		case !p.over:
			return p, nil
		default:
			before = p
		}
	}
	if before != nil {
		return nil, fmt.Errorf("%w: program %.80q has ended: it is still kept as %s", tranca.ErrGone, selector, before.id)
	}
	return nil, fmt.Errorf("%w: no program %.80q runs", tranca.ErrNotFound, selector)
}
