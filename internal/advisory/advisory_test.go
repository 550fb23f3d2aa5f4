package advisory

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tranca"
)

// TestBuiltIn shows that the table of this program can be read, and that what
// the program knows of packages is about components in it.
func TestBuiltIn(t *testing.T) {
	table := BuiltIn()
	if table.Source != "built in" || table.Date < "2026-11-30" || len(table.holes) < 20 {
		t.Errorf("%s of %s: %d rows", table.Source, table.Date, len(table.holes))
	}
	for component := range packages {
		if !slices.Contains(table.Components(), component) {
			t.Errorf("%s has packages and no holes", component)
		}
	}
	if text := string(builtInText); strings.Count(text, "\n{") != len(table.holes) {
		t.Error("want one row on a line, so that a change can be read")
	}
	h, ok := table.Find(Runc, "CVE-2025-31133")
	if !ok || h.Item != tranca.ItemDevices || !slices.Contains(h.Probes, "FS-12") {
		t.Errorf("%+v", h)
	}
	if _, ok := table.Find(Runc, "CVE-2019-18960"); ok {
		t.Error("another component's hole")
	}
}

// TestPlain: what only sandboxes of others have is no hole of ours.
func TestPlain(t *testing.T) {
	ours, err := BuiltIn().Known(Docker, "28.2.2", Changelog{})
	all, err2 := BuiltIn().KnownAnywhere(Docker, "28.2.2", Changelog{})
	if err != nil || err2 != nil || ids(ours) != "" || ids(all) != "2026-31431" {
		t.Errorf("%v, %v; %v, %v", ours, err, all, err2)
	}
}

func TestRowsThatCannotBeRead(t *testing.T) {
	const head = "{\"schema\": \"tranca.advisories/1\", \"date\": \"2026-12-01\", \"rows\": [\n"
	const row = `{"component": "runc", "id": "CVE-2024-21626", "from": "1.0.0-rc93", "fixed": ["1.1.12"], "needs": "x"}`
	if table, err := Parse("f", []byte(head+row+"\n]}")); err != nil || len(table.holes) != 1 {
		t.Fatal(err)
	}
	for _, c := range []struct{ change, into, want string }{
		{`"runc"`, `"run c"`, "component"},
		{`"runc"`, `""`, "component"},
		{"CVE-2024-21626", "CVE-24-1", "want CVE-YEAR-NUMBER"},
		{"CVE-2024-21626", "", "want CVE-YEAR-NUMBER"},
		{`"x"`, `""`, "needs"},
		{`"x"`, `"x."`, "full stop"},
		{`["1.1.12"]`, `[]`, "fixed: want 1 to 32"},
		{`["1.1.12"]`, `["soon"]`, `fixed: version "soon"`},
		{`["1.1.12"]`, `["1.2.0", "1.1.12"]`, "the oldest comes first"},
		{"1.0.0-rc93", "1.2", "before those of fixed"},
		{`"needs"`, `"item": "kernel", "needs"`, `item "kernel"`},
		{`"needs"`, `"item": "devices", "check": "af-alg", "needs"`, "not both"},
		{row, row + ",\n" + row, "f:3: runc CVE-2024-21626 is listed twice"},
	} {
		_, err := Parse("f", []byte(head+strings.Replace(row, c.change, c.into, 1)+"\n]}"))
		if !errors.Is(err, tranca.ErrInvalid) || !strings.Contains(fmt.Sprint(err), c.want) || !strings.Contains(fmt.Sprint(err), "f:") {
			t.Errorf("%s -> %s: %v, want %s", c.change, c.into, err, c.want)
		}
	}
}

