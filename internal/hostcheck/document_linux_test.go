package hostcheck

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"tranca/internal/advisory"
)

const document = "../../docs/DOCTOR.md"

// cell makes text fit for a table.
func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }

func checkTable() string {
	var b strings.Builder
	b.WriteString("| check | looks at | not `ok`: the risk | mend | decides |\n|---|---|---|---|---|\n")
	group := ""
	for _, c := range BuiltIn().Rows {
		if c.Group != group {
			group = c.Group
			fmt.Fprintf(&b, "| **%s** | | | | |\n", group)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", c.ID, cell(c.Looks), cell(c.Risk), cell(c.Mend), strings.Join(c.Probes, ", "))
	}
	return b.String()
}

func holeTable() string {
	var b strings.Builder
	b.WriteString("| component | hole | mended in | using it needs | behaviour tried | from inside |\n|---|---|---|---|---|---|\n")
	for _, h := range advisory.BuiltIn().Holes() {
		fixed, tried := strings.Join(h.Fixed, ", "), ""
		if h.From != "" {
			fixed += "; from " + h.From
		}
		if h.Item != "" {
			tried = "`" + string(h.Item) + "`, in a trial sandbox"
		}
		if h.Check != "" {
			tried = "the check `" + h.Check + "`"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", h.Component, h.ID, fixed, cell(h.Needs), tried, strings.Join(h.Probes, ", "))
	}
	return b.String()
}

// TestDocument holds docs/DOCTOR.md to the lists; -update writes the tables.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	want := between(t, between(t, string(text), "checks", checkTable()), "advisories", holeTable())
	if *update {
		if err := os.WriteFile(document, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(text) != want {
		t.Error("the tables of docs/DOCTOR.md are not those of the lists: go test ./internal/hostcheck -update")
	}
	for _, k := range Kinds() {
		if !strings.Contains(want, "| `"+string(k)+"` |") {
			t.Errorf("docs/DOCTOR.md does not speak of the kind %s", k)
		}
	}
}

// between puts a table between the marks of a name.
func between(t *testing.T, text, name, table string) string {
	t.Helper()
	begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
	before, rest, ok := strings.Cut(text, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("docs/DOCTOR.md has no marks for %s", name)
	}
	return before + begin + table + end + after
}
