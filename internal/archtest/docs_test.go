package archtest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tranca/internal/hostiletest"
	"tranca/internal/require"
)

// A rule that sees nothing wrong with these would see nothing wrong anywhere.
func TestDocRulesSeeViolations(t *testing.T) {
	tests := Tests{Funcs: map[string]bool{"process.TestHostileFiles": true, "process.TestProcess": true},
		Text: `{"Kill/Tree", testKillTree, nil}, id: "FS-01"`}
	there := func(name string) bool { return name == "docs/A.md" || name == "internal/engine" }
	headings := func(string) []string {
		return Headings("# One thing\n```\n# no heading\n```\n## What's *not* promised\n")
	}
	help := func(sub string) (string, bool) { return "--json  -c CODE, --code CODE", sub == "run" }
	for _, c := range []struct {
		name, text, want string
		check            func(Doc) []string
	}{
		{"link", "[a](B.md)", "not there", func(d Doc) []string { return CheckLinks(d, there, headings) }},
		{"anchor", "[a](A.md#two)", "no such heading", func(d Doc) []string { return CheckLinks(d, there, headings) }},
		{"own anchor", "[a](#no-heading)", "no such heading", func(d Doc) []string { return CheckLinks(d, there, headings) }},
		{"path", "see `internal/motor`", "internal/motor", func(d Doc) []string { return CheckLinks(d, there, headings) }},
		{"test", "process.TestNothing", "there is none", func(d Doc) []string { return CheckNamedTests(d, tests) }},
		{"case", "process.TestProcess/Kill/Bush", "Kill/Bush", func(d Doc) []string { return CheckNamedTests(d, tests) }},
		{"row", "| FS-01, FS-99 | x | process.TestHostileFiles |", "FS-99", func(d Doc) []string { return CheckRows(d, tests) }},
		{"command", "```sh\ntranca fly --json\n```", "no command fly", func(d Doc) []string { return CheckCommands(d, help) }},
		{"flag", "```console\n$ tranca run --jsn -c '--x'\n```", "no flag --jsn", func(d Doc) []string { return CheckCommands(d, help) }},
		{"inline", "`tranca run --fast`", "no flag --fast", func(d Doc) []string { return CheckCommands(d, help) }},
		{"target", "`make magic`", "make magic", func(d Doc) []string { return CheckTargets(d, "test: build\n") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := strings.Join(c.check(Doc{"docs/A.md", c.text}), "\n"); !strings.Contains(got, c.want) {
				t.Errorf("violations %q, want one with %q", got, c.want)
			}
		})
	}
	right := "# A\n[a](A.md#one-thing) [b](#whats-not-promised) [c](https://a.example/x) `internal/engine`\n" +
		"process.TestProcess/Kill/Tree\n| FS-01 | x | process.TestHostileFiles |\n`make test`\n" +
		"```sh\ntranca run --json -c 'print(\"--x\")' -- --own | grep -v x\n```\n"
	d := Doc{"docs/A.md", right}
	bad := append(CheckLinks(d, there, headings), CheckNamedTests(d, tests)...)
	bad = append(append(bad, CheckRows(d, tests)...), CheckCommands(d, help)...)
	for _, line := range append(bad, CheckTargets(d, "test: build\n")...) {
		t.Errorf("forbidden, but right: %s", line)
	}
}

// docs returns the documents for readers.
func docs(t *testing.T) []Doc {
	t.Helper()
	var all []Doc
	for _, name := range files(t) {
		if filepath.Ext(name) == ".md" && (path.Dir(name) == "." || path.Dir(name) == "docs") {
			all = append(all, Doc{name, string(read(t, name))})
		}
	}
	if len(all) < 8 {
		t.Fatalf("only %d documents found", len(all))
	}
	return all
}

func TestDocumentLinks(t *testing.T) {
	exists := func(name string) bool {
		_, err := os.Stat(filepath.Join(root, name))
		return err == nil
	}
	makefile := string(read(t, "Makefile"))
	for _, d := range docs(t) {
		report(t, CheckLinks(d, exists, func(name string) []string { return Headings(string(read(t, name))) }))
		report(t, CheckTargets(d, makefile))
	}
}

