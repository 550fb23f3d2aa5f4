package gvisor

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
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/hostiletest"
	"tranca/internal/require"
)

// sentryOf returns the pids of Sentry and file server among this process's
// children.
func sentryOf(t testing.TB) (sentry, files int) {
	t.Helper()
	for _, pid := range childrenOf(os.Getpid()) {
		switch name := commandOf(pid); {
		case strings.HasSuffix(name, "tranca-kernel"):
			sentry = pid
		case strings.HasSuffix(name, "tranca-files"):
			files = pid
		}
	}
	if sentry == 0 || files == 0 {
		t.Fatal("there is no Sentry or no file server")
	}
	return sentry, files
}

// TestHostileSentryDies: where a Sentry or its file server dies while a program
// runs, and no limit was passed, nobody knows how the program ended. That is an
// error that says what the dead one said last, and never an exit code; the
// sandbox is gone from then on. PRC-01 and MEM-12 are the same with a limit.
func TestHostileSentryDies(t *testing.T) {
	b := newBackend(t)
	for _, c := range []struct {
		what   string
		signal unix.Signal
		files  bool
		says   string
	}{
		{"killed", unix.SIGKILL, false, ""},
		{"crashed", unix.SIGSEGV, false, "SIGSEGV"},
		{"file server killed", unix.SIGKILL, true, ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := (&row{}).newScene(t, b, false)
			sb := s.open(nil)
			defer closeBox(t, sb)
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			// It needs no file any more when it is up: one that is still being
			// loaded ends by itself when the file server does.
			typed, _ := io.Pipe()
			up, out := io.Pipe()
			proc, err := sb.Start(ctx, tranca.Command{Args: []string{"/bin/sh", "-c", "echo up; read never"}, Stdin: typed, Stdout: out})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(up, make([]byte, len("up\n"))); err != nil {
				t.Fatal(err)
			}
			pid, files := sentryOf(t)
			if c.files {
				pid = files
			}
			if err := unix.Kill(pid, c.signal); err != nil {
				t.Fatal(err)
			}
			exit, err := proc.Wait(ctx)
			if err == nil && !c.files || exit.Reason == tranca.EndExited {
				t.Errorf("it ended with %s, and no error", exit)
			}
			if err != nil && !errors.Is(err, tranca.ErrGone) {
				t.Errorf("the error is %v", err)
			}
			if c.says != "" && !strings.Contains(fmt.Sprint(err), c.says) {
				t.Errorf("no %q in %v", c.says, err)
			}
			if _, err := sb.Start(ctx, tranca.Command{Args: []string{"/bin/true"}}); !errors.Is(err, tranca.ErrGone) {
				t.Errorf("a start afterwards: %v", err)
			}
		})
	}
}

// TestHostileTwoRuns: the second program in a sandbox has fresh counters:
// CPU-12. Two programs stay below the limit, whose sum passes it; the control is
// one program that uses more than what both did, by far: under gVisor a program's
// own clock may run ahead of what it uses.
func TestHostileTwoRuns(t *testing.T) {
	b := newBackend(t)
	require.Check(t, "cgroup", b.report.Holds(tranca.ItemCPUTime), b.report.Find(tranca.ItemCPUTime).Missing)
	const burn = `
end = time.process_time() + V['seconds']
while time.process_time() < end: pass
print('done')`
	s := (&row{}).newScene(t, b, false)
	s.policy.Limits.CPUTime = 2 * time.Second
	sb := s.open(nil)
	defer closeBox(t, sb)
	for i, c := range []struct {
		seconds float64
		want    tranca.Reason
	}{{1.2, tranca.EndExited}, {1.2, tranca.EndExited}, {6, tranca.EndCPU}, {0.1, tranca.EndExited}} {
		s.vars["seconds"] = c.seconds
		got := s.runIn(sb, s.argv(burn)...)
		if got.Exit.Reason != c.want {
			t.Errorf("run %d of %gs ended with %s after %s of CPU", i, c.seconds, got.Exit, got.Usage.CPU)
		}
	}
}

// TestHostileOOMThenMore: MEM-12. A sandbox that died of its memory limit says
// so, and is not made anew in silence.
func TestHostileOOMThenMore(t *testing.T) {
	b := newBackend(t)
	if !b.report.Holds(tranca.ItemMemory) {
		return // TestHostileLimits asks for it
	}
	s := (&row{}).newScene(t, b, false)
	s.policy.Limits.Memory = 64 << 20
	sb := s.open(nil)
	defer closeBox(t, sb)
	if got := s.runIn(sb, s.argv(touch)...); got.Exit.Reason != tranca.EndMemory {
		t.Errorf("%s %v", got.Exit, got.Err)
	}
	_, err := sb.Start(t.Context(), tranca.Command{Args: []string{"/bin/true"}})
	if !errors.Is(err, tranca.ErrGone) {
		t.Errorf("a start afterwards: %v", err)
	}
}

