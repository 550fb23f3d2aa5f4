package suite

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
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
	// Patience is how long the command may take for one program; 0 is 30 s.
	Patience time.Duration
}

func (a *Against) patience() time.Duration {
	const most = 30 * time.Second
	if a.Patience == 0 {
		return most
	}
	return a.Patience
}

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
	t.World.Own("/tmp/" + t.World.Mark)
	if t.Probe.KillSupervisor && !t.Twin {
		cmd, err := a.command(context.WithoutCancel(ctx), t.Attempt)
		if err != nil {
			return nil, err
		}
		return orphan(ctx, cmd, t, 1)
	}
	var c *commands
	c = newCommands(func(p *attempt.Program) (*Ran, []byte, error) {
		limited, cancel := context.WithTimeout(ctx, a.patience())
		defer cancel()
		cmd, err := a.command(limited, p)
		if err != nil {
			return nil, nil, err
		}
		ran, printed, err := capture(cmd)
		if cmd.Process != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
		if limited.Err() != nil && ctx.Err() == nil {
			c.hung(a.patience())
		}
		return ran, printed, err
	})
	if err := c.together(t); err != nil {
		return nil, err
	}
	var err error
	c.out.Next, err = c.play("output of the next", t.Next)
	return c.out, err
}

func (c *commands) hung(patience time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.Trouble = append(c.out.Trouble, "it hung: "+patience.String()+" were not enough")
}

// command is the command line with a program for it to run.
func (a *Against) command(ctx context.Context, p *attempt.Program) (*exec.Cmd, error) {
	text, err := script(p)
	cmd := exec.CommandContext(ctx, a.Args[0], a.Args[1:]...)
	cmd.Stdin = strings.NewReader(text)
	return cmd, err
}

// Try runs a piece of Python by the command, and says what it printed where it
// does not end well.
func (a *Against) Try(ctx context.Context, code string) error {
	ctx, cancel := context.WithTimeout(ctx, a.patience())
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
