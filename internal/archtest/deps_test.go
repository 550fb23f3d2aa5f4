package archtest

import (
	"strings"
	"testing"
)

func TestTextSeesMachines(t *testing.T) {
	for _, word := range unwanted() {
		if got := CheckText("a.md", []byte("see\n"+word+"/x\n")); len(got) != 1 || !strings.HasPrefix(got[0], "a.md:2:") {
			t.Errorf("%s: %q", word, got)
		}
	}
	if got := CheckText("a.md", []byte("the code starts in /work and may write /work/out.txt\n")); len(got) != 0 {
		t.Errorf("the sandbox's own /work is forbidden: %q", got)
	}
}

func TestDependenciesSeeViolations(t *testing.T) {
	reason := "reads YAML with positions"
	full := []Dependency{{"m/a", "tranca", reason}, {"m/t", "tests", reason}, {"m/s", "tranca-sentry", reason}}
	if got := CheckDependencies(full, []string{"m/a"}, []string{"m/a", "m/s"}, []string{"m/a", "m/s", "m/t"}); len(got) != 0 {
		t.Fatalf("a right list: %q", got)
	}
	for _, c := range []struct {
		name    string
		written []Dependency
		want    string
	}{
		{"missing", []Dependency{full[0], full[2]}, "m/t: used by tests, but not in"},
		{"unused", append([]Dependency{{"m/x", "tranca", reason}}, full...), "m/x: listed, but not used"},
		{"wrong place", []Dependency{{"m/a", "tests", reason}, full[1], full[2]}, `m/a: listed under "tests"`},
		{"no reason", []Dependency{{"m/a", "tranca", "needed"}, full[1], full[2]}, "m/a: give a reason"},
		{"twice", append([]Dependency{full[0]}, full...), "m/a: listed twice"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := strings.Join(CheckDependencies(c.written, []string{"m/a"}, []string{"m/s"}, []string{"m/t"}), "\n")
			if !strings.Contains(got, c.want) {
				t.Errorf("violations %q, want one with %q", got, c.want)
			}
		})
	}
}

func TestParseDependencies(t *testing.T) {
	got := ParseDependencies("# x\n| module | used by | why |\n|---|---|---|\n| `m/a` | tranca | reads YAML |\n")
	if len(got) != 1 || got[0] != (Dependency{"m/a", "tranca", "reads YAML"}) {
		t.Errorf("rows %q", got)
	}
}
