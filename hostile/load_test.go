package hostile

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"tranca"
)

const good = `try: Read a file.
why: It is somebody's.
guarantee: files
severity: HostLeak
rows: [FS-01]
attempt:
  - {do: read, path: "{canary.ssh}", setup: true}
twin:
  - {do: read, path: "{space}/a"}
`

func TestAProbeWithErrorsIsNamedWithFileAndLine(t *testing.T) {
	for _, c := range []struct{ name, from, to, want string }{
		{"unknown field", "guarantee:", "garantee:", `bad/probe.yaml:3:1: garantee: there is no such field; did you mean "guarantee"?`},
		{"unknown act", "do: read, path: \"{canary", "do: reed, path: \"{canary", "attempt: [0].do"},
		{"no twin", "twin:\n  - {do: read, path: \"{space}/a\"}\n", "", "twin: want one step"},
		{"unknown item", "guarantee: files", "guarantee: flies", `there is no item "flies"`},
		{"unknown severity", "HostLeak", "Bad", `there is no "Bad"`},
		{"unknown limit", "rows:", "limit: size\nrows:", `limit: there is no "size"`},
		{"unknown backend", "rows:", "expect: {docker: {verdict: escaped, why: x}}\nrows:", `there is no backend "docker"`},
		{"a verdict without a reason", "rows:", "expect: {none: {verdict: escaped}}\nrows:", "why is it so"},
		{"unknown need", "rows:", "needs: [luck]\nrows:", `there is no "luck"`},
		{"unknown mount", "rows:", "policy: {mounts: [wx]}\nrows:", `there is no "wx"`},
		{"a size that is none", "rows:", "policy: {memory: much}\nrows:", `"much" is no size`},
		{"a misspelt placeholder", "{canary.ssh}", "{canary.sssh}", "there is no placeholder {canary.sssh}"},
		{"a field twice", "why:", "try: Again.\nwhy:", "stands twice"},
		{"no YAML", "try: Read", "try: [", "not understood as YAML"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(good, c.from, c.to, 1)
			if text == good {
				t.Fatal("nothing was changed")
			}
			_, err := Load(fstest.MapFS{"good/probe.yaml": {Data: []byte(good)}, "bad/probe.yaml": {Data: []byte(text)}})
			if !errors.Is(err, tranca.ErrInvalid) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "bad/probe.yaml") {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if strings.Contains(err.Error(), "good/probe.yaml") {
				t.Errorf("the good one is blamed, too: %v", err)
			}
		})
	}
}

func TestFoldersThatAreNoProbes(t *testing.T) {
	for name, fs := range map[string]fstest.MapFS{
		"nothing":         {},
		"no file":         {"a/readme": {}},
		"a bad name":      {"A b/probe.yaml": {Data: []byte(good)}},
		"a file too long": {"a/probe.yaml": {Data: []byte(good + strings.Repeat("#\n", maxProbe))}},
	} {
		if _, err := Load(fs); !errors.Is(err, tranca.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(good))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Parse("fuzz", text)
		if err == nil && (p.Group() == "" || len(p.Twin) == 0) {
			t.Errorf("a probe without a group or a twin was read: %q", text)
		}
	})
}
