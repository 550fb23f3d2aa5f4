package hostiletest

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tranca"
)

// Outcome is how a command ended.
type Outcome struct {
	Exit           tranca.Exit
	Stdout, Stderr string
	Usage          tranca.Usage // of the sandbox
	// Err is what waiting said, where it did not end well.
	Err error
}

// Argv is the command that runs a program after the prelude. The program gets
// vars as V.
func Argv(t testing.TB, program string, vars map[string]any) []string {
	t.Helper()
	encoded, err := json.Marshal(vars)
	if err != nil {
		t.Fatal(err)
	}
	return []string{"/usr/bin/python3", "-I", "-c", Prelude + program, string(encoded)}
}

// Run runs a command in a sandbox to its end, and fails the test after a
// minute. The command's output is the outcome's.
func Run(t testing.TB, sb tranca.Sandbox, c tranca.Command) Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	proc, err := sb.Start(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	exit, err := proc.Wait(ctx)
	u, uerr := sb.Usage(ctx)
	if uerr != nil {
		t.Fatalf("usage: %v, after waiting: %v\n%s", uerr, err, errs.String())
	}
	return Outcome{exit, out.String(), errs.String(), u, err}
}

// RunBare runs a command as a child of the test, with nothing around it, in a
// session of its own: tty, if it is there, is its input and controlling
// terminal.
func RunBare(t testing.TB, argv []string, tty *os.File) Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = t.TempDir()
	cmd.WaitDelay = 2 * time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if tty != nil {
		cmd.Stdin, cmd.SysProcAttr.Setctty = tty, true
	}
	exit := tranca.Exit{Reason: tranca.EndExited}
	if err := cmd.Run(); err != nil {
		exit.Code = cmd.ProcessState.ExitCode()
	}
	return Outcome{Exit: exit, Stdout: out.String(), Stderr: errs.String()}
}

// Live is what a running program has written so far. It may be written to and
// read at the same time.
type Live struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *Live) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *Live) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// OpenChanges ends every program and opens what was written to a mount of mode
// cow. The caller closes it.
func OpenChanges(t testing.TB, sb tranca.Sandbox, target string) *os.File {
	t.Helper()
	if err := sb.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	reader, ok := tranca.As[tranca.ChangeReader](sb)
	if !ok {
		t.Fatal("the sandbox hands out no changes")
	}
	upper, err := reader.OpenChanges(target)
	if err != nil {
		t.Fatal(err)
	}
	return upper
}
