package gvisor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"tranca"
	"tranca/internal/guest/host"
	"tranca/internal/require"
)

// task is a thread of the host as /proc shows it.
type task struct {
	pid    int
	name   string // of its program
	status map[string]string
	cgroup string
	spaces map[string]string
}

// descendants lists every thread of this process's children named by the second
// binary, and of theirs.
func descendants(t testing.TB, root int) []task {
	t.Helper()
	var all []task
	for _, pid := range childrenOf(root) {
		if name := commandOf(pid); strings.HasPrefix(name, "tranca-sentry") || root != os.Getpid() {
			all = append(append(all, tasksOf(t, pid)...), descendants(t, pid)...)
		}
	}
	return all
}

func commandOf(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.ReplaceAll(strings.TrimRight(string(text), "\x00"), "\x00", " ")
}

func childrenOf(pid int) []int {
	var all []int
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, f := range files {
		text, _ := os.ReadFile(f) // the thread may have ended
		for _, word := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(word); err == nil {
				all = append(all, n)
			}
		}
	}
	return all
}

func tasksOf(t testing.TB, pid int) []task {
	t.Helper()
	var all []task
	dirs, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	for _, dir := range dirs {
		text, err := os.ReadFile(filepath.Join(dir, "status"))
		if err != nil {
			continue // it has ended
		}
		k := task{pid: pid, name: commandOf(pid), status: map[string]string{}, spaces: map[string]string{}}
		for line := range strings.Lines(string(text)) {
			key, value, _ := strings.Cut(line, ":")
			k.status[key] = strings.TrimSpace(value)
		}
		group, _ := os.ReadFile(filepath.Join(dir, "cgroup"))
		k.cgroup = string(group)
		for _, ns := range []string{"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"} {
			if link, err := os.Readlink(filepath.Join(dir, "ns", ns)); err == nil {
				k.spaces[ns] = link
			}
		}
		all = append(all, k)
	}
	return all
}

// booted makes a sandbox under a policy, which is closed at the test's end.
func booted(ctx context.Context, t *testing.T, b *Backend, p tranca.Policy) (*box, tranca.Sandbox) {
	t.Helper()
	spec := tranca.Spec{ID: tranca.NewID(), Policy: p}
	m, err := b.boot(ctx, &spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	sb, err := host.New(m, spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeBox(t, sb) })
	return m, sb
}

// busy starts a sandbox in which programs run.
func busy(t *testing.T, b *Backend) (*box, tranca.Sandbox) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	m, sb := booted(ctx, t, b, testPolicy(b))
	for range 3 {
		if _, err := sb.Start(ctx, tranca.Command{Args: []string{"/bin/sleep", "600"}}); err != nil {
			t.Fatal(err)
		}
	}
	return m, sb
}

// TestHostileFromOutside looks at a running sandbox from the host. Of every
// thread of Sentry, stubs and file server: no capability but the file server's
// four, which are over files of its own users; no new privileges; a filter; a
// user that is not the caller's; namespaces that are not the host's. Its control
// is the test's own process, which has none of that.
func TestHostileFromOutside(t *testing.T) {
	b := newBackend(t)
	busy(t, b)
	tasks := descendants(t, os.Getpid())
	own := tasksOf(t, os.Getpid())[0]
	roles := map[string]int{}
	for _, k := range tasks {
		role := roleOf(k)
		roles[role]++
		checkTask(t, role, k, own, b.host.IDs != nil)
	}
	if roles["file server"] == 0 || roles["Sentry"] == 0 || roles["stub"] < 3 {
		t.Errorf("seen were %v", roles)
	}
	if own.status["Seccomp"] == "2" || own.status["NoNewPrivs"] == "1" {
		t.Error("control: the test is itself confined, so that nothing was shown")
	}
}

// roleOf tells Sentry, stub and file server apart: a stub is a process of the
// Sentry's pid namespace other than its first.
func roleOf(k task) string {
	if strings.HasSuffix(k.name, "tranca-files") {
		return "file server"
	}
	if f := strings.Fields(k.status["NSpid"]); len(f) > 0 && f[len(f)-1] != "1" && k.status["Tgid"] != "" {
		if g := strings.Fields(k.status["NStgid"]); len(g) > 0 && g[len(g)-1] != "1" {
			return "stub"
		}
	}
	return "Sentry"
}

func checkTask(t *testing.T, role string, k, own task, ids bool) {
	t.Helper()
	caps := map[string]string{"file server": "000000000000000f"}[role]
	if caps == "" {
		caps = "0000000000000000"
	}
	for _, set := range []string{"CapEff", "CapPrm"} {
		if k.status[set] != caps {
			t.Errorf("%s %d: %s is %s", role, k.pid, set, k.status[set])
		}
	}
	for _, set := range []string{"CapInh", "CapAmb"} {
		if k.status[set] != "0000000000000000" {
			t.Errorf("%s %d: %s is %s", role, k.pid, set, k.status[set])
		}
	}
	if role != "file server" && k.status["CapBnd"] != "0000000000000000" {
		t.Errorf("%s %d: CapBnd is %s", role, k.pid, k.status["CapBnd"])
	}
	if k.status["NoNewPrivs"] != "1" || k.status["Seccomp"] != "2" {
		t.Errorf("%s %d: NoNewPrivs %s, Seccomp %s", role, k.pid, k.status["NoNewPrivs"], k.status["Seccomp"])
	}
	if ids && strings.Fields(k.status["Uid"])[0] == strings.Fields(own.status["Uid"])[0] {
		t.Errorf("%s %d: it has the caller's user: %s", role, k.pid, k.status["Uid"])
	}
	for ns, link := range own.spaces {
		if k.spaces[ns] == link {
			t.Errorf("%s %d: it is in the host's %s namespace", role, k.pid, ns)
		}
	}
}

// TestHostileGroups: every process of a sandbox is in the sandbox's own groups,
// from the first instruction on. So 300 MiB under a limit of 128 end for want of
// memory; under 512 the same program ends by itself.
func TestHostileGroups(t *testing.T) {
	b := newBackend(t)
	require.Check(t, "cgroup", b.report.Holds(tranca.ItemMemory), b.report.Find(tranca.ItemMemory).Missing)
	busy(t, b)
	own := tasksOf(t, os.Getpid())[0]
	seen := 0
	for _, k := range descendants(t, os.Getpid()) {
		seen++
		for line := range strings.Lines(k.cgroup) {
			f := strings.SplitN(strings.TrimSpace(line), ":", 3)
			for _, controller := range []string{"memory", "pids", "cpu"} {
				if f[1] == controller || f[1] == "" && b.host.Support.Version == "v2" {
					if !strings.Contains(f[2], "/tranca-") {
						t.Errorf("%s %d is in %s", roleOf(k), k.pid, line)
					}
				}
			}
		}
		if k.cgroup == own.cgroup {
			t.Errorf("%s %d is in the test's own groups", roleOf(k), k.pid)
		}
	}
	if seen < 10 {
		t.Errorf("only %d threads were seen", seen)
	}
	for limit, want := range map[int64]tranca.Reason{128 << 20: tranca.EndMemory, 512 << 20: tranca.EndExited} {
		s := (&row{}).newScene(t, b, false)
		s.policy.Limits.Memory = limit
		sb := s.open(nil)
		got := s.runIn(sb, s.argv("x = bytearray(300 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1\n")...)
		if got.Exit.Reason != want {
			t.Errorf("300 MiB under %d MiB: %s (%v) %s", limit>>20, got.Exit, got.Err, got.Stderr)
		}
		closeBox(t, sb)
	}
}