// TestHostileNothingStays: whatever programs do to stay, after Close there is no
// process, no control group and no descriptor of the sandbox: CPU-06, CPU-08.
func TestHostileNothingStays(t *testing.T) {
	b := newBackend(t)
	leave := func() []string {
		s := (&row{}).newScene(t, b, false)
		sb := s.open(nil)
		s.runIn(sb, s.argv(`
for _ in range(5):
    if os.fork() == 0:
        os.setsid()
        if os.fork(): os._exit(0)
        for n in range(1, 32):
            try: signal.signal(n, signal.SIG_IGN)
            except (OSError, ValueError): pass
        os.closerange(0, 100)
        while True: pass
print('left')`)...)
		groups := groupFolders(t)
		closeBox(t, sb)
		return groups
	}
	leave()
	leave() // what the backend makes once, and ahead, is there now
	hostiletest.Eventually(t, "the next one is made ahead", func() bool { return b.shelf.Ready() || b.host.Groups == nil })
	before := descriptors(t)
	groups := leave()
	if len(groups) == 0 && b.host.Groups != nil {
		t.Error("no control group was seen, so that it is gone shows nothing")
	}
	for _, g := range groups {
		if _, err := os.Stat(g); err == nil {
			t.Errorf("the control group %s is left", g)
		}
	}
	for _, pid := range childrenOf(os.Getpid()) {
		if name := commandOf(pid); strings.HasPrefix(name, "tranca-sentry") {
			t.Errorf("process %d is left: %s", pid, name)
		}
	}
	hostiletest.Eventually(t, "no descriptor is left", func() bool { return descriptors(t) <= before })
}

func descriptors(t testing.TB) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// groupFolders are the control groups that this process's Sentry is in, and
// this process isn't: those of the controllers that bound nothing are the
// caller's own.
func groupFolders(t testing.TB) []string {
	t.Helper()
	pid, _ := sentryOf(t)
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for line := range strings.Lines(string(text)) {
		if slices.Contains(slices.Collect(strings.Lines(string(own))), line) {
			continue
		}
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if !strings.Contains(f[2], "/tranca-") {
			continue
		}
		for _, pattern := range []string{"/sys/fs/cgroup" + f[2], "/sys/fs/cgroup/*" + f[2]} {
			found, _ := filepath.Glob(pattern)
			all = append(all, found...)
		}
	}
	return all
}

// supervisorEnv makes the test binary a supervisor that waits to be killed.
const supervisorEnv = "TRANCA_TEST_SUPERVISOR"

// TestHostileSupervisorDeath kills a supervisor with -9: CPU-11. All processes
// of its sandbox die with it, and the next start sweeps its control groups.
func TestHostileSupervisorDeath(t *testing.T) {
	if folder := os.Getenv(supervisorEnv); folder != "" {
		superviseUntilKilled(t, folder)
		return
	}
	folder := t.TempDir()
	if err := os.Chmod(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd, pids, groups := startSupervisor(t, folder)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	for _, pid := range pids {
		hostiletest.Eventually(t, "process "+pid+" is dead", func() bool { return !runs(pid) })
	}
	swept, err := New(Options{Options: confineOptions(folder)})
	if err != nil {
		t.Fatal(err)
	}
	defer swept.Close(context.Background())
	for _, g := range groups {
		hostiletest.Eventually(t, "group "+g+" is gone", func() bool { _, err := os.Stat(g); return err != nil })
	}
}

// startSupervisor starts a supervisor and returns the processes and the control
// groups of its sandbox.
func startSupervisor(t *testing.T, folder string, env ...string) (cmd *exec.Cmd, pids, groups []string) {
	t.Helper()
	cmd, said := hostiletest.StartSupervisor(t, "TestHostileSupervisorDeath", "pids ", append(env, supervisorEnv+"="+folder)...)
	for _, line := range said {
		if rest, ok := strings.CutPrefix(line, "groups "); ok {
			groups = strings.Fields(rest)
		}
		if rest, ok := strings.CutPrefix(line, "pids "); ok {
			pids = strings.Fields(rest)
		}
	}
	if len(pids) < 4 {
		t.Fatalf("only %v run", pids)
	}
	return cmd, pids, groups
}

// runs reports whether a process of the second binary has this pid.
func runs(pid string) bool {
	n, err := strconv.Atoi(pid)
	if err != nil {
		return false
	}
	return lives(pid) && strings.HasPrefix(commandOf(n), "tranca-sentry")
}

// lives reports whether there is a process, a stub of a Sentry's too, which has
// no name of its own.
func lives(pid string) bool {
	status, err := os.ReadFile("/proc/" + pid + "/status")
	return err == nil && !bytes.Contains(status, []byte("State:\tZ"))
}

// superviseUntilKilled runs a sandbox with programs and waits to be killed.
func superviseUntilKilled(t *testing.T, folder string) {
	b, err := New(Options{Options: confineOptions(folder)})
	if err != nil {
		t.Fatal(err)
	}
	busy(t, b)
	var pids []string
	seen := map[int]bool{}
	for _, k := range descendants(t, os.Getpid()) {
		if !seen[k.pid] {
			seen[k.pid] = true
			pids = append(pids, strconv.Itoa(k.pid))
		}
	}
	fmt.Println("groups", strings.Join(groupFolders(t), " "))
	fmt.Println("pids", strings.Join(pids, " "))
	time.Sleep(time.Hour)
}
