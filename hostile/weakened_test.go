//go:build tranca_weaken

package hostile

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tranca"
	"tranca/hostile/report"
	"tranca/internal/require"
	"tranca/internal/weaken"
)

// TestWeakenedSuite takes each guarantee of each backend away, by a build that
// lets it be done, and shows that the suite then names it: a probe of that
// guarantee escapes, or what became of it was told wrong. So a suite that finds
// nothing has looked.
func TestWeakenedSuite(t *testing.T) {
	require.Root(t)
	program := weakened(t)
	for _, backend := range []string{"process", "subprocess", "gvisor", "container"} {
		t.Run(backend, func(t *testing.T) {
			env := reach(t, backend)
			for _, s := range weaken.Switches() {
				if s.Backend == backend && s.Takes != "" {
					t.Run(string(s.Item), func(t *testing.T) { turnsRed(t, program, s, env) })
				}
			}
		})
	}
}

// reach asks for what a backend needs here.
func reach(t *testing.T, backend string) []string {
	t.Helper()
	switch backend {
	case "gvisor":
		require.Sentry(t)
	case "container":
		return []string{
			"TRANCA_CONTAINER_ENGINE=" + require.Engine(t, "docker"),
			"TRANCA_CONTAINER_IMAGE=" + require.Image(t),
		}
	}
	return nil
}

// batch is how many probes are run at once, until one bites.
const batch = 3

func turnsRed(t *testing.T, program string, s weaken.Switch, env []string) {
	var seen []string
	for ids := range slices.Chunk(probesOf(t, s.Item), batch) {
		r := weakly(t, program, s.Backend, s.Name(), env, ids)
		c := r.Column(s.Backend)
		if c == nil || c.Missing != "" {
			t.Fatalf("%s was not run: %+v", s.Backend, c)
		}
		if slices.Contains(c.Waived, s.Item) || !slices.ContainsFunc(c.Guarantees, func(g tranca.Guarantee) bool { return g.Item == s.Item && g.Held }) {
			t.Logf("here %s does not promise %s, so there is nothing to take away", s.Backend, s.Item)
			return
		}
		for _, cell := range r.Cells {
			if red(&cell, s.Backend) {
				greenWhole(t, program, s.Backend, env, cell.Probe)
				return
			}
			seen = append(seen, cell.Probe+" in "+cell.Column+": "+string(cell.Verdict)+": "+cell.Why)
		}
	}
	t.Errorf("without %s (%s) nothing turned red:\n%s", s.Item, s.Takes, strings.Join(seen, "\n"))
}

func red(cell *report.Cell, backend string) bool {
	return cell.Column == backend && cell.Bad() && (cell.Verdict == report.Escaped || cell.Verdict == report.Failed)
}

// greenWhole shows that a probe that turned red does so for what was taken away.
func greenWhole(t *testing.T, program, backend string, env []string, id string) {
	t.Helper()
	r := weakly(t, program, backend, "", env, []string{id})
	for _, cell := range r.Cells {
		held := cell.Verdict == report.Contained || cell.Verdict == report.Limited
		if cell.Column == backend && !held && cell.Verdict != cell.Expected {
			t.Errorf("%s is %s with nothing taken away: %s", id, cell.Verdict, cell.Why)
		}
	}
}

// weakly runs probes against a backend without what a switch takes, or with all
// where it is empty.
func weakly(t *testing.T, program, backend, without string, env, ids []string) *report.Report {
	t.Helper()
	args := []string{"hostile", "--json", "--quiet", "--backend", backend}
	for _, id := range ids {
		args = append(args, "--only", id)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(append(os.Environ(), env...), "TRANCA_WEAKEN="+without)
	var out, trouble bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &trouble
	_ = cmd.Run() // its status is what the report says
	r, err := report.Read(&out)
	if err != nil {
		t.Fatalf("%v\n%s", err, trouble.String())
	}
	return r
}

// probesOf are the probes of a guarantee.
func probesOf(t *testing.T, item tranca.Item) (ids []string) {
	t.Helper()
	all, err := Probes()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if p.Guarantee == item {
			ids = append(ids, p.ID)
		}
	}
	return ids
}

// weakened builds a tranca that can be weakened.
func weakened(t *testing.T) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "tranca")
	cmd := exec.Command(require.Program(t, "go"), "build", "-trimpath", "-buildvcs=false", "-tags", "tranca_weaken", "-ldflags", "-s -w", "-o", out, "tranca/cmd/tranca")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}
