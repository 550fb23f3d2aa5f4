package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"time"

	"tranca"
	"tranca/internal/backend/container/docker"
	"tranca/internal/machine"
)

const (
	// sampleEvery is how often counters and space are looked at while a
	// program runs, firstLook how long after a Begin the first time.
	sampleEvery = 50 * time.Millisecond
	firstLook   = 10 * time.Millisecond
	// quietLooks is how many looks without a process put the watch to sleep.
	quietLooks = 20
	// killTime bounds a hard kill.
	killTime = 10 * time.Second
)

// box is one sandbox in a container: the [machine.Machine] of this backend.
type box struct {
	backend     *Backend
	engine      *engine
	plan        *plan
	created     chan struct{} // closed when the engine has answered; the next two hold then
	id          string
	createErr   error
	stream      *docker.Stream
	outside     *outside // what this host sees of it
	limits      tranca.Limits
	enforcement []tranca.Enforcement
	closedHook  func() // called last; may be nil

	limit chan tranca.Reason

	mu       sync.Mutex
	hit      map[tranca.LimitHit]bool
	quiet    int
	told     bool
	cpuSpent bool

	begun   chan struct{}
	closing chan struct{}
	watch   sync.WaitGroup
	once    sync.Once
	done    chan struct{}
	err     error
}

var (
	_ machine.Machine      = (*box)(nil)
	_ machine.KillByAgent  = (*box)(nil)
	_ machine.ChangeReader = (*box)(nil)
)

func newBox(b *Backend, e *engine, pl *plan) *box {
	return &box{
		backend: b, engine: e, plan: pl, limits: pl.policy.Limits,
		limit: make(chan tranca.Reason, 1), hit: map[tranca.LimitHit]bool{},
		begun: make(chan struct{}), closing: make(chan struct{}), done: make(chan struct{}),
		created: make(chan struct{}),
	}
}

func (m *box) Stream() io.ReadWriteCloser        { return m.stream }
func (m *box) Limit() <-chan tranca.Reason       { return m.limit }
func (m *box) Enforcement() []tranca.Enforcement { return m.enforcement }

// KillsAgent is [machine.KillByAgent]: from outside there is nothing by which
// to reach the programs alone.
func (m *box) KillsAgent() bool { return true }

// ImageDigest is the digest of the image that runs.
func (m *box) ImageDigest() string { return m.plan.digest }

// OpenChanges is [machine.ChangeReader].
func (m *box) OpenChanges(target string) (*os.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.plan.stage == nil {
		return nil, fmt.Errorf("%w: %s is no mount of mode cow", tranca.ErrNotFound, target)
	}
	return m.plan.stage.openChanges(target)
}

// Begin gives the next program fresh counters.
func (m *box) Begin(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.outside.begin(); err != nil {
		return fmt.Errorf("%w: reset counters: %w", tranca.ErrGone, err)
	}
	m.hit, m.told, m.cpuSpent = map[tranca.LimitHit]bool{}, false, false
	select {
	case <-m.limit:
	default:
	}
	close(m.begun)
	m.begun = make(chan struct{})
	return nil
}

// Observe reads the counters of the kernel, not the agent's word. When the
// container has died, and its counters with it, the engine says whether memory
// was why.
func (m *box) Observe(ctx context.Context) (machine.Observation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sampleSpace()
	s, err := m.outside.stats()
	if err != nil {
		return m.observeDead(ctx, err)
	}
	o := machine.Observation{Usage: s.usage}
	m.note(s)
	switch {
	case s.oomKills > 0:
		o.Limit = tranca.EndMemory
	case m.spentCPU(s):
		o.Limit = tranca.EndCPU
	}
	m.tellHits(&o.Usage)
	return o, nil
}

// observeDead is Observe for a container that is dead or dying.
func (m *box) observeDead(ctx context.Context, why error) (machine.Observation, error) {
	o := machine.Observation{Usage: m.outside.last()}
	m.tellHits(&o.Usage)
	if m.cpuSpent {
		o.Limit = tranca.EndCPU
		return o, nil
	}
	oom, err := m.diedOfMemory(ctx)
	if err != nil {
		return o, fmt.Errorf("%w: read counters: %w", tranca.ErrGone, errors.Join(why, err))
	}
	if oom {
		o.Limit = tranca.EndMemory
	}
	return o, nil
}

