package process

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

// box is one booted sandbox: the [machine.Machine] of this backend.
type box struct {
	*allotment
	stream      *net.UnixConn
	agent       forkexec.Child
	scratch     *os.File // nil once destroyed
	diagnosis   *os.File // what the agent wrote to stderr
	limits      tranca.Limits
	countsCPU   bool // CPU time is counted by the group
	boundsCPU   bool // the share of CPUs is enforced by the group
	enforcement []tranca.Enforcement
	closedHook  func() // called last

	limit chan tranca.Reason

	mu       sync.Mutex
	hit      map[tranca.LimitHit]bool
	quiet    int  // looks without a process, of the watch alone
	told     bool // limit was delivered since Begin
	cpuSpent bool
	agentPID int  // 0 once reaped
	used     bool // a program was begun

	begun   chan struct{} // closed and replaced by Begin: wakes the watch
	closing chan struct{}
	end     *destruction
	watch   sync.WaitGroup
}

var _ machine.Machine = (*box)(nil)

func (b *box) Stream() io.ReadWriteCloser        { return b.stream }
func (b *box) Limit() <-chan tranca.Reason       { return b.limit }
func (b *box) Enforcement() []tranca.Enforcement { return b.enforcement }

// Begin gives the next program fresh counters. For the first one they are. The
// clock of the CPU time goes on for what an earlier program has left alive.
func (b *box) Begin(ctx context.Context) error {
	b.mu.Lock()
	fresh := !b.used
	b.used = true
	b.mu.Unlock()
	if b.group != nil && !fresh {
		if err := b.group.Begin(); err != nil {
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
func (b *box) Observe(ctx context.Context) (machine.Observation, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	o := machine.Observation{Usage: tranca.Usage{CPU: -1, MemoryPeak: -1, ProcessesPeak: -1}}
	b.sampleSpace()
	if b.group != nil {
		s, err := b.group.Stats()
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
func (b *box) sampleSpace() {
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
func (b *box) run() {
	defer b.watch.Done()
	var oom <-chan struct{}
	if b.group != nil {
		oom = b.group.OOM()
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
			b.pass(tranca.EndMemory)
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
func (b *box) look() time.Duration {
	b.mu.Lock()
	b.sampleSpace()
	b.mu.Unlock()
	if b.group == nil {
		return sampleEvery
	}
	s, err := b.group.Stats()
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
		b.pass(tranca.EndCPU)
		return sampleEvery
	}
	cpus := time.Duration(b.limits.MilliCPUs)
	if !b.boundsCPU {
		cpus = time.Duration(1000 * runtime.NumCPU())
	}
	return max(min(rest*1000/cpus, sampleEvery), time.Millisecond)
}

// pass tells that a limit was passed and kills the programs. It tells once for
// each Begin.
func (b *box) pass(r tranca.Reason) {
	b.mu.Lock()
	told := b.told
	b.told = true
	if r == tranca.EndCPU {
		b.cpuSpent = true
	}
	b.mu.Unlock()
	if told {
		return
	}
	b.limit <- r
	ctx, cancel := context.WithTimeout(context.Background(), killTime)
	defer cancel()
	_ = b.Kill(ctx) // Close tries again, and reports
}

// Kill ends every program. Without a cgroup there is nothing out here by which
// to find them all but the namespace, so the whole machine goes.
func (b *box) Kill(ctx context.Context) error {
	if b.group != nil {
		return b.group.Kill(ctx)
	}
	return b.killAgent(ctx)
}

// KillsAgent is [machine.KillByAgent].
func (b *box) KillsAgent() bool { return b.group == nil }

// killAgent kills the first process of the outer pid namespace, and with it,
// by the kernel, everything inside, and waits until all of it is dead.
func (b *box) killAgent(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.agentPID == 0 {
		return nil
	}
	if err := unix.PidfdSendSignal(b.agent.PIDFD, unix.SIGKILL, nil, 0); err != nil && err != unix.ESRCH {
		return os.NewSyscallError("kill guest agent", err)
	}
	if err := awaitPIDFD(ctx, b.agent.PIDFD); err != nil {
		return fmt.Errorf("guest agent does not die: %w", err)
	}
	_, err := forkexec.Wait(b.agentPID)
	b.agentPID = 0
	return err
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
func (b *box) Close(ctx context.Context) error {
	return b.end.run(ctx, func() error {
		close(b.closing)
		return b.destroy()
	})
}

// destruction happens once, whoever asks for it and however long they wait.
type destruction struct {
	once sync.Once
	done chan struct{}
	err  error
}

func newDestruction() *destruction { return &destruction{done: make(chan struct{})} }

// run begins the destruction, unless it has begun, and waits for its end. If
// ctx ends first the destruction goes on.
func (d *destruction) run(ctx context.Context, destroy func() error) error {
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
func (b *box) letGo() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	err := errors.Join(b.scratch.Close(), b.diagnosis.Close(), unix.Close(b.agent.PIDFD))
	b.scratch, b.agent.PIDFD = nil, -1
	return err
}

// destroy takes down in the order in which things depend on each other. It
// goes on after an error, so that one fault leaves as little as possible.
func (b *box) destroy() error {
	ctx, cancel := context.WithTimeout(context.Background(), destroyTime)
	defer cancel()
	var errs []error
	// The code's group first: a tree that forks while its namespace is being
	// killed outlives it by far. The agent can die meanwhile.
	_ = unix.PidfdSendSignal(b.agent.PIDFD, unix.SIGKILL, nil, 0) // killAgent says what is wrong
	if b.group != nil {
		errs = append(errs, b.group.Kill(ctx))
		// That takes a third of the time that the agent needs to die.
		b.watch.Wait()
		b.group.Retire()
	}
	errs = append(errs, b.killAgent(ctx))
	b.watch.Wait()
	b.stream.Close()
	errs = append(errs, b.giveBack())
	errs = append(errs, b.letGo())
	if b.closedHook != nil {
		b.closedHook()
	}
	return errors.Join(errs...)
}
