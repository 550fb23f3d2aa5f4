package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/confine"
	"tranca/internal/linux/forkexec"
	"tranca/internal/machine"
)

// clockTick is the unit of CPU time in /proc; it is 1/100 s on every
// architecture that Linux still has.
const clockTick = 10 * time.Millisecond

// plainBox is one agent of the weaker rung as a [machine.Machine]. What its
// programs used is what the kernel adds up for the agent's reaped children.
type plainBox struct {
	agent       forkexec.Child
	stream      *net.UnixConn
	diagnosis   *os.File
	home        *plainFolder
	limits      tranca.Limits
	enforcement []tranca.Enforcement
	release     func()
	limit       chan tranca.Reason // never told: the kernel ends by itself

	mu   sync.Mutex
	pid  int           // 0 once reaped
	base time.Duration // CPU time before Begin

	end *confine.Destruction
}

var _ machine.Machine = (*plainBox)(nil)

func (b *plainBox) Stream() io.ReadWriteCloser        { return b.stream }
func (b *plainBox) Limit() <-chan tranca.Reason       { return b.limit }
func (b *plainBox) Enforcement() []tranca.Enforcement { return b.enforcement }

func (b *plainBox) Begin(context.Context) error {
	used, err := b.childTime()
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.base = used
	return nil
}

func (b *plainBox) Observe(context.Context) (machine.Observation, error) {
	used, err := b.childTime()
	if err != nil {
		return machine.Observation{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	o := machine.Observation{Usage: tranca.Usage{CPU: used - b.base, MemoryPeak: -1, ProcessesPeak: -1}}
	// More than a second beyond the limit is what the kernel kills a program
	// for that ignores SIGXCPU.
	whole := (b.limits.CPUTime + time.Second - 1) / time.Second * time.Second
	if o.Usage.CPU >= whole+time.Second/2 {
		o.Limit = tranca.EndCPU
	}
	return o, nil
}

// childTime reads the CPU time of the agent's reaped children.
func (b *plainBox) childTime() (time.Duration, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.pid == 0 {
		return 0, fmt.Errorf("%w: the guest agent has ended", tranca.ErrGone)
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(b.pid) + "/stat")
	if err != nil {
		return 0, fmt.Errorf("%w: %w", tranca.ErrGone, err)
	}
	return parseChildTime(string(text))
}

// parseChildTime takes cutime and cstime, fields 16 and 17, from a line whose
// second field is a name in parentheses that may itself hold any character.
func parseChildTime(stat string) (time.Duration, error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 15 {
		return 0, fmt.Errorf("%w: /proc stat line %q", tranca.ErrGone, stat)
	}
	var ticks int64
	for _, f := range fields[13:15] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%w: /proc stat line %q", tranca.ErrGone, stat)
		}
		ticks += n
	}
	return time.Duration(ticks) * clockTick, nil
}

// Kill ends the agent's children, each with its process group, until there are
// none: programs that lose their parent become the agent's children too.
func (b *plainBox) Kill(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.pid != 0 {
		children, err := childrenOf(b.pid)
		if err != nil || len(children) == 0 {
			return err
		}
		for _, pid := range children {
			// The group first: its leader's death would free the number.
			_ = unix.Kill(-pid, unix.SIGKILL) // most lead no group
			if err := unix.Kill(pid, unix.SIGKILL); err != nil && err != unix.ESRCH {
				return os.NewSyscallError("kill", err)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("programs do not die: %w", context.Cause(ctx))
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

// childrenOf lists the living children of a process. Zombies wait for their
// parent and are dead.
func childrenOf(pid int) ([]int, error) {
	tasks, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var living []int
	for _, task := range tasks {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/task/" + task.Name() + "/children")
		if err != nil {
			continue // the thread has ended
		}
		for _, word := range strings.Fields(string(text)) {
			child, err := strconv.Atoi(word)
			if err == nil && isAlive(child) {
				living = append(living, child)
			}
		}
	}
	return living, nil
}

func isAlive(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	rest := string(text[strings.LastIndexByte(string(text), ')')+1:])
	return !strings.HasPrefix(rest, " Z") && !strings.HasPrefix(rest, " X")
}

// Close ends programs and agent and removes the folder.
func (b *plainBox) Close(ctx context.Context) error { return b.end.Run(ctx, b.destroy) }

func (b *plainBox) destroy() error {
	ctx, cancel := context.WithTimeout(context.Background(), confine.KillTime)
	defer cancel()
	errs := []error{b.Kill(ctx)}
	b.mu.Lock()
	_, err := b.agent.Reap()
	b.pid = 0
	b.mu.Unlock()
	b.stream.Close() // its session may have closed it before
	errs = append(errs, err, b.diagnosis.Close(), b.home.remove())
	if b.release != nil {
		b.release()
	}
	return errors.Join(errs...)
}
