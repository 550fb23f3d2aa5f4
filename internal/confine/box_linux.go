package confine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/linux/forkexec"
	"tranca/internal/machine"
)

// sampleEvery is how often the writable space is looked at while a program
// runs: a program that fills it and cleans up between two looks goes unseen.
const sampleEvery = 100 * time.Millisecond

// firstLook is how long after a Begin the first look is taken. Most programs end
// before that, and a look would cost them the time that it takes; Observe looks
// at their end.
const firstLook = 10 * time.Millisecond

// quietLooks is how many looks without a process put the watch to sleep.
const quietLooks = 20

// Box is one booted sandbox: a [machine.Machine]. Its backend makes it by
// [NewBox], gives it what it has made with Adopt and Attend, and starts its
// watch with Watch; from then on it is safe for concurrent use.
type Box struct {
	*Allotment
	stream      *net.UnixConn
	scratch     *os.File // nil once destroyed
	limits      tranca.Limits
	countsCPU   bool // CPU time is counted by the group
	boundsCPU   bool // the share of CPUs is enforced by the group
	enforcement []tranca.Enforcement
	closedHook  func() // called last

	limit chan tranca.Reason

	// passing is held over a Begin, and while a limit that was passed is told
	// and its programs are killed: neither reaches into the next run.
	passing sync.Mutex

	mu       sync.Mutex
	hit      map[tranca.LimitHit]bool
	quiet    int  // looks without a process, of the watch alone
	told     bool // limit was delivered since Begin
	cpuSpent bool
	procs    []process // outside of the code's group, or leading it; in the order in which they are killed
	used     bool      // a program was begun
	held     []io.Closer
	inner    func() bool // see HoldsKernel; nil otherwise

	begun   chan struct{} // closed and replaced by Begin: wakes the watch
	closing chan struct{}
	end     *Destruction
	watch   sync.WaitGroup
}

// process is a child of this process that the sandbox stands on.
type process struct {
	name      string
	child     forkexec.Child // its PID is 0 once it was reaped
	diagnosis *os.File       // what it wrote to stderr
}

var _ machine.Machine = (*Box)(nil)

// NewBox makes a box of nothing but what was allotted to it.
func NewBox(h *Host, l tranca.Limits, a *Allotment) *Box {
	return &Box{
		Allotment: a, limits: l,
		countsCPU: h.Support.CPUTime.Held, boundsCPU: h.Support.CPU.Held,
		limit:   make(chan tranca.Reason, 1),
		begun:   make(chan struct{}),
		closing: make(chan struct{}), end: NewDestruction(),
		hit: map[tranca.LimitHit]bool{},
	}
}

// Attend has the box kill and reap a process when it is destroyed, in the order
// of the calls, and close what it wrote.
func (b *Box) Attend(name string, c forkexec.Child, diagnosis *os.File) {
	b.procs = append(b.procs, process{name, c, diagnosis})
}

// Adopt gives the box the stream to its agent, and its writable space.
func (b *Box) Adopt(stream *net.UnixConn, scratch *os.File) { b.stream, b.scratch = stream, scratch }

// Hold has the box keep something open until it is destroyed.
func (b *Box) Hold(c io.Closer) { b.held = append(b.held, c) }

// HoldsKernel says that what runs in the code's group is a kernel of the
// sandbox's own, which lives as long as the sandbox. Programs that have used up
// their CPU time are then left for the agent to kill, by whoever hears of it;
// alive reports whether any of them lives.
func (b *Box) HoldsKernel(alive func() bool) { b.inner = alive }

// Watch says what the box enforces and begins to watch it. The hook is called
// when it has been destroyed; it may be nil.
func (b *Box) Watch(e []tranca.Enforcement, closed func()) {
	b.enforcement, b.closedHook = e, closed
	b.watch.Add(1)
	go b.run()
}

// Stream is that of [machine.Machine].
func (b *Box) Stream() io.ReadWriteCloser { return b.stream }

// Limit is that of [machine.Machine].
func (b *Box) Limit() <-chan tranca.Reason { return b.limit }

// Enforcement is that of [machine.Machine].
func (b *Box) Enforcement() []tranca.Enforcement { return b.enforcement }

