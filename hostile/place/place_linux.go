package place

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/hostile/suite"
)

// Task is what a place is told to do, on its standard input as JSON.
type Task struct {
	// Probe is the id, and Text the file, of the probe.
	Probe string `json:"probe"`
	Text  string `json:"text"`
	// Column names the target: "none" or one of the reference columns.
	Column string `json:"column"`
	// Waive are the items that the operator waived.
	Waive []tranca.Item `json:"waive,omitempty"`
	Twin  bool          `json:"twin,omitempty"`
}

// Options say how places are made.
type Options struct {
	// Command is what is run as the first process: tranca itself, in the mode
	// in which it calls [Serve].
	Command []string
	// Env is its environment.
	Env []string
}

// patience is how long a trial in a place may take.
const patience = time.Minute

// Try runs one trial in a place of its own. What fails is an observation that
// says so.
func (o Options) Try(ctx context.Context, t Task) *suite.Observation {
	began := time.Now()
	seen, err := o.try(ctx, t)
	if err != nil {
		seen = &suite.Observation{Broken: "the disposable place: " + err.Error()}
	}
	seen.Seconds = time.Since(began).Seconds()
	return seen
}

func (o Options) try(ctx context.Context, t Task) (*suite.Observation, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	task, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, o.Command[0], o.Command[1:]...)
	cmd.Env = o.Env
	cmd.Dir = "/"
	cmd.Stdin = bytes.NewReader(task)
	var out, trouble bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &trouble
	cmd.SysProcAttr = namespaces()
	cmd.WaitDelay = 2 * time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("%w %s", explain(err), lastLine(trouble.String()))
	}
	var seen suite.Observation
	if err := json.Unmarshal(out.Bytes(), &seen); err != nil {
		return nil, fmt.Errorf("its answer: %w %s", err, lastLine(trouble.String()))
	}
	return &seen, nil
}

// namespaces are those of a place. An ordinary user keeps the own id in it, with
// capabilities that last until the first program is run.
func namespaces() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP,
		Pdeathsig:  syscall.SIGKILL,
		Setsid:     true,
	}
	uid, gid := os.Geteuid(), os.Getegid()
	if uid != 0 {
		a.Cloneflags |= unix.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SYS_CHROOT, unix.CAP_DAC_OVERRIDE, unix.CAP_NET_BIND_SERVICE}
	}
	return a
}

// explain says what a user can do where namespaces can't be had.
func explain(err error) error {
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EACCES) {
		return fmt.Errorf("%w: it takes user namespaces, which this host keeps from this user: `tranca doctor` says what mends it", err)
	}
	return err
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
