package gvisor

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/hostiletest"
	"tranca/internal/require"
)

// The hostile programs. Under gVisor a system call that succeeds has had no
// effect on the host, so that an attempt counts by what the host sees of it: a
// canary that was read, a connection that came in, a file that changed. Each has
// a benign twin on the same path, and each is seen escaping in a control: on the
// bare host, or in a sandbox with a guarantee taken away.

// row is one hostile program.
type row struct {
	id, what string
	// scene plants what the program looks for. It is called anew for each run.
	scene func(*scene)
	// program is Python, after the prelude. It gets scene.vars as V.
	program string
	// controls take the boundary away.
	controls []control
	// blind are attempts that no control lets escape on every host, each with
	// the reason.
	blind map[string]string
}

// control runs a row with the boundary taken away: by weaken, by another policy
// or, without either, on the bare host as a child of the test.
type control struct {
	what   string
	weaken func(*scene, *plan)
	policy func(*scene, *tranca.Policy)
	// root: only root can do without the boundary.
	root bool
	// escapes are the attempts that come out; nil stands for all but the blind.
	escapes []string
}

func (c *control) bare() bool { return c.weaken == nil && c.policy == nil }

// scene is what a row plays in.
type scene struct {
	testing.TB
	b      *Backend
	policy tranca.Policy
	// canary is planted on the host and told to nobody inside; mark is in the
	// arguments of everything that the row starts on the host.
	canary, mark string
	vars         map[string]any
	// effect decides an attempt by what it did on the host.
	effect map[string]func() bool
	dir    string // a folder on the host, of the row's own
	bare   bool
}

// report is what a program told.
type report struct {
	attempts map[string]bool   // whether it escaped
	values   map[string]string // what it said of attempts and twins
	broken   []string
	twins    int
	exit     tranca.Exit
	text     string
}

// newBackend makes a backend that is closed with the test.
func newBackend(t testing.TB) *Backend {
	t.Helper()
	b, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := b.Close(ctx); err != nil {
			t.Errorf("close backend: %v", err)
		}
	})
	return b
}

// testPolicy is a usual policy, less what this host can't enforce for this user.
func testPolicy(b *Backend) tranca.Policy {
	p := *trialPolicy()
	p.Waive = nil
	for _, item := range tranca.Waivable() {
		if !b.report.Holds(item) {
			p.Waive = append(p.Waive, item)
		}
	}
	p.Limits = tranca.Limits{
		Wall: time.Minute, CPUTime: time.Minute, MilliCPUs: 1000,
		Memory: 256 << 20, Processes: 64, OpenFiles: 256, FileSize: 64 << 20,
		Disk:   tranca.Disk{Size: 64 << 20, Inodes: 16384, Backing: tranca.BackingMemory},
		Output: tranca.Output{Size: 1 << 20, OnExceed: tranca.ExceedTruncate},
	}
	return p
}

// runRows runs a table.
func runRows(t *testing.T, rows []row) {
	t.Helper()
	b := newBackend(t)
	for _, r := range rows {
		t.Run(r.id+" "+r.what, func(t *testing.T) { r.run(t, b) })
	}
}

func (r *row) run(t *testing.T, b *Backend) {
	got := r.newScene(t, b, false).play(r, nil)
	got.contained(t)
	shown := maps.Clone(r.blind)
	if shown == nil {
		shown = map[string]string{}
	}
	for _, c := range r.controls {
		for _, name := range c.expected(got, r.blind) {
			shown[name] = c.what
		}
	}
	for name := range got.attempts {
		if _, ok := shown[name]; !ok {
			t.Errorf("%s: no control lets it escape, so that it is denied shows nothing", name)
		}
	}
	for _, c := range r.controls {
		t.Run("without "+c.what, func(t *testing.T) { r.control(t, b, c, got) })
	}
}

// control runs the row once more and wants to see it escape.
func (r *row) control(t *testing.T, b *Backend, c control, contained *report) {
	if c.root {
		require.Root(t)
	}
	s := r.newScene(t, b, c.bare())
	if c.policy != nil {
		c.policy(s, &s.policy)
	}
	got := s.play(r, c.weaken)
	got.sound(t, "without "+c.what)
	for _, name := range c.expected(contained, r.blind) {
		if escaped, ok := got.attempts[name]; !ok || !escaped {
			t.Errorf("%s: denied also without %s: %s", name, c.what, got.values[name])
		}
	}
}

// expected are the attempts that a control lets escape.
func (c *control) expected(got *report, blind map[string]string) []string {
	if c.escapes != nil {
		return c.escapes
	}
	var all []string
	for name := range got.attempts {
		if blind[name] == "" {
			all = append(all, name)
		}
	}
	return all
}

// contained checks that every attempt was denied.
func (r *report) contained(t testing.TB) {
	t.Helper()
	r.sound(t, "in the sandbox")
	for _, name := range slices.Sorted(maps.Keys(r.attempts)) {
		if r.attempts[name] {
			t.Errorf("%s: escaped: %s", name, r.values[name])
		}
	}
}

