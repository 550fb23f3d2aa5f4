//go:build tranca_weaken

package hostiletest

import (
	"context"
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/require"
	"tranca/internal/weaken"
)

// Loss is what a program gets with a guarantee taken away by its switch, and not
// with it. It has attempts, which are denied or all come out, or Lost.
type Loss struct {
	Item tranca.Item
	// Root: only root can show it.
	Root bool
	// Scene plants what the program looks for, and opens the policy as far as it
	// needs. It is called anew for each run.
	Scene func(*Stage)
	// Program is Python, after the prelude, with Stage.Vars as V.
	Program string
	// Lost, where set, judges the program's end instead of its attempts.
	Lost func(*Stage, Outcome) bool
	// Look, where set, looks from the host while a program sleeps.
	Look func(*Stage) bool
}

// Stage is what a Loss plays on.
type Stage struct {
	testing.TB
	Policy tranca.Policy
	// Dir is a folder of the host; Canary is planted there, and told to nobody
	// inside; Mark is in the arguments of what is started.
	Dir, Canary, Mark string
	Vars              map[string]any
	// Effect decides an attempt by what it did on the host.
	Effect map[string]func() bool
	// Took is how long the program took.
	Took time.Duration
}

// Weakened plays each loss with its guarantee and without, and wants what the
// backend says of itself to be the same both times. Each switch of the backend
// has to be among the losses, but for those that are shown elsewhere: they need
// more than a sandbox.
func Weakened(t *testing.T, b tranca.Backend, report func() tranca.Report, policy func() tranca.Policy, losses []Loss, elsewhere ...tranca.Item) {
	t.Helper()
	w := weakening{b, report, policy}
	for _, l := range losses {
		t.Run(string(l.Item), func(t *testing.T) { w.run(t, &l) })
	}
	for _, s := range weaken.Of(b.Name()) {
		if !slices.Contains(append(weaken.ByEngine(), elsewhere...), s.Item) &&
			!slices.ContainsFunc(losses, func(l Loss) bool { return l.Item == s.Item }) {
			t.Errorf("nothing shows what %s takes away", s.Name())
		}
	}
}

type weakening struct {
	b      tranca.Backend
	report func() tranca.Report
	policy func() tranca.Policy
}

func (w *weakening) run(t *testing.T, l *Loss) {
	before := w.report()
	if l.Root {
		require.Root(t)
	}
	switch g := before.Find(l.Item); {
	case g.Held || l.Item == tranca.ItemMountDisk: // which is held of some mounts
	case l.Item == tranca.ItemUser:
		require.Check(t, "subids", false, g.Missing)
	default:
		require.Check(t, "cgroup", false, g.Missing)
	}
	stated := w.play(t, l, false)
	restore, err := weaken.Take(w.b.Name() + ":" + string(l.Item))
	if err != nil {
		t.Fatal(err)
	}
	defer restore()
	if now := w.play(t, l, true); !reflect.DeepEqual(anybodys(stated), anybodys(now)) {
		t.Errorf("a weakened sandbox states something else:\n%v\n%v", stated, now)
	}
	if now := w.report(); !reflect.DeepEqual(before, now) {
		t.Errorf("a weakened backend reports something else:\n%v\n%v", before, now)
	}
}

// anybodys is a statement without the number of the user that one sandbox has.
func anybodys(all []tranca.Enforcement) []tranca.Enforcement {
	all = slices.Clone(all)
	for i := range all {
		if e := &all[i]; e.Item == tranca.ItemUser {
			e.Mechanism = strings.Map(func(r rune) rune {
				if r >= '0' && r <= '9' {
					return '#'
				}
				return r
			}, e.Mechanism)
		}
	}
	return all
}