// Begin gives the next program fresh counters. For the first one they are, but
// where a kernel of the sandbox's own has booted and served files in the same
// group. The clock of the CPU time goes on for what an earlier program has left
// alive.
func (b *Box) Begin(ctx context.Context) error {
	b.passing.Lock()
	defer b.passing.Unlock()
	b.mu.Lock()
	fresh := !b.used && b.inner == nil
	b.used = true
	b.mu.Unlock()
	if b.Group != nil && !fresh {
		begin := b.Group.Begin
		if b.inner != nil {
			begin = func() error { return b.Group.BeginAfter(b.inner()) }
		}
		if err := begin(); err != nil {
			return fmt.Errorf("%w: reset counters: %w", tranca.ErrGone, err)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hit, b.told, b.cpuSpent = map[tranca.LimitHit]bool{}, false, false
	select {
	case <-b.limit:
	default:
	}
	close(b.begun)
	b.begun = make(chan struct{})
	return nil
}

// Observe reads the counters of the kernel, not the agent's word.
func (b *Box) Observe(ctx context.Context) (machine.Observation, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	o := machine.Observation{Usage: tranca.Usage{CPU: -1, MemoryPeak: -1, ProcessesPeak: -1}}
	b.sampleSpace()
	if b.Group != nil {
		s, err := b.Group.Stats()
		if err != nil {
			return o, fmt.Errorf("%w: read counters: %w", tranca.ErrGone, err)
		}
		o.Usage.CPU, o.Usage.MemoryPeak, o.Usage.ProcessesPeak = s.CPUTime, s.MemoryPeak, s.ProcessesPeak
		if s.Refused > 0 {
			b.hit[tranca.HitPIDs] = true
		}
		switch {
		case s.OOMKills > 0:
			o.Limit = tranca.EndMemory
		case b.cpuSpent || (b.countsCPU && s.CPUSpent >= b.limits.CPUTime):
			o.Limit = tranca.EndCPU
		}
	}
	for _, h := range []tranca.LimitHit{tranca.HitPIDs, tranca.HitDisk, tranca.HitInodes} {
		if b.hit[h] {
			o.Usage.Hit = append(o.Usage.Hit, h)
		}
	}
	return o, nil
}

// sampleSpace notes whether the writable space is full. The caller holds mu.
func (b *Box) sampleSpace() {
	var st unix.Statfs_t
	if b.scratch == nil || unix.Fstatfs(int(b.scratch.Fd()), &st) != nil {
		return
	}
	// A file system on disk keeps a few small blocks to itself: full is what
	// has no room for a page.
	if st.Blocks > 0 && st.Bavail*uint64(st.Bsize) < 4096 {
		b.hit[tranca.HitDisk] = true
	}
	if st.Files > 0 && st.Ffree == 0 {
		b.hit[tranca.HitInodes] = true
	}
}

// run watches what the kernel does not enforce by itself: the sum of CPU time,
// the end of the whole tree after an OOM kill, and a full writable space.
func (b *Box) run() {
	defer b.watch.Done()
	var oom <-chan struct{}
	if b.Group != nil {
		oom = b.Group.OOM()
	}
	timer := time.NewTimer(time.Millisecond)
	defer timer.Stop()
	for {
		b.mu.Lock()
		begun := b.begun
		b.mu.Unlock()
		select {
		case <-b.closing:
			return
		case <-begun:
			b.quiet = 0
			timer.Reset(firstLook)
		case _, ok := <-oom:
			if !ok {
				oom = nil
				continue
			}
			b.outOfMemory()
		case <-timer.C:
			if wait := b.look(); wait > 0 {
				timer.Reset(wait)
			}
		}
	}
}

// look samples once and returns when to look again: at the earliest moment at
// which the CPU time can be used up, or 0 when nothing has run for a while and
// the next Begin will say when there is something to see.
func (b *Box) look() time.Duration {
	b.mu.Lock()
	b.sampleSpace()
	run := b.begun // before the counters: they may be those of the run before
	b.mu.Unlock()
	if b.Group == nil {
		return sampleEvery
	}
	s, err := b.Group.Stats()
	if err != nil {
		return sampleEvery
	}
	if b.quiet++; s.Processes > 0 {
		b.quiet = 0
	}
	if b.quiet > quietLooks {
		return 0
	}
	if !b.countsCPU {
		return sampleEvery
	}
	rest := b.limits.CPUTime - s.CPUSpent
	if rest <= 0 {
		b.pass(run, tranca.EndCPU)
		return sampleEvery
	}
	cpus := time.Duration(b.limits.MilliCPUs)
	if !b.boundsCPU {
		cpus = time.Duration(1000 * runtime.NumCPU())
	}
	return max(min(rest*1000/cpus, sampleEvery), time.Millisecond)
}

// outOfMemory passes the limit of the run that the kernel has killed a part of,
// if that is not over.
func (b *Box) outOfMemory() {
	b.mu.Lock()
	run := b.begun
	b.mu.Unlock()
	if s, err := b.Group.Stats(); err != nil || s.OOMKills > 0 {
		b.pass(run, tranca.EndMemory)
	}
}

// pass tells that a run, which its begun names, has passed a limit, and kills
// the programs. It tells once for each Begin, and never of a run that is over.
func (b *Box) pass(run <-chan struct{}, r tranca.Reason) {
	b.passing.Lock()
	defer b.passing.Unlock()
	if !b.tell(run, r) || b.inner != nil && r == tranca.EndCPU {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), KillTime)
	defer cancel()
	_ = b.Kill(ctx) // Close tries again, and reports
}

// tell reports whether it has told. The caller holds passing.
func (b *Box) tell(run <-chan struct{}, r tranca.Reason) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if run != b.begun {
		return false
	}
	b.cpuSpent = b.cpuSpent || r == tranca.EndCPU
	if b.told {
		return false
	}
	b.told = true
	b.limit <- r // Begin has emptied it
	return true
}

