package archtest

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Dependency is one row of DEPENDENCIES.md.
type Dependency struct{ Module, Used, Reason string }

var row = regexp.MustCompile("^\\| `([^`]+)` \\| ([^|]*) \\| ([^|]*) \\|$")

// ParseDependencies reads the rows of DEPENDENCIES.md: module in backquotes,
// where it is used ("tranca" for what the binary links, or "tests"), reason.
func ParseDependencies(text string) []Dependency {
	var all []Dependency
	for line := range strings.Lines(text) {
		if m := row.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
			all = append(all, Dependency{m[1], strings.TrimSpace(m[2]), strings.TrimSpace(m[3])})
		}
	}
	return all
}

// CheckDependencies compares the written list with the modules that tranca
// links, those that only the gVisor binary links, and those that only tests and
// tools use.
func CheckDependencies(written []Dependency, linked, sentry, tests []string) []string {
	want := map[string]string{}
	for _, m := range tests {
		want[m] = "tests"
	}
	for _, m := range sentry {
		want[m] = "tranca-sentry"
	}
	for _, m := range linked {
		want[m] = "tranca"
	}
	var bad []string
	seen := map[string]bool{}
	for _, d := range written {
		used, ok := want[d.Module]
		switch {
		case seen[d.Module]:
			bad = append(bad, fmt.Sprintf("%s: listed twice", d.Module))
		case !ok:
			bad = append(bad, fmt.Sprintf("%s: listed, but not used", d.Module))
		case d.Used != used:
			bad = append(bad, fmt.Sprintf("%s: listed under %q, but used by %q", d.Module, d.Used, used))
		case len(d.Reason) < 10:
			bad = append(bad, fmt.Sprintf("%s: give a reason", d.Module))
		}
		seen[d.Module] = true
	}
	for _, m := range slices.Sorted(maps.Keys(want)) {
		if !seen[m] {
			bad = append(bad, fmt.Sprintf("%s: used by %s, but not in DEPENDENCIES.md", m, want[m]))
		}
	}
	slices.SortFunc(bad, cmp.Compare[string])
	return bad
}

// Modules returns the paths of the modules, other than this one, that the
// packages belong to.
func Modules(all []Package) []string {
	set := map[string]bool{}
	for _, p := range all {
		if p.Module != nil && !p.Module.Main {
			set[p.Module.Path] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}