// diedOfMemory asks the engine, which may hear of an end a little later.
func (m *box) diedOfMemory(ctx context.Context) (bool, error) {
	if m.outside.sawOOM() {
		return true, nil
	}
	for deadline := time.Now().Add(time.Second); ; {
		c, err := m.engine.Inspect(ctx, m.id)
		if err != nil {
			return false, err
		}
		if c.State.OOMKilled {
			return true, nil
		}
		if !c.State.Running || time.Now().After(deadline) {
			return false, nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// spentCPU reports whether the CPU time is used up. The caller holds mu.
func (m *box) spentCPU(s sample) bool {
	return m.cpuSpent || s.countsCPU && s.cpuSpent >= m.limits.CPUTime
}

// note keeps what a sample shows of limits that refused something. The caller
// holds mu.
func (m *box) note(s sample) {
	if s.refused > 0 {
		m.hit[tranca.HitPIDs] = true
	}
}

// sampleSpace notes whether the writable space is full. The caller holds mu.
func (m *box) sampleSpace() {
	disk, inodes := m.outside.full()
	if disk {
		m.hit[tranca.HitDisk] = true
	}
	if inodes {
		m.hit[tranca.HitInodes] = true
	}
}

func (m *box) tellHits(u *tranca.Usage) {
	for _, h := range []tranca.LimitHit{tranca.HitPIDs, tranca.HitDisk, tranca.HitInodes} {
		if m.hit[h] {
			u.Hit = append(u.Hit, h)
		}
	}
}

// run watches what the kernel does not enforce by itself: the sum of CPU time,
// the end of the whole tree after an OOM kill, and a full writable space.
func (m *box) run() {
	defer m.watch.Done()
	timer := time.NewTimer(time.Millisecond)
	defer timer.Stop()
	for {
		m.mu.Lock()
		begun := m.begun
		m.mu.Unlock()
		select {
		case <-m.closing:
			return
		case <-begun:
			m.quiet = 0
			timer.Reset(firstLook)
		case <-timer.C:
			if wait := m.look(); wait > 0 {
				timer.Reset(wait)
			}
		}
	}
}

// look samples once and returns when to look again, or 0 when nothing has run
// for a while.
func (m *box) look() time.Duration {
	m.mu.Lock()
	m.sampleSpace()
	run := m.begun
	s, err := m.outside.stats()
	if err == nil {
		m.note(s)
	}
	m.mu.Unlock()
	if err != nil {
		return 0 // it is dying; who waits for it finds out why
	}
	if m.quiet++; s.processes > 0 {
		m.quiet = 0
	}
	if m.quiet > quietLooks {
		return 0
	}
	if s.oomKills > 0 {
		m.pass(run, tranca.EndMemory)
		return sampleEvery
	}
	if !s.countsCPU {
		return sampleEvery
	}
	rest := m.limits.CPUTime - s.cpuSpent
	if rest <= 0 {
		m.pass(run, tranca.EndCPU)
		return sampleEvery
	}
	cpus := min(time.Duration(m.limits.MilliCPUs), time.Duration(1000*runtime.NumCPU()))
	return max(min(rest*1000/cpus, sampleEvery), time.Millisecond)
}

// pass tells that a run, which its begun names, has passed a limit: whoever
// hears of it kills. It tells once for each Begin, and never of a run that is
// over.
func (m *box) pass(run <-chan struct{}, r tranca.Reason) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if run != m.begun {
		return
	}
	m.cpuSpent = m.cpuSpent || r == tranca.EndCPU
	if !m.told {
		m.told = true
		m.limit <- r // Begin has emptied it
	}
}

// Kill ends the container, and with it every program: the agent is asked first,
// by who calls this.
func (m *box) Kill(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, killTime)
	defer cancel()
	err := m.engine.Kill(ctx, m.id)
	if err == nil || gone(err) {
		return nil
	}
	return errors.Join(err, m.outside.kill(ctx))
}

// gone reports whether an engine's error says that nothing runs any more.
func gone(err error) bool {
	var said *docker.Error
	return errors.As(err, &said) && (said.Status == 404 || said.Status == 409)
}

// Close destroys the sandbox. If ctx ends first the destruction goes on.
func (m *box) Close(ctx context.Context) error {
	m.once.Do(func() {
		close(m.closing)
		go func() {
			defer close(m.done)
			m.err = m.destroy()
		}()
	})
	select {
	case <-m.done:
		return m.err
	case <-ctx.Done():
		return fmt.Errorf("sandbox is still being destroyed: %w", context.Cause(ctx))
	}
}

// destroy takes everything down, and goes on after an error.
func (m *box) destroy() error {
	m.watch.Wait()
	errs := []error{m.removeAll(m.id)}
	m.stream.Close()
	m.mu.Lock()
	errs = append(errs, m.outside.close())
	if m.plan.stage != nil {
		errs = append(errs, m.plan.stage.giveBack())
	}
	m.mu.Unlock()
	if m.closedHook != nil {
		m.closedHook()
	}
	return errors.Join(errs...)
}

// removeAll removes the container, by its id or name, and returns when the
// engine has none of it any more. An engine that does not answer may be coming
// back: it is asked again for a while.
func (m *box) removeAll(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), removeTime)
	defer cancel()
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := m.engine.Remove(ctx, name)
		if errors.Is(err, tranca.ErrNotFound) {
			return nil
		}
		if err == nil {
			// Docker has removed it when it answers; the next turn sees to it
			// that it has.
			_, err = m.engine.Inspect(ctx, name)
			if errors.Is(err, tranca.ErrNotFound) {
				return nil
			}
		}
		// What runs in it need not wait for the engine.
		kerr := m.outside.kill(ctx)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return fmt.Errorf("container %s may be left; the next start of tranca removes it: %w", name, errors.Join(err, kerr))
		}
	}
}
