package gvisor

import (
	"context"
	"crypto/rand"
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

// newBackend makes a backend that is closed with the test.
func newBackend(t testing.TB) *Backend {
	t.Helper()
	b, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { hostiletest.Close(t, "backend", b) })
	return b
}

// testPolicy is a usual policy, less what this host can't enforce for this user.
func testPolicy(b *Backend) tranca.Policy {
	p := *trialPolicy()
	p.Waive, p.Limits = hostiletest.Lacking(&b.report), hostiletest.Limits(time.Minute)
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
	got.Contained(t, "in the sandbox")
	var shown []string
	for _, c := range r.controls {
		shown = append(shown, got.Expected(c.escapes, r.blind)...)
	}
	got.Shown(t, shown, r.blind)
	for _, c := range r.controls {
		t.Run("without "+c.what, func(t *testing.T) { r.control(t, b, c, got) })
	}
}

// control runs the row once more and wants to see it escape.
func (r *row) control(t *testing.T, b *Backend, c control, contained *hostiletest.Report) {
	if c.root {
		require.Root(t)
	}
	s := r.newScene(t, b, c.bare())
	if c.policy != nil {
		c.policy(s, &s.policy)
	}
	s.play(r, c.weaken).Escaped(t, c.what, contained.Expected(c.escapes, r.blind))
}

func (r *row) newScene(t testing.TB, b *Backend, bare bool) *scene {
	t.Helper()
	s := &scene{
		TB: t, b: b, policy: testPolicy(b), bare: bare, dir: hostiletest.OpenFolder(t),
		canary: "canary-" + rand.Text(), mark: "mark-" + rand.Text(),
		effect: map[string]func() bool{},
	}
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
func (s *scene) play(r *row, weaken func(*scene, *plan)) *hostiletest.Report {
	s.Helper()
	got := &hostiletest.Report{}
	if s.bare {
		got.Take(hostiletest.RunBare(s, s.argv(r.program), nil), s.canary)
	} else {
		sb := s.open(weaken)
		got.Take(s.runIn(sb, s.argv(r.program)...), s.canary)
		closeBox(s, sb)
	}
	got.Decide(s.effect)
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
	hostiletest.Close(t, "sandbox", sb)
}

// argv is the command that runs a program of the suite.
func (s *scene) argv(program string) []string {
	s.Helper()
	return hostiletest.Argv(s, program, s.vars)
}

// runIn runs a command to its end.
func (s *scene) runIn(sb tranca.Sandbox, args ...string) hostiletest.Outcome {
	s.Helper()
	return hostiletest.Run(s, sb, tranca.Command{Args: args})
}
