package suite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"tranca"
	"tranca/hostile"
	"tranca/hostile/attempt"
	"tranca/hostile/world"
)

// Against is somebody else's sandbox: a command that starts Python in it. The
// program is given on standard input; what comes back are exit status and
// output.
type Against struct {
	// Args is the command line.
	Args []string
}

// againstPatience is how long a command may take for one program.
const againstPatience = 30 * time.Second

// View implements [Target]. The program makes a folder of its own in whatever /tmp
// the command gives it, which may be the host's.
func (a *Against) View() world.View { return world.View{Space: "/tmp/{mark}", Tmp: "/tmp/{mark}"} }

// script is a program for the interpreter, that makes its folder first.
func script(p *attempt.Program) (string, error) {
	text, err := attempt.Python(*p)
	return "import os\ntry: os.mkdir('/tmp/" + p.Mark + "')\nexcept OSError: pass\n" + text, err
}

// Cannot implements [Target].
func (a *Against) Cannot(p *hostile.Probe) string {
	switch {
	case !p.SaidInPython():
		return "it can't be said in Python: " + p.PythonWhy
	case len(p.Policy.Mounts) > 0:
		return "a command has no mounts to declare"
	case len(p.Policy.Env) > 0:
		return "a command has no environment to declare"
	case len(p.Again) > 0:
		return "a command is one sandbox for one program"
	case len(p.Collect) > 0:
		return "a command has no file interface"
	case p.Guarantee == tranca.ItemWall || p.Guarantee == tranca.ItemCPUTime || p.Guarantee == tranca.ItemCPUs:
		return "a command was not told how much time it may give, and nobody counts it"
	}
	return ""
}

// Run implements [Target].
func (a *Against) Run(ctx context.Context, t *Trial) (*Outcome, error) {
	out := &Outcome{Seen: world.Seen{Output: map[string][]byte{}}}
	var mu sync.Mutex
	run := func(what string, p *attempt.Program) (*Ran, error) {
		if p == nil {
			return nil, nil
		}
		t.World.Own("/tmp/" + p.Mark)
		text, err := script(p)
		if err != nil {
			return nil, err
		}
		limited, cancel := context.WithTimeout(ctx, againstPatience)
		defer cancel()
		cmd := exec.CommandContext(limited, a.Args[0], a.Args[1:]...)
		cmd.Stdin = strings.NewReader(text)
		ran, printed, err := capture(cmd)
		_ = syscall.Kill(-processOf(cmd), syscall.SIGKILL)
		mu.Lock()
		defer mu.Unlock()
		out.Seen.Output[what] = printed
		if limited.Err() != nil && ctx.Err() == nil {
			out.Trouble = append(out.Trouble, "it hung: "+againstPatience.String()+" were not enough")
		}
		return ran, err
	}
	if t.Probe.KillSupervisor && !t.Twin {
		return a.orphan(ctx, t)
	}
	var beside *Ran
	var besideErr error
	var wg sync.WaitGroup
	wg.Go(func() { beside, besideErr = run("output beside", t.Beside) })
	ran, err := run("output", t.Attempt)
	wg.Wait()
	if err = errors.Join(err, besideErr); err != nil {
		return nil, err
	}
	out.Attempt, out.Beside = *ran, beside
	out.Next, err = run("output of the next", t.Next)
	return out, err
}

// processOf is the group of a command, or one that nobody has.
func processOf(cmd *exec.Cmd) int {
	if cmd.Process == nil {
		return 1 << 30
	}
	return cmd.Process.Pid
}

// orphan kills the command while its program runs.
func (a *Against) orphan(ctx context.Context, t *Trial) (*Outcome, error) {
	t.World.Own("/tmp/" + t.World.Mark)
	text, err := script(t.Attempt)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(a.Args[0], a.Args[1:]...)
	cmd.Stdin = strings.NewReader(text)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	for end := time.Now().Add(runsBy); len(t.World.Marked()) == 0 && time.Now().Before(end) && ctx.Err() == nil; {
		time.Sleep(10 * time.Millisecond)
	}
	seen := len(t.World.Marked()) > 0
	err = cmd.Process.Kill()
	_ = cmd.Wait()
	// What the command leaves in its group is looked for before it is killed.
	defer func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }()
	time.Sleep(time.Second)
	if !seen {
		return nil, errors.New("its program was never seen on the host, so that nothing can be said of what lives on")
	}
	return &Outcome{Attempt: Ran{Exit: exitOf(cmd.ProcessState), CPUMS: -1}}, err
}

// Try runs a piece of Python by the command, and says what it printed where it
// does not end well.
func (a *Against) Try(ctx context.Context, code string) error {
	ctx, cancel := context.WithTimeout(ctx, againstPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, a.Args[0], a.Args[1:]...)
	cmd.Stdin = strings.NewReader(code)
	ran, out, err := capture(cmd)
	if err == nil && !ran.Exit.Success() {
		err = fmt.Errorf("%s: %s", ran.Exit, clip(string(out)))
	}
	return err
}

// Tool says the version of a command's program, as it tells it itself.
func (a *Against) Tool(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	ran, out, err := capture(exec.CommandContext(ctx, a.Args[0], "--version"))
	first, _, _ := bytes.Cut(out, []byte("\n"))
	if err != nil || !ran.Exit.Success() || len(first) == 0 {
		return filepath.Base(a.Args[0]) + ", which tells no version"
	}
	return clip(string(first))
}