// Kill ends every program. Without a cgroup there is nothing out here by which
// to find them all but the namespace, so the whole machine goes.
func (b *Box) Kill(ctx context.Context) error {
	if b.Group != nil {
		return b.Group.Kill(ctx)
	}
	return b.killAgent(ctx)
}

// KillMachine ends the processes that the sandbox stands on, and the programs
// with them.
func (b *Box) KillMachine(ctx context.Context) error {
	if b.Group != nil {
		if err := b.Group.Kill(ctx); err != nil {
			return err
		}
	}
	return b.killAgent(ctx)
}

// KillsAgent is [machine.KillByAgent].
func (b *Box) KillsAgent() bool { return b.Group == nil }

// killAgent kills the processes that the sandbox stands on, the first of the
// outer pid namespace among them, and with it, by the kernel, everything
// inside. It waits until all of it is dead.
func (b *Box) killAgent(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.signalAll()
	for i := range b.procs {
		p := &b.procs[i]
		if p.child.PID == 0 {
			continue
		}
		if err := awaitPIDFD(ctx, p.child.PIDFD); err != nil {
			return fmt.Errorf("%s does not die: %w", p.name, err)
		}
		_, err := forkexec.Wait(p.child.PID)
		p.child.PID = 0
		if err != nil {
			return err
		}
	}
	return nil
}

// signalAll kills the processes without waiting. The caller holds mu.
func (b *Box) signalAll() {
	for i := range b.procs {
		if b.procs[i].child.PID != 0 {
			_ = unix.PidfdSendSignal(b.procs[i].child.PIDFD, unix.SIGKILL, nil, 0) // what lives on is waited for in vain, and told
		}
	}
}

// awaitPIDFD waits until the process has ended.
func awaitPIDFD(ctx context.Context, fd int) error {
	for {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(p, 20)
		if err != nil && err != unix.EINTR {
			return os.NewSyscallError("poll", err)
		}
		if n > 0 {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// Close destroys the sandbox.
func (b *Box) Close(ctx context.Context) error {
	return b.end.Run(ctx, func() error {
		close(b.closing)
		return b.destroy()
	})
}

// Destruction happens once, whoever asks for it and however long they wait.
type Destruction struct {
	once sync.Once
	done chan struct{}
	err  error
}

// NewDestruction makes one that has not begun.
func NewDestruction() *Destruction { return &Destruction{done: make(chan struct{})} }

// Run begins the destruction, unless it has begun, and waits for its end. If
// ctx ends first the destruction goes on.
func (d *Destruction) Run(ctx context.Context, destroy func() error) error {
	d.once.Do(func() {
		go func() {
			defer close(d.done)
			d.err = destroy()
		}()
	})
	select {
	case <-d.done:
		return d.err
	case <-ctx.Done():
		return fmt.Errorf("sandbox is still being destroyed: %w", context.Cause(ctx))
	}
}

// letGo closes the descriptors. Who still asks for something finds none, rather
// than those that got their numbers.
func (b *Box) letGo() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var errs []error
	if b.scratch != nil {
		errs = append(errs, b.scratch.Close())
		b.scratch = nil
	}
	for i := range b.procs {
		p := &b.procs[i]
		errs = append(errs, p.diagnosis.Close(), unix.Close(p.child.PIDFD))
	}
	for _, c := range b.held {
		errs = append(errs, c.Close())
	}
	b.procs, b.held = nil, nil
	return errors.Join(errs...)
}

// destroy takes down in the order in which things depend on each other. It
// goes on after an error, so that one fault leaves as little as possible.
func (b *Box) destroy() error {
	ctx, cancel := context.WithTimeout(context.Background(), destroyTime)
	defer cancel()
	var errs []error
	// The code's group first: a tree that forks while its namespace is being
	// killed outlives it by far. The agent can die meanwhile.
	b.mu.Lock()
	b.signalAll()
	b.mu.Unlock()
	if b.Group != nil {
		errs = append(errs, b.Group.Kill(ctx))
		// That takes a third of the time that the agent needs to die.
		b.watch.Wait()
		b.Group.Retire()
	}
	errs = append(errs, b.killAgent(ctx))
	b.watch.Wait()
	b.stream.Close()
	errs = append(errs, b.GiveBack())
	errs = append(errs, b.letGo())
	if b.closedHook != nil {
		b.closedHook()
	}
	return errors.Join(errs...)
}
