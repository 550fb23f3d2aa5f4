package cgroup

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
)

// baseline is what the counters showed at the last Begin. The zero value is
// right for a fresh group.
type baseline struct {
	cpu      time.Duration
	spent    time.Duration // at the last Begin at which nothing was left running
	oom      int64
	refused  int64
	pidsPeak int64 // of pids.peak, which can't be reset
	pidsSeen int64 // the highest number that Stats has read since
	memPeak  int64 // of a memory.peak that can't be reset
	// peak is the v2 memory.peak: a reset holds for one open file alone.
	peak *os.File
}

// Begin starts the counting anew. A fresh group needs no Begin. Memory that
// the code still holds, such as files in a tmpfs, stays charged and is part of
// the new peak. While something of the code lives, [Stats.CPUSpent] goes on:
// each further start would give it fresh CPU time otherwise.
func (g *Group) Begin() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.begin(g.somebody())
}

// BeginAfter is Begin for a caller that knows better who of the code lives: a
// kernel in user space is no program, and always there. One that has no program
// is first given a moment to return what the last one held. It must not be
// called by two at once.
func (g *Group) BeginAfter(alive bool) error {
	if !alive && g.memory != nil {
		g.settle()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.begin(alive)
}

// settle gives gVisor's Sentry time to return what a program held: it does so
// some time after the program has ended, and until then it would be part of the
// next one's peak.
func (g *Group) settle() {
	if g.stays == 0 {
		g.stays, _ = g.memoryUse() // no program has run; an error is begin's to tell
		return
	}
	g.stays = lowest(g.memoryUse, g.stays+settleLess, time.Sleep)
}

const (
	settleStep  = 2 * time.Millisecond
	settleSteps = 50      // at most
	settleWait  = 10      // steps without a fall, after which the rest is held to stay
	settleLess  = 4 << 20 // bytes above what stayed before that are not worth a wait
)

// lowest waits while the use of memory falls, but not below what is enough, and
// returns what it came down to.
func lowest(use func() (int64, error), enough int64, sleep func(time.Duration)) int64 {
	least, err := use()
	for step, still := 0, 0; err == nil && least > enough && step < settleSteps && still < settleWait; step++ {
		sleep(settleStep)
		var now int64
		still++
		if now, err = use(); err == nil && now < least {
			least, still = now, 0
		}
	}
	return least
}

func (g *Group) begin(alive bool) error {
	b, err := g.current(alive)
	if err != nil {
		return err
	}
	if g.memory != nil {
		g.oom.reset(b.oom)
		if err := g.resetPeak(&b); err != nil {
			return err
		}
	}
	g.base = b
	return nil
}

// current reads what a new baseline holds, all but the peak of the memory. The
// caller holds mu.
func (g *Group) current(alive bool) (b baseline, err error) {
	if g.destroyed {
		return b, fmt.Errorf("cgroup: %w", tranca.ErrClosed)
	}
	b.peak = g.base.peak
	if g.cpuTime != nil {
		if b.cpu, err = cpuTime(g.cpuTime.place, g.cpuTime.v2); err != nil {
			return b, err
		}
		if b.spent = b.cpu; alive {
			b.spent = g.base.spent
		}
	}
	if g.pids != nil {
		if b.refused, err = g.pids.value("pids.events", "max"); err != nil {
			return b, err
		}
		if b.pidsPeak, err = g.pids.optional("pids.peak"); err != nil {
			return b, err
		}
	}
	if g.memory != nil {
		b.oom, err = g.oomKills()
	}
	return b, err
}

func (g *Group) resetPeak(b *baseline) (err error) {
	if !g.memory.v2 {
		return g.memory.write("memory.max_usage_in_bytes", "0")
	}
	if b.peak == nil {
		b.peak, err = g.memory.open("memory.peak", unix.O_RDWR)
		if errors.Is(err, unix.ENOENT) {
			return nil // before Linux 5.19
		}
		if err != nil && !errors.Is(err, unix.EACCES) {
			return err
		}
	}
	if b.peak != nil {
		if _, err := unix.Write(int(b.peak.Fd()), []byte("reset")); err == nil {
			return nil
		}
		b.peak.Close()
		b.peak = nil
	}
	// Before Linux 6.12 it can only be read.
	b.memPeak, err = g.memory.optional("memory.peak")
	return err
}

// optional reads a number from a file that older kernels do not have; then
// it is 0.
func (p place) optional(file string) (int64, error) {
	n, err := p.number(file)
	if errors.Is(err, unix.ENOENT) {
		return 0, nil
	}
	return n, err
}

// CPUTime is the CPU time of the code since Begin: one short read, for a
// caller that looks again and again. It is 0 where nothing counts it.
func (g *Group) CPUTime() (time.Duration, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.cpuTimeLocked()
}

func (g *Group) cpuTimeLocked() (time.Duration, error) {
	if g.destroyed {
		return 0, fmt.Errorf("cgroup: %w", tranca.ErrClosed)
	}
	if g.cpuTime == nil {
		return 0, nil
	}
	t, err := cpuTime(g.cpuTime.place, g.cpuTime.v2)
	return t - g.base.cpu, err
}

// Stats reads all counters. It fails after Destroy.
func (g *Group) Stats() (Stats, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := Stats{MemoryPeak: -1}
	var err error
	if s.CPUTime, err = g.cpuTimeLocked(); err != nil {
		return Stats{}, err
	}
	s.CPUSpent = s.CPUTime + g.base.cpu - g.base.spent
	if g.memory != nil {
		if err := g.memoryStats(&s); err != nil {
			return Stats{}, err
		}
	}
	if g.pids != nil {
		if err := g.pidsStats(&s); err != nil {
			return Stats{}, err
		}
	}
	return s, nil
}

func (g *Group) memoryStats(s *Stats) error {
	kills, err := g.oomKills()
	if err != nil {
		return err
	}
	s.OOMKills = kills - g.base.oom
	if s.Memory, err = g.memoryUse(); err != nil {
		return err
	}
	peak := "memory.max_usage_in_bytes"
	if g.memory.v2 {
		peak = "memory.peak"
	}
	var n int64
	if g.base.peak != nil {
		n, err = preadNumber(g.base.peak)
	} else {
		n, err = g.memory.optional(peak)
	}
	if err != nil {
		return err
	}
	// A peak that was not reset tells something only when it was passed.
	if n > g.base.memPeak || g.base.memPeak == 0 {
		s.MemoryPeak = n
	}
	return nil
}

// memoryUse is the bytes that the code's place has in use now.
func (g *Group) memoryUse() (int64, error) {
	if g.memory.v2 {
		return g.memory.number("memory.current")
	}
	return g.memory.number("memory.usage_in_bytes")
}

func preadNumber(f *os.File) (int64, error) {
	var b [32]byte
	n, err := unix.Pread(int(f.Fd()), b[:], 0)
	if err != nil {
		return 0, fmt.Errorf("cgroup: %w", &os.PathError{Op: "read", Path: f.Name(), Err: err})
	}
	return strconv.ParseInt(strings.TrimSpace(string(b[:n])), 10, 64)
}

func (g *Group) pidsStats(s *Stats) error {
	refused, err := g.pids.value("pids.events", "max")
	if err != nil {
		return err
	}
	s.Refused = refused - g.base.refused
	if s.Processes, err = g.pids.number("pids.current"); err != nil {
		return err
	}
	g.base.pidsSeen = max(g.base.pidsSeen, s.Processes)
	s.ProcessesPeak = g.base.pidsSeen
	peak, err := g.pids.optional("pids.peak")
	if err != nil {
		return err
	}
	if peak > g.base.pidsPeak {
		s.ProcessesPeak = peak
	}
	return nil
}

// oomKills reads how many processes of the code's tree the kernel has killed
// for want of memory, ever.
func (g *Group) oomKills() (int64, error) {
	if g.memory.v2 {
		return g.memory.value("memory.events", "oom_kill")
	}
	return g.memory.value("memory.oom_control", "oom_kill")
}

// cpuTime reads the CPU time of a group and all below it.
func cpuTime(p place, v2 bool) (time.Duration, error) {
	if v2 {
		us, err := p.value("cpu.stat", "usage_usec")
		return time.Duration(us) * time.Microsecond, err
	}
	ns, err := p.number("cpuacct.usage")
	return time.Duration(ns), err
}