// TestInForce: an operator's newer table counts, on any way to it.
func TestInForce(t *testing.T) {
	newer := strings.Replace(string(builtInText), BuiltIn().Date, "2099-01-01", 1)
	newer = strings.Replace(newer, `"fixed": ["1.5.3"]`, `"fixed": ["99.0"]`, 1)
	read := func(string) ([]byte, error) { return []byte(newer), nil }
	named, err := Named("/f", read)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		in   *InForce
		want string
	}{
		"installed": {Installed("/f", read), "2026-119101"}, "named": {named, "2026-119101"},
		"none": {nil, ""}, "absent": {Installed("/f", func(string) ([]byte, error) { return nil, tranca.ErrNotFound }), ""},
	} {
		found, err := c.in.Table().Known(Runc, "1.5.3", Changelog{})
		if got := ids(found); err != nil || got != c.want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	bad := Installed("/f", func(string) ([]byte, error) { return []byte("{"), nil })
	if s := bad.String(); !strings.Contains(s, "built in; not used: ") || !strings.Contains(s, "/f:1: ") {
		t.Error(s)
	}
	if _, err := Named("/f", func(string) ([]byte, error) { return []byte("{"), nil }); !errors.Is(err, tranca.ErrInvalid) {
		t.Error(err)
	}
}

func ids(found []tranca.Advisory) string {
	var all []string
	for _, a := range found {
		id := strings.TrimPrefix(a.ID, "CVE-")
		if a.Patched != "" {
			id += "*"
		}
		all = append(all, id)
	}
	return strings.Join(all, " ")
}

func TestKnown(t *testing.T) {
	const all = "2024-21626 2024-45310 2025-31133 2025-52565 2025-52881 2026-41579 2026-119101"
	_, fewer, _ := strings.Cut(all, " ")
	for _, c := range []struct{ component, version, want string }{
		{Runc, "1.1.5", all},
		{Runc, "1.1.11", all},
		{Runc, "1.1.5+ds1-1+deb12u1", all},
		{Runc, "1.1.12", fewer},
		{Runc, "1.1.12-0ubuntu3.1", fewer},
		{Runc, "1.0.0-rc92", fewer},
		{Runc, "1.0.0-rc93", all},
		{Runc, "1.0.0~rc93+ds1-5+deb11u3", all},
		{Runc, "1.0.0-rc2", "2024-45310 2025-31133 2025-52881 2026-41579 2026-119101"},
		{Runc, "1.1.14", "2025-31133 2025-52565 2025-52881 2026-41579 2026-119101"},
		{Runc, "1.2.0-rc.2", "2024-45310 2025-31133 2025-52565 2025-52881 2026-41579 2026-119101"},
		{Runc, "1.2.0-rc.3", "2025-31133 2025-52565 2025-52881 2026-41579 2026-119101"},
		{Runc, "1.2.8", "2026-41579 2026-119101"},
		{Runc, "1.3.2", "2025-31133 2025-52565 2025-52881 2026-41579 2026-119101"},
		{Runc, "1.3.5", "2026-41579 2026-119101"},
		{Runc, "1.3.6", "2026-119101"},
		{Runc, "1.4.0-rc.2", "2025-31133 2025-52565 2025-52881 2026-41579 2026-119101"},
		{Runc, "1.4.0", "2026-41579 2026-119101"},
		{Runc, "1.5.3", ""},
		{Runc, "2.0.0", ""},
		{Crun, "1.29.1", "2026-84042 2026-88264 2026-88265"},
		{Crun, "1.30", ""},
		{Containerd, "1.6.20~ds1", "2024-40635 2024-25621 2025-64329 2026-46680"},
		{Containerd, "v2.0.4", "2024-25621 2025-47291 2025-64329 2026-46680"},
		{Containerd, "2.3.1", ""},
		{Docker, "20.10.24+dfsg1", "2024-29018"},
		{Docker, "24.0.9", "2024-29018"},
		{Docker, "25.0.5", ""},
		{Docker, "26.0.0-rc1", "2024-29018"},
		{Docker, "28.2.2", ""},
		{Podman, "4.3.1+ds1-8+deb12u1+b3", "2026-55686"},
		{Podman, "2.9", ""},
		{Podman, "5.7.1", ""},
		{GVisor, "release-20250318.0", "2025-2713 2026-96812"},
		{GVisor, "release-20250319.0", "2026-96812"},
		{GVisor, "v0.0.0-20260905035102-160fafc42237", ""},
		{GVisor, "v0.0.0-20260801035102-160fafc42237", "2026-96812"},
		{Firecracker, "v1.13.1", "2026-1386"},
		{Firecracker, "1.14.0", "2026-1386"},
		{Firecracker, "1.14.1", ""},
		{Firecracker, "0.19.0", "2019-18960 2026-1386"},
		{Firecracker, "0.17.0", "2026-1386"},
		{Bubblewrap, "0.8.0", "2026-87766"},
		{Bubblewrap, "0.12.0", ""},
		{"youki", "0.1.0", ""},
	} {
		found, err := BuiltIn().Known(c.component, c.version, Changelog{})
		if got := ids(found); err != nil || got != c.want {
			t.Errorf("%s %s: got %q, %v, want %q", c.component, c.version, got, err, c.want)
		}
		for _, a := range found {
			if s := a.String(); !strings.Contains(s, c.version) || !strings.Contains(s, a.ID) || a.Patched != "" {
				t.Errorf("%+v: %q", a, s)
			}
		}
	}
}

