package baseline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"tranca/internal/bench"
	"tranca/internal/bench/measure"
)

// codeWord stands for the program's text in a command line that is shown.
const codeWord = "CODE"

// command is a sandbox that a command makes for one program, or none.
type command struct {
	// argv is the command line; codeWord stands for the program.
	argv []string
	dir  string
	// rescue, where set, ends what the command has left when it was killed.
	// name is the argument that names the sandbox for it.
	rescue func(ctx context.Context, name string)
	folder string // is removed by Close
}

// nameWord stands for a name of the sandbox, another one for each.
const nameWord = "NAME"

// Run runs the program by the command.
func (c *command) Run(ctx context.Context, code string, out io.Writer) error {
	argv := make([]string, len(c.argv))
	name := "tranca-bench-" + random()
	for i, arg := range c.argv {
		switch arg {
		case codeWord:
			arg = code
		case nameWord:
			arg = name
		}
		argv[i] = arg
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var said bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.dir, out, &said
	// What it starts is ended with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		if cmd.Process != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
		if c.rescue != nil {
			c.rescue(context.WithoutCancel(ctx), name)
		}
		return context.Cause(ctx)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		lines := strings.Split(strings.TrimSpace(said.String()), "\n")
		return fmt.Errorf("%s: %w: %.300q", filepath.Base(argv[0]), err, lines[len(lines)-1])
	}
	return err
}

// Stream is Run: nothing cuts the output.
func (c *command) Stream(ctx context.Context, code string, out io.Writer) error {
	return c.Run(ctx, code, out)
}

// Describe adds nothing: the command line says all.
func (c *command) Describe(*bench.Subject) {}

// Close removes the folder.
func (c *command) Close(context.Context) error {
	if c.folder == "" {
		return nil
	}
	return os.RemoveAll(c.folder)
}

// subject makes a subject of a command. It runs in a folder of its own, which
// lies in memory where the host has such a place, as the sandboxes' own do.
func subject(about bench.Subject, c command) measure.Subject {
	about.Command = c.argv
	return measure.Subject{About: about, Open: func(context.Context) (measure.Runner, error) {
		opened := c
		dir, err := os.MkdirTemp(memoryFolder(), "tranca-bench-")
		if err != nil {
			return nil, err
		}
		opened.folder = dir
		if opened.dir == "" {
			opened.dir = dir
		}
		for i, arg := range opened.argv {
			if arg == folderWord {
				opened.argv = slices.Clone(opened.argv)
				opened.argv[i] = dir
			}
		}
		return &opened, nil
	}}
}

// folderWord stands for that folder in a command line.
const folderWord = "FOLDER"

func memoryFolder() string {
	var s syscall.Statfs_t
	const tmpfs = 0x01021994
	if err := syscall.Statfs("/dev/shm", &s); err == nil && s.Type == tmpfs {
		return "/dev/shm"
	}
	return os.TempDir()
}
