package hostiletest

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tranca"
	"tranca/internal/backend/process"
	"tranca/internal/policy"
	"tranca/internal/require"
	"tranca/local"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is tranca with one policy, and the host around it.
type world struct {
	testing.TB
	*local.Local
	// mark is in the arguments of everything that is run; dir is a folder of
	// the host, /p inside where it is shared.
	mark, dir string
	report    tranca.Report
}

// newWorld makes tranca with the process backend and the default policy,
// changed. What this host can't enforce for this user is waived.
func newWorld(t testing.TB, change func(*world, *tranca.Policy)) *world {
	t.Helper()
	b, err := process.New(process.Options{})
	if err != nil {
		t.Fatal(err)
	}
	report, err := b.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{TB: t, mark: "mark-" + rand.Text(), dir: OpenFolder(t), report: report}
	p := local.DefaultPolicy()
	p.Floor, p.Backend = tranca.LevelProcess, process.Name
	p.Waive = append(p.Waive, Lacking(&report)...)
	if change != nil {
		change(w, &p)
	}
	w.Local, err = local.New(local.WithBackend(b), local.WithPolicy(p))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return w
}

// shared is a change of the policy that mounts w.dir at /p, writable.
func shared(w *world, p *tranca.Policy) {
	p.Mounts = []tranca.Mount{{
		Source: w.dir, Target: "/p", Writable: true, DiskUnbounded: true, Protect: policy.DefaultProtect(),
	}}
}

// holds asks for an item that this host may not be able to enforce.
func (w *world) holds(item tranca.Item) {
	w.Helper()
	require.Check(w, "cgroup", w.report.Holds(item), w.report.Find(item).Missing)
}

// run runs code to its end, and wants nothing to be left of it.
func (w *world) run(code string) *tranca.Result {
	w.Helper()
	return w.request(tranca.Request{Code: code})
}

func (w *world) request(req tranca.Request) *tranca.Result {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	req.Args = append(req.Args, w.mark)
	res, err := w.RunRequest(ctx, req)
	if err != nil {
		w.Fatal(err)
	}
	if left := w.left(); len(left) > 0 {
		w.Errorf("processes %v are left", left)
	}
	return res
}

// left returns the processes of the host that have the mark in their arguments.
func (w *world) left() []int {
	w.Helper()
	return Marked(w, w.mark)
}

// ended checks how a run ended and what was refused.
func ended(t testing.TB, res *tranca.Result, want tranca.Reason, hits ...tranca.LimitHit) {
	t.Helper()
	if res.Exit.Reason != want {
		t.Errorf("ended with %s, want %s\n%.300q\n%.2000s\n%q", res.Exit, want, res.Stdout, res.Stderr, res.Notes)
	}
	if strings.Join(words(res.LimitsHit), " ") != strings.Join(words(hits), " ") {
		t.Errorf("hit %v, want %v", res.LimitsHit, hits)
	}
}

func words(hits []tranca.LimitHit) []string {
	var all []string
	for _, h := range hits {
		all = append(all, string(h))
	}
	return all
}