func TestVersionsThatCannotBeRead(t *testing.T) {
	for _, text := range []string{"", "unknown", "VERSION_MISSING", "v", "1x", "-1", "1.2\n", "1.2-\x1b[2J", "1.2 3", "1.2.3.4.5.6.7", "99999999999999999999", ":1", strings.Repeat("1", 200)} {
		found, err := BuiltIn().Known(Runc, text, Changelog{})
		if !errors.Is(err, tranca.ErrInvalid) || found != nil {
			t.Errorf("%q: %v, %v", text, found, err)
		}
	}
}

func TestCompare(t *testing.T) {
	order := []string{
		"0.9", "1.0.0-dev", "1.0.0-alpha.1", "1.0.0-beta2", "1.0.0-rc.2", "1.0.0~rc10+ds1", "1.0.0", "1.0.1-rc.1",
		"1.0.1", "1.0.10", "1.1", "2.0.0-rc1", "10.0",
	}
	for i, a := range order {
		for j, b := range order {
			va, errA := parseVersion(a)
			vb, errB := parseVersion(b)
			if got := va.compare(vb); errA != nil || errB != nil || (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("%s and %s: %d, %v, %v", a, b, got, errA, errB)
			}
		}
	}
	for _, same := range [][2]string{
		{"1.2", "1.2.0"}, {"v1.2.3", "1.2.3+dfsg1-1+deb12u1"}, {"5:24.0.7-1~ubuntu.22.04~jammy", "24.0.7"}, {"1.6.20~ds1", "1.6.20"},
		{"release-20250319.0", "20250319"}, {"1.0.0-rc93", "1.0.0~rc.93"},
	} {
		a, errA := parseVersion(same[0])
		b, errB := parseVersion(same[1])
		if errA != nil || errB != nil || a.compare(b) != 0 {
			t.Errorf("%s and %s differ: %v, %v", same[0], same[1], errA, errB)
		}
	}
}

// TestNewerIsNeverWorse: within one line of releases a newer version has no
// hole that the older one had not, but those that came in with a version.
func TestNewerIsNeverWorse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := rapid.SampledFrom(BuiltIn().Holes()).Draw(t, "hole")
		part := func(name string) int64 { return rapid.Int64Range(0, 40).Draw(t, name) }
		a := version{numbers: []int64{part("major"), part("minor"), part("patch")}}
		b := version{numbers: slices.Clone(a.numbers)}
		b.numbers[2] += part("more")
		if h.from == nil && h.affects(b) && !h.affects(a) {
			t.Fatalf("%v has %s, and the older %v has not", b, h.ID, a)
		}
	})
}
