package hostile

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tranca"
	"tranca/hostile/report"
)

var update = flag.Bool("update", false, "write the section of docs/SECURITY.md and the table of README.md anew")

// TestEveryPromiseHasAProbe shows that no item of a policy is only claimed, and
// that no probe is about something that nobody promises.
func TestEveryPromiseHasAProbe(t *testing.T) {
	all, err := Probes()
	if err != nil {
		t.Fatal(err)
	}
	tried := map[tranca.Item]bool{}
	for _, p := range all {
		tried[p.Guarantee] = true
	}
	for _, item := range tranca.Items() {
		if !tried[item] {
			t.Errorf("%s is promised, and no probe tries to break it", item)
		}
	}
	if len(all) < 100 {
		t.Errorf("there are %d probes", len(all))
	}
}

// The run that documents tell of, and what holds what comes from it.
const (
	expected = "expected/root.json"
	begins   = "<!-- made by: go test ./hostile -update -->\n"
	ends     = "<!-- end -->"
)

// TestDocumentsAreOfTheRun shows that what docs/SECURITY.md and README.md say of
// probes is what the run found that is kept here, and that the run had every
// probe.
func TestDocumentsAreOfTheRun(t *testing.T) {
	f, err := os.Open(expected)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	run, err := report.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	ran := make([]string, len(run.Probes))
	for i, p := range run.Probes {
		ran[i] = p.ID
	}
	all, err := Probes()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if !slices.Contains(ran, p.ID) {
			t.Errorf("%s is not in %s: run scripts/hostile.sh expect", p.ID, expected)
		}
	}
	var promises bytes.Buffer
	if err := run.WritePromises(&promises); err != nil {
		t.Fatal(err)
	}
	section(t, "../docs/SECURITY.md", promises.String())
	section(t, "../README.md", counts(run))
}

// counts is a table of how the cells of each column stand.
func counts(run *report.Report) string {
	var b strings.Builder
	b.WriteString("| column | held | escaped | failed or unknown | n/a | of all these, wrong where promised |\n|---|---|---|---|---|---|\n")
	tallies := run.Tallies()
	for _, c := range run.Ran() {
		name, t := "`"+c.Name+"`", tallies[c.Name]
		switch c.Kind {
		case report.ColumnControl:
			name = "nothing (the control)"
		case report.ColumnReference:
			name += ", without a flag"
		case report.ColumnAgainst:
			name += ", " + c.Tool
		}
		v := t.Verdicts
		wrong := "promises nothing"
		if c.Kind == report.ColumnBackend {
			wrong = strconv.Itoa(t.Bad)
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %s |\n", name, v[report.Limited]+v[report.Contained],
			v[report.Escaped], v[report.Failed]+v[report.Unknown], v[report.NotApplicable], wrong)
	}
	return b.String()
}

// section compares what stands in a document, or writes it anew.
func section(t *testing.T, document, want string) {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begins)
	is, after, ok2 := strings.Cut(rest, ends)
	if !ok || !ok2 {
		t.Fatalf("%s has no section between %q and %q", document, begins, ends)
	}
	if is == want {
		return
	}
	if !*update {
		t.Errorf("the table in %s is not of %s: run go test ./hostile -update", document, expected)
		return
	}
	if err := os.WriteFile(document, []byte(before+begins+want+ends+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
