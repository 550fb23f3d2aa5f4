package advisory

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tranca"
)

// TestTable shows that the table is whole: each row can be read and says what
// it is about, and its mends are in order.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, h := range table {
		key := h.component + " " + h.id
		if seen[key] || h.component == "" || idAt(h.id) != h.id || h.needs == "" || strings.HasSuffix(h.needs, ".") {
			t.Errorf("%s: there twice, or not whole: %+v", key, h)
		}
		seen[key] = true
		if len(h.fixed) == 0 {
			t.Errorf("%s: nothing mends it", key)
		}
		last := version{}
		for _, text := range append([]string{"0"}, h.fixed...) {
			v, err := parseVersion(text)
			if err != nil || v.compare(last) < 0 {
				t.Errorf("%s: %s: %v, or not in order", key, text, err)
			}
			last = v
		}
		if h.from != "" {
			if v, err := parseVersion(h.from); err != nil || v.compare(last) >= 0 {
				t.Errorf("%s: from %s: %v, or after its mend", key, h.from, err)
			}
		}
	}
	for component := range packages {
		if !slices.Contains(Components(), component) {
			t.Errorf("%s has packages and no holes", component)
		}
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
		found, err := Known(c.component, c.version, Changelog{})
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
		found, err := Known(Runc, text, Changelog{})
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
		h := rapid.SampledFrom(table).Draw(t, "hole")
		part := func(name string) int64 { return rapid.Int64Range(0, 40).Draw(t, name) }
		a := version{numbers: []int64{part("major"), part("minor"), part("patch")}}
		b := version{numbers: slices.Clone(a.numbers)}
		b.numbers[2] += part("more")
		if h.from == "" && h.affects(b) && !h.affects(a) {
			t.Fatalf("%v has %s, and the older %v has not", b, h.id, a)
		}
	})
}
