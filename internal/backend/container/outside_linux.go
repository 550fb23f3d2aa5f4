package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/linux/cgroup"
	"tranca/internal/linux/mount"
)

// outside is what this host sees of a container without asking its engine: its
// control groups, its writable space, its first process. Safe for concurrent
// use; a nil one sees nothing.
type outside struct {
	stage *stage
	// spaces are the parts of the writable space, where the engine has made
	// them and this process may look.
	spaces []*os.File

	mu     sync.Mutex
	pid    int // of the first process
	pidfd  int // the same; -1 for none
	view   *cgroup.View
	own    int64 // memory that the agent holds after its boot
	tasks  int64 // and its threads
	latest sample
	oom    bool
	used   bool // something was begun
	guest  bool // the code's processes are those of a kernel of its own
}

// lookFromOutside finds the container's first process, and its control groups,
// and compares what they hold with what was asked for.
func (m *box) lookFromOutside(ctx context.Context) error {
	m.outside = &outside{stage: m.plan.stage, pidfd: -1, guest: m.plan.guest}
	c, err := m.engine.Inspect(ctx, m.id)
	if err != nil {
		return err
	}
	if c.State.Pid <= 0 {
		return fmt.Errorf("container %s has no process: it is %s: %s", m.id[:12], quote(c.State.Status), quote(c.State.Error))
	}
	o := m.outside
	if o.pidfd, err = unix.PidfdOpen(c.State.Pid, 0); err != nil {
		o.pidfd = -1
		return fmt.Errorf("the container's first process %d can't be found on this host: %w", c.State.Pid, os.NewSyscallError("pidfd_open", err))
	}
	o.pid = c.State.Pid
	if o.view, err = cgroup.ViewOf(c.State.Pid); err != nil {
		return err
	}
	if o.stage == nil {
		o.openSpaces(c.State.Pid)
	}
	return m.checkGroups()
}

// openSpaces opens the parts of the writable space in the container. Only root
// and the owner of the container's user namespace may; without it nobody sees
// that they were full, though they are.
func (o *outside) openSpaces(pid int) {
	root, err := unix.Open(fmt.Sprintf("/proc/%d/root", pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(root)
	for _, folder := range spaceFolders {
		if fd, err := mount.Beneath(root, folder[1:]); err == nil {
			o.spaces = append(o.spaces, os.NewFile(uintptr(fd), folder))
		}
	}
}

// checkGroups refuses a container whose control groups hold less than was asked
// for, whatever the engine says.
func (m *box) checkGroups() error {
	l, noSwap, err := m.outside.view.Limits()
	if err != nil {
		return err
	}
	h := m.plan.config.HostConfig
	var problems []tranca.Problem
	add := func(item tranca.Item, asked string, missing string) {
		if !m.plan.policy.Waives(item) {
			problems = append(problems, tranca.Problem{
				Item: item, Asked: asked, Missing: missing, Waivable: true,
				Mend: "let the engine use the control group's controller (delegated by systemd, or on the kernel's command line), or waive it: waive: [" + string(item) + "]",
			})
		}
	}
	switch {
	case h.Memory == 0: // waived
	case l.Memory == 0 || l.Memory > h.Memory:
		add(tranca.ItemMemory, fmt.Sprintf("memory of %d bytes", h.Memory), fmt.Sprintf("the container's group holds %d (0 is no limit)", l.Memory))
	case !noSwap && swapThere():
		add(tranca.ItemMemory, "no swap", "the container's group may swap")
	}
	if want := value(h.PidsLimit); want != 0 && (l.Processes == 0 || l.Processes > want) {
		add(tranca.ItemPIDs, fmt.Sprintf("at most %d tasks", want), fmt.Sprintf("the container's group holds %d (0 is no limit)", l.Processes))
	}
	if want := h.NanoCPUs / 1e6; want != 0 && (l.MilliCPUs == 0 || l.MilliCPUs > want) {
		add(tranca.ItemCPUs, fmt.Sprintf("%d thousandths of a CPU", want), fmt.Sprintf("the container's group has %d (0 is no limit)", l.MilliCPUs))
	}
	if problems != nil {
		return &tranca.RefusalError{Backend: Name, Problems: problems}
	}
	return nil
}

// swapThere reports whether this host swaps at all.
func swapThere() bool {
	text, err := os.ReadFile("/proc/swaps")
	if err != nil {
		return true
	}
	lines := 0
	for _, c := range text {
		if c == '\n' {
			lines++
		}
	}
	return lines > 1
}

// process says what this host sees of the first process.
func (o *outside) process() seen {
	dir := fmt.Sprintf("/proc/%d/", o.pid)
	line, err := os.ReadFile(dir + "cmdline")
	if err != nil || len(line) == 0 {
		return seen{}
	}
	first, _, _ := strings.Cut(string(line), "\x00")
	s := seen{known: true, agent: first == agentPath}
	fds, err := os.ReadDir(dir + "fd")
	if err != nil {
		return s // nobody else may look; then it is no virtual machine either
	}
	for _, fd := range fds {
		if target, err := os.Readlink(dir + "fd/" + fd.Name()); err == nil && target == "anon_inode:kvm-vm" {
			s.vm = true
		}
	}
	return s
}

// settle notes what the agent itself uses, now that it has booted.
func (o *outside) settle() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tasks = agentTasks
	if s, err := o.view.Stats(); err == nil {
		o.own, o.tasks = s.Memory, max(s.Processes, agentTasks)
	}
}

// begin starts the counting anew. What an earlier program has left alive keeps
// its CPU time on the clock.
func (o *outside) begin() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	alone, err := o.view.Alone()
	if err != nil {
		return err
	}
	// What lives under a kernel of its own can't be told from that kernel: there
	// an earlier program's leavings get fresh CPU time with each new one.
	busy := o.used && !alone && !o.guest
	o.used = true
	o.latest, o.oom = sample{usage: tranca.Usage{CPU: -1, MemoryPeak: -1, ProcessesPeak: -1}}, false
	return o.view.Begin(busy)
}