// play runs the program and returns what is stated of its sandbox.
func (w *weakening) play(t *testing.T, l *Loss, weakened bool) []tranca.Enforcement {
	t.Helper()
	s := &Stage{
		TB: t, Policy: w.policy(), Dir: OpenFolder(t), Canary: "canary-" + rand.Text(), Mark: "mark-" + rand.Text(),
		Effect: map[string]func() bool{},
	}
	s.Vars = map[string]any{"mark": s.Mark}
	if l.Scene != nil {
		l.Scene(s)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	sb, err := w.b.Create(ctx, tranca.Spec{ID: tranca.NewID(), Policy: s.Policy})
	if err != nil {
		t.Fatal(err)
	}
	defer Close(t, "sandbox", sb)
	if l.Look != nil {
		if _, err := sb.Start(ctx, tranca.Command{Args: Argv(t, "time.sleep(60)", s.Vars)}); err != nil {
			t.Fatal(err)
		}
		if lost := l.Look(s); lost != weakened {
			t.Errorf("weakened %v, and the host sees it gone: %v", weakened, lost)
		}
		return sb.Enforcement()
	}
	start := time.Now()
	got := Run(t, sb, tranca.Command{Args: Argv(t, l.Program, s.Vars)})
	s.Took = time.Since(start)
	l.judge(s, got, weakened)
	return sb.Enforcement()
}

func (l *Loss) judge(s *Stage, got Outcome, weakened bool) {
	s.Helper()
	if l.Lost != nil {
		if lost := l.Lost(s, got); lost != weakened {
			s.Errorf("weakened %v, and lost %v: it ended with %s after %s and %s of CPU: %q %q",
				weakened, lost, got.Exit, s.Took, got.Usage.CPU, got.Stdout, got.Stderr)
		}
		return
	}
	r := &Report{}
	r.Take(got, s.Canary)
	r.Decide(s.Effect)
	if len(r.Attempts) == 0 {
		s.Errorf("nothing was attempted: %q %q", got.Stdout, got.Stderr)
	}
	r.All(s, "weakened", weakened)
}

// Open plants a canary that everybody may read and a file that everybody may
// remove, in the stage's folder and in one of it.
func (s *Stage) Open() {
	s.Helper()
	s.Vars["dir"] = s.Dir
	for _, dir := range []string{s.Dir, s.Dir + "/denied"} {
		err := os.MkdirAll(dir, 0o777)
		if err == nil {
			err = os.Chmod(dir, 0o777)
		}
		for _, name := range []string{"secret", "victim"} {
			if err == nil {
				err = os.WriteFile(dir+"/"+name, []byte(s.Canary), 0o644)
			}
		}
		if err != nil {
			s.Fatal(err)
		}
	}
}

// Serve listens on the host, at a port that the program is told.
func (s *Stage) Serve() *Listener {
	s.Helper()
	l := &Listener{}
	s.Vars["port"] = l.Port(s, "tcp4", "127.0.0.1:0")
	return l
}

// Neighbour starts a process of the host with the canary in its arguments. The
// program is told its number.
func (s *Stage) Neighbour() {
	s.Helper()
	cmd := exec.Command("/usr/bin/python3", "-I", "-c", "import time; time.sleep(60)", s.Canary)
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	s.Vars["pid"] = cmd.Process.Pid
}

// Hostname tells the program the host's name.
func (s *Stage) Hostname() {
	s.Helper()
	name, err := os.Hostname()
	if err != nil {
		s.Fatal(err)
	}
	s.Vars["host"] = name
}

// Exists reports whether there is a file in the stage's folder.
func (s *Stage) Exists(name string) func() bool {
	return func() bool { _, err := os.Lstat(s.Dir + "/" + name); return err == nil }
}

// Done is the end of a program that says so.
func Done(_ *Stage, o Outcome) bool {
	return o.Exit.Success() && strings.HasSuffix(o.Stdout, "done\n")
}

// HostNode is a device node of the host that no sandbox has.
func HostNode(s *Stage) string {
	s.Helper()
	own := []string{"null", "zero", "full", "random", "urandom", "tty", "ptmx"}
	nodes, err := filepath.Glob("/dev/*")
	if err != nil {
		s.Fatal(err)
	}
	for _, node := range nodes {
		if fi, err := os.Lstat(node); err == nil && fi.Mode()&os.ModeCharDevice != 0 && !slices.Contains(own, filepath.Base(node)) {
			return node
		}
	}
	s.Fatal("this host has no device node beside those of every sandbox")
	return ""
}

// Marked is the process of the program that sleeps, as the host numbers it.
func (s *Stage) Marked() int {
	s.Helper()
	var pids []int
	Eventually(s, "the program runs", func() bool { pids = Marked(s, s.Mark); return len(pids) > 0 })
	return pids[len(pids)-1]
}

// SharedMemory makes a segment of the host that everybody may read. The program
// is told its key.
func (s *Stage) SharedMemory() {
	s.Helper()
	key := int(time.Now().UnixNano() & 0x7fffffff)
	id, err := unix.SysvShmGet(key, 4096, unix.IPC_CREAT|unix.IPC_EXCL|0o644)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
	s.Vars["key"] = key
}
