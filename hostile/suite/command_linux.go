package suite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"tranca"
	"tranca/hostile/attempt"
	"tranca/hostile/world"
)

// commands runs the programs of a trial each by a command of its own.
type commands struct {
	// run runs one and returns what it printed.
	run func(*attempt.Program) (*Ran, []byte, error)

	mu  sync.Mutex
	out *Outcome
}

func newCommands(run func(*attempt.Program) (*Ran, []byte, error)) *commands {
	return &commands{run: run, out: newOutcome()}
}

// play runs a program, if there is one, and keeps what it printed.
func (c *commands) play(what string, p *attempt.Program) (*Ran, error) {
	if p == nil {
		return nil, nil
	}
	ran, text, err := c.run(p)
	c.see(what, text)
	return ran, err
}

func (c *commands) see(what string, text []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if kept := c.out.Seen.Output[what]; len(kept) < mostSeen {
		c.out.Seen.Output[what] = append(kept, text...)
	}
}

// together runs the attempt with its neighbour beside it.
func (c *commands) together(t *Trial) error {
	var beside *Ran
	var besideErr error
	var wg sync.WaitGroup
	wg.Go(func() { beside, besideErr = c.play("output beside", t.Beside) })
	ran, err := c.play("output", t.Attempt)
	wg.Wait()
	if err = errors.Join(err, besideErr); err != nil {
		return err
	}
	c.out.Attempt, c.out.Beside = *ran, beside
	return nil
}

// orphan starts a command, waits until so many processes of the trial are seen,
// and kills the command alone: what lives on is found by the look from the host,
// after which its process group is killed, too.
func orphan(ctx context.Context, cmd *exec.Cmd, t *Trial, many int) (*Outcome, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	t.World.Later(func() error {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		return nil
	})
	seen := until(ctx, func() bool { return len(t.World.Marked()) >= many })
	err := cmd.Process.Kill()
	_ = cmd.Wait()
	if !seen {
		return nil, errors.New("its program was never seen on the host, so that nothing can be said of what lives on")
	}
	out := newOutcome()
	out.Attempt.Exit, out.Attempt.CPUMS = exitOf(cmd.ProcessState), -1
	return out, err
}

// runsBy is how long a program may take to be seen.
const runsBy = 20 * time.Second

// until waits until something is so, or a program has had its time to be seen.
func until(ctx context.Context, so func() bool) bool {
	for end := time.Now().Add(runsBy); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) || ctx.Err() != nil {
			return false
		}
	}
	return true
}

// capture runs a command and keeps of its output what fits.
func capture(cmd *exec.Cmd) (*Ran, []byte, error) {
	out := &bounded{left: 4 << 20}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	began := time.Now()
	err := cmd.Run()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) && !errors.Is(err, exec.ErrWaitDelay) {
		return nil, nil, fmt.Errorf("run %s: %w", filepath.Base(cmd.Path), err)
	}
	text := out.bytes()
	ran := &Ran{
		Exit: exitOf(cmd.ProcessState), Printed: out.all, Cut: out.all > int64(len(text)),
		WallMS: time.Since(began).Milliseconds(),
		Began:  began,
		CPUMS:  (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Milliseconds(),
	}
	ran.Lines, ran.Done = readLines(text)
	return ran, text, nil
}

func exitOf(s *os.ProcessState) tranca.Exit {
	st, ok := s.Sys().(syscall.WaitStatus)
	switch {
	case ok && st.Signaled():
		return tranca.Exit{Code: -1, Signal: tranca.Signal(st.Signal()), Reason: tranca.EndSignaled}
	case ok && st.Exited():
		return tranca.Exit{Code: st.ExitStatus(), Reason: tranca.EndExited}
	}
	return tranca.Exit{Code: -1, Reason: tranca.EndError}
}

// bounded keeps the first bytes that are written to it and counts all. Safe for
// concurrent use.
type bounded struct {
	mu   sync.Mutex
	kept bytes.Buffer
	left int
	all  int64
}

// Write implements [io.Writer]. It takes everything.
func (b *bounded) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all += int64(len(p))
	n := min(len(p), b.left)
	b.left -= n
	b.kept.Write(p[:n])
	return len(p), nil
}

// bytes returns a copy of what was kept so far.
func (b *bounded) bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.kept.Bytes())
}

// newOutcome is one of which nothing is seen yet.
func newOutcome() *Outcome {
	return &Outcome{Seen: world.Seen{Output: map[string][]byte{}, Told: map[string]bool{}}}
}