// sound checks that the program ran to its end and its twins worked.
func (r *report) sound(t testing.TB, where string) {
	t.Helper()
	if !r.exit.Success() {
		t.Errorf("%s the program ended with %s:\n%s", where, r.exit, r.text)
	}
	if len(r.broken) > 0 || r.twins == 0 {
		t.Errorf("%s %d allowed acts worked, and these failed: %q\n%s", where, r.twins, r.broken, r.text)
	}
}

func (r *row) newScene(t testing.TB, b *Backend, bare bool) *scene {
	t.Helper()
	s := &scene{
		TB: t, b: b, policy: testPolicy(b), bare: bare,
		canary: "canary-" + rand.Text(), mark: "mark-" + rand.Text(),
		effect: map[string]func() bool{},
	}
	dir, err := os.MkdirTemp("/tmp", "hostile-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s.dir = dir
	s.vars = map[string]any{"mark": s.mark, "bare": bare, "nr": map[string]int{
		"open_by_handle_at": unix.SYS_OPEN_BY_HANDLE_AT, "name_to_handle_at": unix.SYS_NAME_TO_HANDLE_AT,
		"mlockall": unix.SYS_MLOCKALL, "add_key": unix.SYS_ADD_KEY, "mknodat": unix.SYS_MKNODAT,
	}}
	if r.scene != nil {
		r.scene(s)
	}
	return s
}

// play runs the row's program and reads what it tells.
func (s *scene) play(r *row, weaken func(*scene, *plan)) *report {
	s.Helper()
	got := &report{attempts: map[string]bool{}, values: map[string]string{}}
	if s.bare {
		s.playBare(r.program, got)
	} else {
		sb := s.open(weaken)
		out := s.runIn(sb, s.argv(r.program)...)
		got.exit = out.exit
		got.take(s, out.out, out.stderr)
		closeBox(s, sb)
	}
	for name, happened := range s.effect {
		if _, tried := got.attempts[name]; tried {
			got.attempts[name] = happened()
		}
	}
	return got
}

// open makes a sandbox of the scene's policy.
func (s *scene) open(weaken func(*scene, *plan)) tranca.Sandbox {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if weaken != nil {
		s.b.weaken = func(pl *plan) { weaken(s, pl) }
	}
	defer func() { s.b.weaken = nil }()
	sb, err := s.b.Create(ctx, tranca.Spec{ID: tranca.NewID(), Policy: s.policy})
	if err != nil {
		s.Fatal(err)
	}
	return sb
}

func closeBox(t testing.TB, sb tranca.Sandbox) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := sb.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
}

// argv is the command that runs a program of the suite.
func (s *scene) argv(program string) []string {
	s.Helper()
	vars, err := json.Marshal(s.vars)
	if err != nil {
		s.Fatal(err)
	}
	return []string{"/usr/bin/python3", "-I", "-c", hostiletest.Prelude + program, string(vars)}
}

// outcome is how a command ended.
type outcome struct {
	exit        tranca.Exit
	out, stderr string
	usage       tranca.Usage
	err         error // what waiting said, where it did not end well
}

// runIn runs a command to its end.
func (s *scene) runIn(sb tranca.Sandbox, args ...string) outcome {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	proc, err := sb.Start(ctx, tranca.Command{Args: args, Stdout: &out, Stderr: &errs})
	if err != nil {
		s.Fatal(err)
	}
	exit, err := proc.Wait(ctx)
	u, uerr := sb.Usage(ctx)
	if uerr != nil {
		s.Fatal(uerr)
	}
	return outcome{exit, out.String(), errs.String(), u, err}
}

// playBare runs a program as a child of the test, with nothing around it.
func (s *scene) playBare(program string, got *report) {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	argv := s.argv(program)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = s.TempDir()
	cmd.WaitDelay = 2 * time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	got.exit = tranca.Exit{Reason: tranca.EndExited}
	if err != nil {
		got.exit.Code = cmd.ProcessState.ExitCode()
	}
	got.take(s, out.String(), errs.String())
}

// take reads a program's lines.
func (r *report) take(s *scene, out, errs string) {
	r.text += out + errs
	for line := range strings.Lines(out) {
		f := strings.SplitN(strings.TrimSpace(line), "\t", 4)
		if len(f) != 4 {
			continue
		}
		name := f[1]
		r.values[name] = f[3]
		switch f[0] + " " + f[2] {
		case "attempt escaped":
			r.attempts[name] = true
		case "attempt denied":
			r.attempts[name] = r.attempts[name] || false
		case "attempt read":
			r.attempts[name] = r.attempts[name] || strings.Contains(f[3], s.canary)
		case "twin ok":
			r.twins++
		case "twin broken":
			r.broken = append(r.broken, name+": "+f[3])
		}
	}
}