// stats reads the counters. What the agent holds is taken off: it is measured
// for memory, and known for tasks.
func (o *outside) stats() (sample, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s, err := o.view.Stats()
	if err != nil {
		return sample{}, err
	}
	memory, tasks, cpu := o.view.Counts()
	out := sample{
		usage:     tranca.Usage{CPU: -1, MemoryPeak: -1, ProcessesPeak: -1},
		countsCPU: cpu, cpuSpent: s.CPUSpent, oomKills: s.OOMKills, refused: s.Refused,
		processes: max(s.Processes-o.tasks, 0),
	}
	if o.guest {
		tasks, out.refused = false, 0 // a process of the code's is none of this host's
	}
	if !tasks {
		out.processes = 1 // it is not known that there is none
	}
	if cpu {
		out.usage.CPU = s.CPUTime
	}
	if memory && s.MemoryPeak >= 0 {
		out.usage.MemoryPeak = max(s.MemoryPeak-o.own, 0)
	}
	if tasks {
		out.usage.ProcessesPeak = max(s.ProcessesPeak-o.tasks, 0)
	}
	o.latest = out
	o.oom = o.oom || out.oomKills > 0
	return out, nil
}

// last is the usage of the last sample, for a container that is gone.
func (o *outside) last() tranca.Usage {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.latest.usage
}

// sawOOM reports whether a sample has shown a kill for want of memory.
func (o *outside) sawOOM() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.oom
}

// full reports whether the writable space has no room, or no inode, left.
func (o *outside) full() (disk, inodes bool) {
	if o.stage != nil {
		return o.stage.full()
	}
	for _, f := range o.spaces {
		d, i := fullSpace(f)
		disk, inodes = disk || d, inodes || i
	}
	return disk, inodes
}

// kill ends the container's first process, and by it all others, without the
// engine. Only root and the owner of the container's user namespace may.
func (o *outside) kill(ctx context.Context) error {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.pidfd < 0 {
		return nil
	}
	err := unix.PidfdSendSignal(o.pidfd, unix.SIGKILL, nil, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return os.NewSyscallError("kill", err)
	}
	for ctx.Err() == nil {
		p := []unix.PollFd{{Fd: int32(o.pidfd), Events: unix.POLLIN}}
		if n, err := unix.Poll(p, int(20*time.Millisecond/time.Millisecond)); n > 0 || err != nil && err != unix.EINTR {
			break
		}
	}
	return context.Cause(ctx)
}

func (o *outside) close() error {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	var errs []error
	if o.pidfd >= 0 {
		errs = append(errs, unix.Close(o.pidfd))
		o.pidfd = -1
	}
	if o.view != nil {
		errs = append(errs, o.view.Close())
	}
	for _, f := range o.spaces {
		errs = append(errs, f.Close())
	}
	o.spaces = nil
	return errors.Join(errs...)
}
