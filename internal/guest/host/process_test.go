package host

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tranca"
	"tranca/internal/guest/agent"
	"tranca/internal/require"
)

// outcome is what a program left.
type outcome struct {
	stdout, stderr string
	exit           tranca.Exit
}

// runProgram runs a command to its end.
func runProgram(t testing.TB, sb tranca.Sandbox, cmd tranca.Command) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	p, err := sb.Start(within(t), cmd)
	if err != nil {
		t.Fatalf("start %.3q: %v", cmd.Args, err)
	}
	exit, err := p.Wait(within(t))
	if err != nil {
		t.Fatalf("wait for %.3q: %v", cmd.Args, err)
	}
	return outcome{out.String(), errs.String(), exit}
}

func exited(code int) tranca.Exit { return tranca.Exit{Code: code, Reason: tranca.EndExited} }

func signaled(sig tranca.Signal) tranca.Exit {
	return tranca.Exit{Code: -1, Signal: sig, Reason: tranca.EndSignaled}
}

func TestPrograms(t *testing.T) {
	sb, m, cfg := newSandbox(t, nil)
	sub := filepath.Join(cfg.Workdir, "sub")
	if err := os.Mkdir(sub, 0o755); err != nil {
		t.Fatal(err)
	}
	sh := func(script string, args ...string) tranca.Command {
		return tranca.Command{Args: append([]string{"sh", "-c", script, "sh"}, args...)}
	}
	tests := []struct {
		name string
		cmd  tranca.Command
		want outcome
	}{
		{"both outputs apart", sh("echo out; echo err >&2"), outcome{"out\n", "err\n", exited(0)}},
		{"exit code", sh("exit 137"), outcome{exit: exited(137)}},
		{"killed by a signal", sh("kill -11 $$"), outcome{exit: signaled(11)}},
		{"arguments as they are", sh(`printf '<%s>' "$@"`, "", "a b", "\xff\n", "*"), outcome{"<><a b><\xff\n><*>", "", exited(0)}},
		{"no stdin reads the end", tranca.Command{Args: []string{"cat"}}, outcome{exit: exited(0)}},
		{"stdin is closed after its end", tranca.Command{Args: []string{"cat"}, Stdin: strings.NewReader("in\x00put")},
			outcome{"in\x00put", "", exited(0)}},
		{"stdin that nobody reads", tranca.Command{Args: []string{"true"}, Stdin: io.LimitReader(zeros{}, 8<<20)},
			outcome{exit: exited(0)}},
		{"environment", tranca.Command{Args: []string{"sh", "-c", "echo $A $LANG $HOME"}, Env: map[string]string{"A": "1", "LANG": "x"}},
			outcome{"1 x /\n", "", exited(0)}},
		{"working directory", sh("pwd; echo $PWD"), outcome{cfg.Workdir + "\n" + cfg.Workdir + "\n", "", exited(0)}},
		{"relative directory", tranca.Command{Args: []string{"pwd"}, Dir: "sub"}, outcome{sub + "\n", "", exited(0)}},
		{"output that can be opened anew", sh("echo x >/dev/stdout; echo y >/dev/stderr"), outcome{"x\n", "y\n", exited(0)}},
		{"invalid UTF-8 and NUL", sh(`printf '\377\000\376'`), outcome{"\xff\x00\xfe", "", exited(0)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := runProgram(t, sb, tt.cmd); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
	if begun, _, _ := m.counts(); begun != len(tests) {
		t.Errorf("Begin was called %d times for %d programs", begun, len(tests))
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestStartRefuses(t *testing.T) {
	sb, _, cfg := newSandbox(t, nil)
	plain := filepath.Join(cfg.Workdir, "plain")
	script := filepath.Join(cfg.Workdir, "script")
	for path, mode := range map[string]os.FileMode{plain: 0o644, script: 0o755} {
		if err := os.WriteFile(path, []byte("#!/no/such/interpreter\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	long := strings.Repeat("x", 200_000)
	tests := []struct {
		name string
		cmd  tranca.Command
		want error
		text string
	}{
		{"nothing", tranca.Command{}, tranca.ErrInvalid, "without a program"},
		{"an empty name", tranca.Command{Args: []string{""}}, tranca.ErrInvalid, "without a program"},
		{"not in PATH", tranca.Command{Args: []string{"no-such-program"}}, tranca.ErrNotFound, "not in PATH"},
		{"no such file", tranca.Command{Args: []string{"/no/such"}}, tranca.ErrNotFound, "/no/such"},
		{"no interpreter", tranca.Command{Args: []string{script}}, tranca.ErrNotFound, script},
		{"not executable", tranca.Command{Args: []string{plain}}, tranca.ErrRefused, "permission"},
		{"a folder", tranca.Command{Args: []string{"/"}}, tranca.ErrRefused, "permission"},
		{"NUL in an argument", tranca.Command{Args: []string{"echo", "a\x00b"}}, tranca.ErrInvalid, "argument 1 holds a NUL at byte 1"},
		{"NUL in a variable", tranca.Command{Args: []string{"true"}, Env: map[string]string{"A": "\x00"}}, tranca.ErrInvalid, `"A"`},
		{"a variable without a name", tranca.Command{Args: []string{"true"}, Env: map[string]string{"": "1"}}, tranca.ErrInvalid, "empty name"},
		{"a long argument", tranca.Command{Args: []string{"echo", long}}, tranca.ErrInvalid, "stdin or a file"},
		{"many arguments", tranca.Command{Args: make([]string, 40_000)}, tranca.ErrInvalid, ""},
		{"a missing directory", tranca.Command{Args: []string{"true"}, Dir: "/no/such"}, tranca.ErrInvalid, "does not exist"},
		{"a file as directory", tranca.Command{Args: []string{"true"}, Dir: plain}, tranca.ErrInvalid, "does not exist"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := sb.Start(within(t), tt.cmd)
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got %v, want %v with %q", err, tt.want, tt.text)
			}
		})
	}
	// None of them left the sandbox unusable.
	if got := runProgram(t, sb, tranca.Command{Args: []string{"echo", "ok"}}); got.stdout != "ok\n" {
		t.Errorf("afterwards: %+v", got)
	}
}

// A megabyte of arguments comes in more than one frame.
func TestManyArguments(t *testing.T) {
	sb, _, _ := newSandbox(t, nil)
	args := []string{"sh", "-c", "echo $#", "sh"}
	for range 10_000 {
		args = append(args, strings.Repeat("y", 100))
	}
	if got := runProgram(t, sb, tranca.Command{Args: args}); got.stdout != "10000\n" {
		t.Errorf("got %.100q %+v", got.stdout, got.exit)
	}
}

// start starts a program and returns when it has printed "ready".
func start(t *testing.T, sb tranca.Sandbox, cmd tranca.Command) (tranca.Process, *lines) {
	t.Helper()
	out := newLines()
	cmd.Stdout = out
	p, err := sb.Start(within(t), cmd)
	if err != nil {
		t.Fatal(err)
	}
	out.await(t, "ready")
	return p, out
}

func wait(t *testing.T, p tranca.Process) tranca.Exit {
	t.Helper()
	exit, err := p.Wait(within(t))
	if err != nil {
		t.Fatal(err)
	}
	return exit
}

func TestSignals(t *testing.T) {
	sb, _, _ := newSandbox(t, nil)
	ctx := within(t)
	t.Run("to the process", func(t *testing.T) {
		p, out := start(t, sb, tranca.Command{Args: []string{"python3", "-Ic", `
import os, signal
signal.signal(signal.SIGUSR1, lambda *a: (os.write(1, b"got"), os._exit(3)))
os.write(1, b"ready")
while True: signal.pause()
`}})
		if err := p.Signal(ctx, 10); err != nil {
			t.Fatal(err)
		}
		if exit := wait(t, p); exit != exited(3) || !strings.Contains(out.String(), "got") {
			t.Errorf("exit %v, output %q", exit, out)
		}
		if err := p.Signal(ctx, 10); !errors.Is(err, tranca.ErrGone) {
			t.Errorf("after the end: %v", err)
		}
	})
	t.Run("to the group", func(t *testing.T) {
		p, _ := start(t, sb, tranca.Command{Args: []string{"sh", "-c", "sleep 300 & echo ready; wait"}})
		if err := p.SignalGroup(ctx, tranca.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if exit := wait(t, p); exit != signaled(15) {
			t.Errorf("exit %v", exit)
		}
	})
	t.Run("no such signal", func(t *testing.T) {
		p, _ := start(t, sb, tranca.Command{Args: []string{"sh", "-c", "echo ready; exec sleep 300"}})
		for _, sig := range []tranca.Signal{0, -1, 65, 1 << 30} {
			if err := p.Signal(ctx, sig); !errors.Is(err, tranca.ErrInvalid) {
				t.Errorf("signal %d: %v", sig, err)
			}
		}
		if err := p.Signal(ctx, tranca.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if exit := wait(t, p); exit != signaled(9) {
			t.Errorf("exit %v", exit)
		}
	})
}

func TestPIDIsTheProgramsOwn(t *testing.T) {
	sb, _, _ := newSandbox(t, nil)
	var out bytes.Buffer
	p, err := sb.Start(within(t), tranca.Command{Args: []string{"sh", "-c", "echo $$"}, Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	wait(t, p)
	if got := strings.TrimSpace(out.String()); got != itoa(p.PID()) {
		t.Errorf("the program sees %s, PID says %d", got, p.PID())
	}
}

// A descendant that keeps the output open does not keep Wait, and what it
// wrote before the program's end is not lost.
func TestDescendantHoldsOutput(t *testing.T) {
	sb, _, _ := newSandbox(t, nil)
	begin := time.Now()
	got := runProgram(t, sb, tranca.Command{Args: []string{"sh", "-c", "(printf tail; exec sleep 300) & echo $! >&2; sleep 0.3; echo; echo end; exit 4"}})
	if pid, err := strconv.Atoi(strings.TrimSpace(got.stderr)); err != nil {
		t.Errorf("the descendant's pid: %v", err)
	} else {
		defer syscall.Kill(pid, syscall.SIGKILL)
	}
	if got.exit != exited(4) || got.stdout != "tail\nend\n" {
		t.Errorf("got %+v", got)
	}
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("Wait took %v", took)
	}
	if err := sb.Kill(within(t)); err != nil {
		t.Fatal(err)
	}
}

// A descendant that writes without end neither keeps Wait.
func TestDescendantFloodsOutput(t *testing.T) {
	sb, _, _ := newSandbox(t, nil)
	p, err := sb.Start(within(t), tranca.Command{Args: []string{"sh", "-c", "yes & exit 5"}, Stdout: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	if exit := wait(t, p); exit != exited(5) {
		t.Errorf("exit %v", exit)
	}
	if err := sb.Kill(within(t)); err != nil {
		t.Fatal(err)
	}
}

func TestLimitDecides(t *testing.T) {
	sb, m, _ := newSandbox(t, nil)
	t.Run("told by the channel", func(t *testing.T) {
		p, _ := start(t, sb, tranca.Command{Args: []string{"sh", "-c", "echo ready; exec sleep 300"}})
		m.limit <- tranca.EndCPU
		m.onKill()
		if exit := wait(t, p); exit.Reason != tranca.EndCPU || exit.Code != -1 {
			t.Errorf("exit %v", exit)
		}
	})
	t.Run("found in the counters", func(t *testing.T) {
		p, _ := start(t, sb, tranca.Command{Args: []string{"sh", "-c", "echo ready; exec sleep 300"}})
		m.set(machineCounts{limit: tranca.EndMemory})
		m.onKill()
		if exit := wait(t, p); exit.Reason != tranca.EndMemory || exit.Signal != tranca.SIGKILL {
			t.Errorf("exit %v", exit)
		}
	})
	t.Run("code 137 is the program's own", func(t *testing.T) {
		if got := runProgram(t, sb, tranca.Command{Args: []string{"sh", "-c", "exit 137"}}); got.exit != exited(137) {
			t.Errorf("exit %v", got.exit)
		}
	})
	t.Run("a limit that kills nothing", func(t *testing.T) {
		p, _ := start(t, sb, tranca.Command{Args: []string{"sh", "-c", "echo ready; exec sleep 300"}})
		m.limit <- tranca.EndCPU
		if exit := wait(t, p); exit.Reason != tranca.EndCPU {
			t.Errorf("exit %v", exit)
		}
	})
}

func TestFileSizeHit(t *testing.T) {
	prlimit := require.Program(t, "prlimit")
	sb, m, _ := newSandbox(t, func(c *agent.Config) {
		c.Launcher = &recorder{Direct: agent.Direct{Rewrite: func(p agent.Program) (agent.Program, error) {
			p.Args = append([]string{"prlimit", "--fsize=1000", "--", p.Path}, p.Args[1:]...)
			p.Path = prlimit
			return p, nil
		}}}
	})
	got := runProgram(t, sb, tranca.Command{Args: []string{"head", "-c", "2000", "/dev/zero"}})
	if got.exit != exited(0) {
		t.Fatalf("to a pipe: %v", got.exit)
	}
	got = runProgram(t, sb, tranca.Command{Args: []string{"dd", "if=/dev/zero", "of=big", "bs=2000", "count=2"}})
	if got.exit != signaled(tranca.SIGXFSZ) {
		t.Fatalf("to a file: %v", got.exit)
	}
	time.Sleep(2 * time.Millisecond) // what was counted at the end is stale by then
	m.set(machineCounts{usage: tranca.Usage{Hit: []tranca.LimitHit{tranca.HitPIDs, tranca.HitOutput}}})
	u, err := sb.Usage(within(t))
	want := []tranca.LimitHit{tranca.HitPIDs, tranca.HitFileSize, tranca.HitOutput}
	if err != nil || !slices.Equal(u.Hit, want) {
		t.Errorf("hits %v %v, want %v", u.Hit, err, want)
	}
	runProgram(t, sb, tranca.Command{Args: []string{"true"}})
	if u, err = sb.Usage(within(t)); err != nil || len(u.Hit) != 0 {
		t.Errorf("after the next program: %v %v", u.Hit, err)
	}
}

func TestWaitGivesUp(t *testing.T) {
	sb, _, _ := newSandbox(t, nil)
	p, _ := start(t, sb, tranca.Command{Args: []string{"sh", "-c", "echo ready; exec sleep 300"}})
	why := errors.New("tired")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	if _, err := p.Wait(ctx); err != why {
		t.Errorf("got %v", err)
	}
	if err := p.Signal(within(t), tranca.SIGKILL); err != nil {
		t.Error("the program did not go on: ", err)
	}
	wait(t, p)
}
