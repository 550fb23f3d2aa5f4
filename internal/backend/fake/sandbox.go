package fake

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"tranca"
)

// sandbox is one pretended sandbox.
type sandbox struct {
	b    *Backend
	spec tranca.Spec
	disk *disk

	mu      sync.Mutex
	procs   map[*proc]struct{}
	ports   map[int]*proc // that listen
	started int           // of procs, those that Start started
	changed *sync.Cond    // a process has ended
	nextPID int
	closed  bool
	failed  bool // the agent was "killed": everything is ErrGone

	cpu     time.Duration
	mem     int64
	memPeak int64
	pidPeak int64
	hit     []tranca.LimitHit
	limit   tranca.Reason
}

func newSandbox(b *Backend, spec tranca.Spec) *sandbox {
	spec.Policy = spec.Policy.Clone()
	s := &sandbox{b: b, spec: spec, procs: map[*proc]struct{}{}, ports: map[int]*proc{}, nextPID: 2}
	s.changed = sync.NewCond(&s.mu)
	s.disk = newDisk(spec.Policy, s.refused)
	return s
}

func (s *sandbox) ID() tranca.ID { return s.spec.ID }

func (s *sandbox) Enforcement() []tranca.Enforcement {
	var all []tranca.Enforcement
	for _, item := range tranca.Items() {
		status := tranca.StatusEnforced
		if s.spec.Policy.Waives(item) {
			status = tranca.StatusWaived
		}
		all = append(all, tranca.Enforcement{Item: item, Mechanism: "memory of the fake", Status: status})
	}
	return all
}

func (s *sandbox) Start(ctx context.Context, cmd tranca.Command) (tranca.Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := check(cmd); err != nil {
		return nil, err
	}
	main, err := program(cmd.Args)
	if err != nil {
		return nil, err
	}
	dir := s.spec.Policy.Workdir
	if cmd.Dir != "" {
		dir = path.Join(dir, cmd.Dir)
		if path.IsAbs(cmd.Dir) {
			dir = path.Clean(cmd.Dir)
		}
	}
	if !s.disk.isDir(dir) {
		return nil, fmt.Errorf("%w: folder %s", tranca.ErrNotFound, dir)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.limit != "" && s.started > 0 && !s.closed && !s.failed {
		s.changed.Wait() // what a limit ends is still dying
	}
	switch {
	case s.closed || s.failed:
		return nil, fmt.Errorf("%w: sandbox %s", tranca.ErrGone, s.ID())
	case s.started >= maxPrograms:
		return nil, fmt.Errorf("%w: %d programs are running, which is the most", tranca.ErrBusy, s.started)
	case s.started == 0:
		s.cpu, s.mem, s.memPeak, s.pidPeak, s.hit, s.limit = 0, 0, 0, 0, nil, ""
	}
	p := newProc(s, cmd, dir)
	p.started = true
	s.started++
	s.addLocked(p)
	go p.run(main)
	return p, nil
}

// maxPrograms bounds the programs that run at one moment.
const maxPrograms = 64

// check refuses commands that no kernel could start.
func check(cmd tranca.Command) error {
	if len(cmd.Args) == 0 {
		return fmt.Errorf("%w: no program", tranca.ErrInvalid)
	}
	if t := cmd.Terminal; t != nil && (t.Rows == 0 || t.Columns == 0) {
		return fmt.Errorf("%w: a terminal of %d rows and %d columns", tranca.ErrInvalid, t.Rows, t.Columns)
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

// addLocked takes a process in. The limit on processes is the caller's.
func (s *sandbox) addLocked(p *proc) {
	p.pid = s.nextPID
	s.nextPID++
	s.procs[p] = struct{}{}
	s.pidPeak = max(s.pidPeak, int64(len(s.procs)))
}

func (s *sandbox) Files() tranca.Files { return files{s} }

func (s *sandbox) Usage(context.Context) (tranca.Usage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return tranca.Usage{}, fmt.Errorf("%w: sandbox %s", tranca.ErrGone, s.ID())
	}
	return tranca.Usage{
		CPU: s.cpu, MemoryPeak: s.memPeak, ProcessesPeak: s.pidPeak, Hit: slices.Clone(s.hit),
	}, nil
}

func (s *sandbox) Kill(context.Context) error {
	if s.b.opt.KillErr != nil {
		if err := s.b.opt.KillErr(); err != nil {
			return err
		}
	}
	s.killAll()
	return nil
}

// killAll ends every process and returns when none is alive.
func (s *sandbox) killAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.procs) > 0 {
		for p := range s.procs {
			p.signal(tranca.SIGKILL)
		}
		s.changed.Wait()
	}
}

func (s *sandbox) Close(context.Context) error {
	s.mu.Lock()
	was := s.closed
	s.closed = true
	s.mu.Unlock()
	s.killAll()
	s.b.forget(s.ID())
	if !was && s.b.opt.CloseErr != nil {
		return s.b.opt.CloseErr()
	}
	return nil
}

// fail plays a guest agent that dies.
func (s *sandbox) fail() {
	s.mu.Lock()
	s.failed = true
	s.changed.Broadcast()
	s.mu.Unlock()
}

// refused notes that a limit refused something.
func (s *sandbox) refused(h tranca.LimitHit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.hit, h) {
		s.hit = append(s.hit, h)
	}
}

// exceed ends the run by a limit.
func (s *sandbox) exceed(r tranca.Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.limit == "" {
		s.limit = r
	}
	for p := range s.procs {
		p.signal(tranca.SIGKILL)
	}
}

func (s *sandbox) charge(cpu time.Duration, mem int64) {
	s.mu.Lock()
	s.cpu += cpu
	s.mem += mem
	s.memPeak = max(s.memPeak, s.mem)
	limits := s.spec.Policy.Limits
	over := tranca.Reason("")
	if s.mem > limits.Memory {
		over = tranca.EndMemory
	} else if s.cpu > limits.CPUTime {
		over = tranca.EndCPU
	}
	s.mu.Unlock()
	if over != "" {
		s.exceed(over)
	}
}
