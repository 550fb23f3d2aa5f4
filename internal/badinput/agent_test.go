package badinput

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/local"
)

// agents lists the guest agents below a process: its children, of which each
// is the first process of a sandbox.
func agents(t testing.TB, pid int) []int {
	t.Helper()
	names, children := processTable()
	var all []int
	for _, child := range children[pid] {
		if !strings.Contains(names[child], ") Z") {
			all = append(all, child)
		}
	}
	if len(all) == 0 {
		t.Fatal("there is no guest agent")
	}
	return all
}

func stopAgents(t testing.TB, c *command) {
	t.Helper()
	for _, pid := range agents(t, c.pid()) {
		if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
}

// ownAgents lists those of runs that are under way in this process.
func ownAgents(t testing.TB) []int {
	t.Helper()
	return agents(t, os.Getpid())
}

// began is a writer that tells when the program has written.
type began chan struct{}

func (b began) Write(p []byte) (int, error) {
	select {
	case b <- struct{}{}:
	default:
	}
	return len(p), nil
}

// hit runs code until it says something, then does something to its agent, and
// returns what the run came to.
func hit(t *testing.T, l tranca.Runner, sig unix.Signal) *tranca.Result {
	t.Helper()
	up := make(began, 1)
	go func() {
		<-up
		for _, pid := range ownAgents(t) {
			if err := unix.Kill(pid, sig); err != nil {
				t.Error(err)
			}
		}
	}()
	res, err := l.Run(t.Context(), tranca.Request{Code: "print('kept', flush=True); import time; time.sleep(600)", Stdout: up})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// runner makes a Local a [tranca.Runner].
type runner struct{ *local.Local }

func (r runner) Run(ctx context.Context, req tranca.Request) (*tranca.Result, error) {
	return r.RunRequest(ctx, req)
}

// TestAgentKilled: with the first process of the sandbox everything in it
// dies, and nobody knows how the program ended.
func TestAgentKilled(t *testing.T) {
	nothingLeft(t)
	l := runner{open(t, nil)}
	res := hit(t, l, unix.SIGKILL)
	if res.Exit.Reason != tranca.EndError || res.Exit.Code != -1 || len(res.Notes) == 0 {
		t.Errorf("%+v, notes %q", res.Exit, res.Notes)
	}
	if string(res.Stdout) != "kept\n" {
		t.Errorf("stdout %q", res.Stdout)
	}
	works(t, l)
}

// TestAgentStopped: an agent that does nothing any more is not needed to hold
// a limit, nor to destroy the sandbox.
func TestAgentStopped(t *testing.T) {
	nothingLeft(t)
	l := runner{open(t, func(p *tranca.Policy) { p.Limits.Wall = time.Second })}
	begin := time.Now()
	res := hit(t, l, unix.SIGSTOP)
	if res.Exit.Reason != tranca.EndWall {
		t.Errorf("%+v, notes %q", res.Exit, res.Notes)
	}
	if took := time.Since(begin); took < time.Second || took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
	if string(res.Stdout) != "kept\n" {
		t.Errorf("stdout %q", res.Stdout)
	}
	works(t, l)
}

// TestAgentStoppedAndCancelled: its owner's word too needs no agent.
func TestAgentStoppedAndCancelled(t *testing.T) {
	nothingLeft(t)
	l := open(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	up := make(began, 1)
	go func() {
		<-up
		for _, pid := range ownAgents(t) {
			if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
				t.Error(err)
			}
		}
		cancel()
	}()
	begin := time.Now()
	res, err := l.RunRequest(ctx, tranca.Request{Code: "print(1, flush=True); import time; time.sleep(600)", Stdout: up})
	if err != nil || res.Exit.Reason != tranca.EndClosed {
		t.Errorf("%+v, %v", res, err)
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}

// TestAgentStoppedInASession: the session says that its sandbox is gone, and
// can be closed.
func TestAgentStoppedInASession(t *testing.T) {
	nothingLeft(t)
	l := open(t, func(p *tranca.Policy) { p.Limits.Wall = time.Second })
	s, err := l.Open(t.Context(), tranca.Narrowing{})
	if err != nil {
		t.Fatal(err)
	}
	if res := hit(t, s, unix.SIGSTOP); res.Exit.Reason != tranca.EndWall {
		t.Errorf("%+v, notes %q", res.Exit, res.Notes)
	}
	// The next run is stopped by its wall clock, or told that nobody is there.
	begin := time.Now()
	res, err := s.Run(t.Context(), tranca.Request{Code: "print(1)"})
	if err == nil && res.Exit.Reason != tranca.EndWall && res.Exit.Reason != tranca.EndError || err != nil && !errors.Is(err, tranca.ErrGone) {
		t.Errorf("%+v, %v", res, err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("next run and close took %s", took)
	}
}

// works shows that what happened concerns one sandbox alone.
func works(t testing.TB, r tranca.Runner) {
	t.Helper()
	res, err := r.Run(t.Context(), tranca.Request{Code: "print(6*7)"})
	if err != nil || !res.Exit.Success() || string(res.Stdout) != "42\n" {
		t.Errorf("the next run: %+v, %v", res, err)
	}
}
