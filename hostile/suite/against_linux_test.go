package suite

import (
	"slices"
	"strings"
	"testing"
	"time"

	"tranca"
	"tranca/hostile"
	"tranca/hostile/report"
	"tranca/hostile/world"
	"tranca/internal/require"
)

// reads is a probe that reads a secret of the host.
const reads = `try: Read a key.
why: It opens doors.
guarantee: files
severity: HostLeak
rows: [FS-01]
attempt:
  - {do: read, path: "{canary.ssh}"}
twin:
  - {do: write, path: "{space}/file", data: x}
`

// ready asks for what these tests need, and gives the world a home to put canaries
// in, which not every user has.
func ready(t *testing.T) {
	t.Helper()
	require.Program(t, "python3")
	t.Setenv("HOME", t.TempDir())
}

func tryAgainst(t *testing.T, patience time.Duration, script string) *Observation {
	t.Helper()
	p, err := hostile.Parse("fs-01-read", []byte(reads))
	if err != nil {
		t.Fatal(err)
	}
	a := &Against{Args: []string{"sh", "-c", script}, Patience: patience}
	began := time.Now()
	o := Stage{}.Try(t.Context(), p, false, a)
	if took := time.Since(began); took > 2*patience {
		t.Errorf("it took %s", took)
	}
	return o
}

func has(o *Observation, oracle string) bool {
	return slices.ContainsFunc(o.Findings, func(f world.Finding) bool { return f.Oracle == oracle })
}

// TestAgainst runs commands that behave as no sandbox should.
func TestAgainst(t *testing.T) {
	ready(t)
	t.Run("no sandbox at all", func(t *testing.T) {
		if o := tryAgainst(t, time.Minute, "exec python3 -"); !has(o, "secret") || !o.Attempt.Done {
			t.Errorf("%+v", o)
		}
	})
	t.Run("hangs", func(t *testing.T) {
		o := tryAgainst(t, 3*time.Second, "sleep 1000")
		if !slices.ContainsFunc(o.Trouble, func(s string) bool { return strings.Contains(s, "it hung: 3s") }) {
			t.Errorf("%+v", o)
		}
	})
	t.Run("floods", func(t *testing.T) {
		if o := tryAgainst(t, 3*time.Second, "exec yes"); !o.Attempt.Cut || o.Attempt.Done || len(o.Seen.Output["output"]) > mostSeen {
			t.Errorf("cut %v, %d bytes kept", o.Attempt.Cut, len(o.Seen.Output["output"]))
		}
	})
	t.Run("forks, and what it forks holds its streams", func(t *testing.T) {
		if o := tryAgainst(t, time.Minute, "for i in 1 2 3; do sleep 300 & done; exec python3 -"); !has(o, "secret") || len(o.Trouble) > 0 {
			t.Errorf("%+v", o)
		}
	})
	t.Run("is not there", func(t *testing.T) {
		p, _ := hostile.Parse("fs-01-read", []byte(reads))
		o := Stage{}.Try(t.Context(), p, false, &Against{Args: []string{"/nonexistent/box"}})
		cell := Judge(p, &report.Column{Name: "box", Kind: report.ColumnAgainst, Command: "box"}, NoBoundaryPython, o, o, o)
		if cell.Verdict != report.Unknown || cell.Promised {
			t.Errorf("%+v", cell)
		}
	})
}

// TestAgainstIsNotFooled: a command that runs the program and tells of its own
// that it was denied is found out by what the host sees.
func TestAgainstIsNotFooled(t *testing.T) {
	ready(t)
	p, err := hostile.Parse("fs-08-remove", []byte(strings.NewReplacer(
		"{do: read, path: \"{canary.ssh}\"}", "{do: remove, path: \"{canary.ssh}\"}", "HostLeak", "Integrity").Replace(reads)))
	if err != nil {
		t.Fatal(err)
	}
	lie := `python3 - >/dev/null; printf '\036probe {"step":0,"errno":"EACCES"}\n\036probe {"step":-1}\n'`
	o := Stage{}.Try(t.Context(), p, false, &Against{Args: []string{"sh", "-c", lie}})
	cell := Judge(p, &report.Column{Name: "liar", Kind: report.ColumnAgainst, Command: "liar"}, NoBoundaryPython, o, o, o)
	if cell.Verdict != report.Escaped || p.Guarantee != tranca.ItemFiles {
		t.Errorf("%s: %s", cell.Verdict, cell.Why)
	}
}
