package place

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/hostile"
	"tranca/hostile/attempt/image"
	"tranca/hostile/suite"
)

// maxTask bounds what a place reads.
const maxTask = 256 << 10

// Targets returns what a column other than "none" runs programs behind. It is
// called within the place. Close frees it.
type Targets func(column string, waive []tranca.Item, program []byte) (t suite.Target, closing func(), err error)

// Serve is the first process of a place: it reads a [Task], does it and writes
// the observation. It refuses where it isn't one.
func Serve(ctx context.Context, in io.Reader, out io.Writer, targets Targets) error {
	if os.Getpid() != 1 {
		return errors.New("this is the inside of the disposable place of `tranca hostile`, and nothing to be called by hand")
	}
	var task Task
	if err := json.NewDecoder(io.LimitReader(in, maxTask)).Decode(&task); err != nil {
		return fmt.Errorf("task: %w", err)
	}
	probe, err := hostile.Parse(task.Probe, []byte(task.Text))
	if err != nil {
		return err
	}
	if err := furnish(); err != nil {
		return err
	}
	seen, err := serve(ctx, task, probe, targets)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(seen)
}

// home of the place's own things: its program and the folder for programs.
const (
	programPath = "/run/tranca-place/probe"
	spacePath   = "/var/tmp/space"
)

func serve(ctx context.Context, task Task, probe *hostile.Probe, targets Targets) (*suite.Observation, error) {
	program, err := image.Program()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(programPath), 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(programPath, program, 0o755); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(spacePath, 0o755); err != nil {
		return nil, err
	}
	var target suite.Target
	switch task.Column {
	case suite.NoBoundary, suite.NoBoundaryPython:
		target, err = bare(task.Column)
	default:
		var closing func()
		if target, closing, err = targets(task.Column, task.Waive, program); err == nil {
			defer closing()
		}
	}
	if err != nil {
		return nil, err
	}
	return suite.Stage{Stand: true, Program: programPath}.Try(ctx, probe, task.Twin, target), nil
}

// bare is the target of the controls.
func bare(column string) (*suite.Bare, error) {
	b := &suite.Bare{Program: programPath, Space: spacePath}
	if column == suite.NoBoundaryPython {
		var err error
		if b.Interpreter, err = exec.LookPath("python3"); err != nil {
			return nil, fmt.Errorf("the control of programs in Python takes Python on the host: %w", err)
		}
	}
	return b, dropAmbient()
}

// dropAmbient leaves the capabilities of the user namespace to this process: a
// program that it runs, from whichever thread, has those that it would have on
// the host.
func dropAmbient() error {
	_, _, e := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0, 0)
	if e != 0 {
		return os.NewSyscallError("drop ambient capabilities", e)
	}
	return nil
}
