package suite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"tranca"
	"tranca/hostile"
	"tranca/hostile/attempt"
	"tranca/hostile/world"
)

// Bare runs programs without any boundary, as somebody does who has none. It is
// meant for the disposable place.
type Bare struct {
	// Program is the static program's file.
	Program string
	// Space is a folder for programs to write to.
	Space string
	// Python, where set, is an interpreter by which the form in Python is run
	// instead of the static program.
	Python string
}

// barePatience is how long a bare program may take; probes are bounded, so that
// none needs as much.
const barePatience = 20 * time.Second

// View implements [Target].
func (b *Bare) View() world.View {
	return world.View{Space: b.Space, Tmp: "/tmp", Bare: true}
}

// Cannot implements [Target].
func (b *Bare) Cannot(p *hostile.Probe) string {
	if b.Python != "" && !p.SaidInPython() {
		return "it can't be said in Python: " + p.PythonWhy
	}
	return ""
}

// Run implements [Target].
func (b *Bare) Run(ctx context.Context, t *Trial) (*Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, barePatience)
	defer cancel()
	if t.Probe.KillSupervisor && !t.Twin {
		return b.orphan(ctx, t)
	}
	out := &Outcome{Seen: world.Seen{Output: map[string][]byte{}}}
	var mu sync.Mutex
	run := func(what string, p *attempt.Program) (*Ran, error) {
		if p == nil {
			return nil, nil
		}
		ran, text, err := b.one(ctx, p, t.Env)
		mu.Lock()
		defer mu.Unlock()
		out.Seen.Output[what] = text
		return ran, err
	}
	var beside *Ran
	var besideErr error
	var wg sync.WaitGroup
	wg.Go(func() { beside, besideErr = run("output beside", t.Beside) })
	stop := collectNaively(t.Collect, out, &mu)
	ran, err := run("output", t.Attempt)
	stop()
	wg.Wait()
	if err = errors.Join(err, besideErr); err != nil {
		return nil, err
	}
	out.Attempt, out.Beside = *ran, beside
	for _, c := range t.Collect {
		readNaively(c, out, &mu)
	}
	if out.Again, err = run("output of the second run", t.Again); err != nil {
		return nil, err
	}
	out.Next, err = run("output of the next", t.Next)
	return out, err
}

// orphan runs the program below another process that is then killed: what has
// no boundary lives on.
func (b *Bare) orphan(ctx context.Context, t *Trial) (*Outcome, error) {
	above := &attempt.Program{Mark: t.World.Mark, Calls: t.Attempt.Calls, Steps: []attempt.Step{{Do: "spawn", Setup: true, Steps: t.Attempt.Steps}}}
	cmd, err := b.command(ctx, above)
	if err != nil {
		return nil, err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	for end := time.Now().Add(runsBy); len(t.World.Marked()) < 2 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	err = cmd.Process.Kill()
	_ = cmd.Wait()
	return &Outcome{Attempt: Ran{Exit: exitOf(cmd.ProcessState), CPUMS: -1}}, err
}

// one runs one program and returns what it printed.
func (b *Bare) one(ctx context.Context, p *attempt.Program, env map[string]string) (*Ran, []byte, error) {
	cmd, err := b.command(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	cmd.Dir = b.Space
	cmd.Env = os.Environ()
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	return capture(cmd)
}

func (b *Bare) command(ctx context.Context, p *attempt.Program) (*exec.Cmd, error) {
	if b.Python != "" {
		script, err := attempt.Python(*p)
		if err != nil {
			return nil, err
		}
		cmd := exec.CommandContext(ctx, b.Python, "-I", "-", p.Mark)
		cmd.Stdin = bytes.NewReader([]byte(script))
		return cmd, nil
	}
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, b.Program, p.Mark)
	cmd.Stdin = bytes.NewReader(text)
	return cmd, nil
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
	ran := &Ran{
		Exit: exitOf(cmd.ProcessState), Printed: out.all, Cut: out.all > int64(out.kept.Len()),
		WallMS: time.Since(began).Milliseconds(),
		CPUMS:  (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Milliseconds(),
	}
	ran.Lines, ran.Done = readLines(out.kept.Bytes())
	return ran, out.kept.Bytes(), nil
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

// bounded keeps the first bytes and counts all.
type bounded struct {
	mu   sync.Mutex
	kept bytes.Buffer
	left int
	all  int64
}

func (b *bounded) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all += int64(len(p))
	n := min(len(p), b.left)
	b.left -= n
	b.kept.Write(p[:n])
	return len(p), nil
}

// collectNaively reads what programs make as somebody does who thinks of no
// evil: it follows links. It is the control of the file interface.
func collectNaively(all []hostile.Collect, out *Outcome, mu *sync.Mutex) (stop func()) {
	if !slices.ContainsFunc(all, func(c hostile.Collect) bool { return c.During }) {
		return func() {}
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
			for _, c := range all {
				if c.During {
					readNaively(c, out, mu)
				}
			}
		}
	})
	return func() {
		close(done)
		wg.Wait()
	}
}

func readNaively(c hostile.Collect, out *Outcome, mu *sync.Mutex) {
	keep := func(data []byte) {
		mu.Lock()
		defer mu.Unlock()
		if kept := out.Seen.Output["the collected file "+c.Path]; len(kept) < mostSeen {
			out.Seen.Output["the collected file "+c.Path] = append(kept, data...)
		}
	}
	if c.List {
		_ = filepath.Walk(c.Path, func(path string, info os.FileInfo, err error) error {
			keep([]byte(path + "\n"))
			return nil
		})
		return
	}
	f, err := os.OpenFile(c.Path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer f.Close()
	_ = f.SetReadDeadline(time.Now().Add(time.Second))
	data, _ := io.ReadAll(io.LimitReader(f, most))
	keep(data)
	if !c.During && !regular(f) {
		mu.Lock()
		defer mu.Unlock()
		out.Collected = append(out.Collected, specialRead)
	}
}

// specialRead says that something was read that is no file.
const specialRead = "read as if it were a file, which it is not"

func regular(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular()
}
