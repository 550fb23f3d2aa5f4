package hostile

import (
	"bytes"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"tranca"
	"tranca/hostile/report"
)

var update = flag.Bool("update", false, "write the section of docs/SECURITY.md anew")

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

// The section of docs/SECURITY.md that comes from a run, and the run.
const (
	document = "../docs/SECURITY.md"
	expected = "expected/root.json"
	begins   = "<!-- made by: go test ./hostile -update -->\n"
	ends     = "<!-- end -->"
)

// TestDocumentIsOfTheRun shows that what docs/SECURITY.md says of probes is what
// the run found that is kept here, and that the run had every probe.
func TestDocumentIsOfTheRun(t *testing.T) {
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
	var table bytes.Buffer
	if err := run.WritePromises(&table); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begins)
	section, after, ok2 := strings.Cut(rest, ends)
	if !ok || !ok2 {
		t.Fatalf("%s has no section between %q and %q", document, begins, ends)
	}
	if section == table.String() {
		return
	}
	if !*update {
		t.Fatalf("the table in %s is not of %s: run go test ./hostile -update", document, expected)
	}
	if err := os.WriteFile(document, []byte(before+begins+table.String()+ends+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
