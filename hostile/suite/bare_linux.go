package suite

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"tranca/hostile"
	"tranca/hostile/attempt"
	"tranca/hostile/world"
)

// Bare runs programs without any boundary, as somebody does who has none. It is
// meant for the disposable place.
type Bare struct {
	// Program is the static program's file.
	Program string
	// Interpreter is Python's, where the form in Python is run instead.
	Interpreter string
	// Space is a folder for programs to write to.
	Space string
}

// barePatience is how long a bare program may take; probes are bounded, so that
// none needs as much.
const barePatience = 20 * time.Second

// View implements [Target].
func (b *Bare) View() world.View {
	return world.View{Space: b.Space, Tmp: "/tmp", Bare: true}
}

// Cannot implements [Target].
func (b *Bare) Cannot(*hostile.Probe) string { return "" }

// Run implements [Target].
func (b *Bare) Run(ctx context.Context, t *Trial) (*Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, barePatience)
	defer cancel()
	if t.Probe.KillSupervisor && !t.Twin {
		return b.orphan(ctx, t)
	}
	c := newCommands(func(p *attempt.Program) (*Ran, []byte, error) {
		cmd, err := b.command(ctx, p)
		if err != nil {
			return nil, nil, err
		}
		cmd.Dir = b.Space
		cmd.Env = os.Environ()
		for name, value := range t.Env {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		return capture(cmd)
	})
	stop := c.collectDuring(t.Collect)
	err := c.together(t)
	stop()
	if err != nil {
		return nil, err
	}
	for _, one := range t.Collect {
		c.readNaively(one)
	}
	if c.out.Again, err = c.play("output of the second run", t.Again); err != nil {
		return nil, err
	}
	c.out.Next, err = c.play("output of the next", t.Next)
	return c.out, err
}

// orphan runs the program below another process that is then killed: what has
// no boundary lives on.
func (b *Bare) orphan(ctx context.Context, t *Trial) (*Outcome, error) {
	above := &attempt.Program{Mark: t.World.Mark, Calls: t.Attempt.Calls, Steps: []attempt.Step{{Do: "spawn", Setup: true, Steps: t.Attempt.Steps}}}
	cmd, err := b.command(context.WithoutCancel(ctx), above)
	if err != nil {
		return nil, err
	}
	const both = 2
	return orphan(ctx, cmd, t, both)
}

func (b *Bare) command(ctx context.Context, p *attempt.Program) (*exec.Cmd, error) {
	if b.Interpreter != "" {
		script, err := attempt.Python(*p)
		cmd := exec.CommandContext(ctx, b.Interpreter, "-I", "-", p.Mark)
		cmd.Stdin = strings.NewReader(script)
		return cmd, err
	}
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, b.Program, p.Mark)
	cmd.Stdin = bytes.NewReader(text)
	return cmd, nil
}

// collectDuring reads what a program makes, again and again while it runs, as
// somebody does who thinks of no evil: it follows links. It is the control of the
// file interface.
func (c *commands) collectDuring(all []hostile.Collect) (stop func()) {
	if !slices.ContainsFunc(all, func(one hostile.Collect) bool { return one.During }) {
		return func() {}
	}
	return world.Every(time.Millisecond, func() {
		for _, one := range all {
			if one.During {
				c.readNaively(one)
			}
		}
	})
}

func (c *commands) readNaively(one hostile.Collect) {
	got := Collected{Path: one.Path}
	if one.List {
		got.Said, got.Brought = c.listNaively(one.Path)
	} else {
		got = c.openNaively(one.Path)
	}
	if one.During {
		return // of which too many would be told
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.Collected = append(c.out.Collected, got)
}

func (c *commands) listNaively(root string) (said string, brought bool) {
	names := 0
	_ = filepath.Walk(root, func(path string, _ os.FileInfo, _ error) error {
		names++
		c.see("the collected file "+root, []byte(path+"\n"))
		return nil
	})
	return fmt.Sprintf("%d names", names), names > 0
}

func (c *commands) openNaively(path string) Collected {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return Collected{Path: path, Said: err.Error()}
	}
	defer f.Close()
	_ = f.SetReadDeadline(time.Now().Add(time.Second))
	data, _ := io.ReadAll(io.LimitReader(f, most))
	c.see("the collected file "+path, data)
	return Collected{Path: path, Said: fmt.Sprintf("%d bytes", len(data)), Brought: len(data) > 0, Special: !regular(f)}
}

func regular(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular()
}
