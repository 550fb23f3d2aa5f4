package advise

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"tranca"
)

var update = flag.Bool("update", false, "write the tables of docs/ADVISE.md anew")

const document = "../../docs/ADVISE.md"

func questionTable() string {
	var b strings.Builder
	b.WriteString("| question | answers, the least risk first |\n|---|---|\n")
	for _, q := range Questions() {
		var parts []string
		for _, c := range q.Choices {
			parts = append(parts, "`"+c.Word+"`: "+c.Means)
		}
		if q.Choices == nil {
			parts = []string{q.Form}
		}
		fmt.Fprintf(&b, "| `%s`: %s | %s |\n", q.Name, q.Text, strings.Join(parts, "<br>"))
	}
	return b.String()
}

func code(word string) string {
	if word == "" {
		return ""
	}
	return "`" + word + "`"
}

func ruleTable() string {
	var b strings.Builder
	b.WriteString("| code | breakout | network | secrets | floor | aim | holes | because |\n|---|---|---|---|---|---|---|---|\n")
	for _, r := range rules() {
		if r.Floor == 0 {
			continue
		}
		aim, holes := "", ""
		if r.Aim != 0 {
			aim = code(r.Aim.String())
		}
		if r.RefuseHoles {
			holes = "refuse"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | `%s` | %s | %s | %s |\n",
			code(r.Code), code(r.Breakout), code(r.Network), code(r.Secrets), r.Floor, aim, holes, r.Why)
	}
	return b.String()
}

func contradictionTable() string {
	var b strings.Builder
	b.WriteString("| code | breakout | network | secrets | because |\n|---|---|---|---|---|\n")
	for _, r := range rules() {
		if r.Contradiction != "" {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", code(r.Code), code(r.Breakout), code(r.Network), code(r.Secrets), r.Contradiction)
		}
	}
	return b.String()
}

func gapTable() string {
	var b strings.Builder
	levels := tranca.Levels()[1:]
	head, line := "| not protected from |", "|---|"
	for _, l := range levels {
		head, line = head+" `"+l.String()+"` |", line+"---|"
	}
	b.WriteString(head + "\n" + line + "\n")
	for _, r := range rules() {
		if r.Gap == "" {
			continue
		}
		fmt.Fprintf(&b, "| %s |", r.Gap)
		for _, l := range levels {
			mark := ""
			for _, has := range r.Levels {
				if has == l {
					mark = "x"
				}
			}
			fmt.Fprintf(&b, " %s |", mark)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestDocument holds docs/ADVISE.md to the rules; -update writes the tables.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	want := string(text)
	for name, table := range map[string]string{
		"questions": questionTable(), "rules": ruleTable(), "contradictions": contradictionTable(), "gaps": gapTable(),
	} {
		begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
		before, rest, ok := strings.Cut(want, begin)
		_, after, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			t.Fatalf("docs/ADVISE.md has no marks for %s", name)
		}
		want = before + begin + table + end + after
	}
	if *update {
		if err := os.WriteFile(document, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(text) != want {
		t.Error("the tables of docs/ADVISE.md are not those of the rules: go test ./internal/advise -update")
	}
}

// TestDocumentsAnswerFile: the answer file that the document shows can be used.
func TestDocumentsAnswerFile(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```yaml\n")
	file, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("docs/ADVISE.md shows no answer file")
	}
	given, err := ReadAnswers("answers.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	if a, open, err := Collect(given); err != nil || open != nil || a.Code != "strangers" || a.Rate != 5 {
		t.Errorf("%+v, %v, %v", a, open, err)
	}
}