// TestDocumentsNameRealTests: a promise names the test that shows it.
func TestDocumentsNameRealTests(t *testing.T) {
	tests := Tests{Funcs: map[string]bool{}}
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	var text strings.Builder
	for _, name := range files(t) {
		suite := path.Dir(name) == "backendtest"
		if !strings.HasSuffix(name, "_test.go") && !suite || strings.HasPrefix(name, "internal/archtest/") {
			continue
		}
		content := string(read(t, name))
		text.WriteString(content)
		pkg := path.Base(path.Dir(name))
		if pkg == "." {
			pkg = Module
		}
		for _, m := range function.FindAllStringSubmatch(content, -1) {
			tests.Funcs[pkg+"."+m[1]] = true
		}
	}
	tests.Text = text.String()
	promised := 0
	for _, d := range docs(t) {
		report(t, CheckNamedTests(d, tests))
		report(t, CheckRows(d, tests))
		promised += len(namedTest.FindAllString(d.Text, -1))
	}
	if promised < 50 {
		t.Errorf("the documents name only %d tests", promised)
	}
}

// TestSecurityNamesEachRow: the list of hostile programs for readers is the one
// that the tests are held to.
func TestSecurityNamesEachRow(t *testing.T) {
	lines := strings.Split(string(read(t, "docs/SECURITY.md")), "\n")
	for _, r := range hostiletest.Rows() {
		var row string
		for _, line := range lines {
			if strings.HasPrefix(line, "| ") && strings.Contains(strings.Split(line, "|")[1], r.ID) {
				row = line
			} else if row == "" && len(r.Tests) == 0 && strings.Contains(line, r.ID) {
				row = line
			}
		}
		if row == "" {
			t.Errorf("docs/SECURITY.md does not speak of %s: %s", r.ID, r.What)
		}
		for _, name := range r.Tests {
			if !strings.Contains(row, "."+name) && r.ID != "API-03" {
				t.Errorf("docs/SECURITY.md does not say that %s shows %s", name, r.ID)
			}
		}
	}
}

// TestDocumentCommands runs the help of each command that a document shows.
func TestDocumentCommands(t *testing.T) {
	require.Program(t, "go")
	tranca := filepath.Join(t.TempDir(), "tranca")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", tranca, "./cmd/tranca")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	known := map[string]string{}
	help := func(sub string) (string, bool) {
		if text, ok := known[sub]; ok {
			return text, text != ""
		}
		out, err := exec.Command(tranca, append(strings.Fields(sub), "--help")...).Output()
		if err != nil || !strings.Contains(string(out), "tranca "+sub) {
			out = nil
		}
		known[sub] = string(out)
		return known[sub], out != nil
	}
	shown := 0
	for _, d := range docs(t) {
		report(t, CheckCommands(d, help))
		shown += len(Commands(d.Text))
	}
	if shown < 20 || known["run"] == "" {
		t.Errorf("%d commands are shown, run's help is %q", shown, known["run"])
	}
}

// TestReadmeGo compiles the README's Go in a package that is only there for
// the compiler.
func TestReadmeGo(t *testing.T) {
	require.Program(t, "go")
	blocks := Fences(string(read(t, "README.md")), "go")
	if len(blocks) != 1 || strings.Count(blocks[0], "\n") >= 15 {
		t.Fatalf("%d blocks of Go: want one of at most 15 lines", len(blocks))
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "main.go")
	program := "package main\n\nimport (\n\t\"context\"\n\t\"fmt\"\n\n\t\"tranca/local\"\n)\n\n" +
		"func run(ctx context.Context) error {\n" + blocks[0] + "\nreturn nil\n}\n\n" +
		"func main() { fmt.Println(run(context.Background())) }\n"
	if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	there, err := filepath.Abs(filepath.Join(root, "cmd", "readme", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {there: file}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-buildvcs=false", "-overlay", filepath.Join(dir, "overlay.json"),
		"-o", filepath.Join(dir, "readme"), "./cmd/readme")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestReadmeJSON reads the snippet that goes into an agent's configuration.
func TestReadmeJSON(t *testing.T) {
	blocks := Fences(string(read(t, "README.md")), "json")
	if len(blocks) != 1 {
		t.Fatalf("%d blocks of JSON: want the agent's configuration", len(blocks))
	}
	var config struct {
		Servers map[string]struct {
			Command string
			Args    []string
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal([]byte(blocks[0]), &config); err != nil {
		t.Fatal(err)
	}
	if s := config.Servers["tranca"]; s.Command != "tranca" || strings.Join(s.Args, " ") != "mcp" {
		t.Errorf("%+v", config)
	}
}

// What lies below /work on somebody's machine has no place in these documents;
// the sandbox's own folder is called /work, and below it only the folder for
// images is named.
func TestDocumentsNameNoMachine(t *testing.T) {
	for _, name := range []string{"README.md", "docs/SECURITY.md", "docs/ARCHITECTURE.md", "docs/PRINCIPLES.md"} {
		for i, line := range strings.Split(string(read(t, name)), "\n") {
			if strings.Contains(strings.ReplaceAll(line, "`/work/out`", ""), "/work/") {
				t.Errorf("%s:%d: %s", name, i+1, line)
			}
		}
	}
}
