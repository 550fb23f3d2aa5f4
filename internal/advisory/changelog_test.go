package advisory

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tranca"
)

// runcLog has the form of a distribution's changelog, with words of all kinds
// around the names of holes.
const runcLog = `runc (1.1.5+ds1-1+deb12u2) bookworm-security; urgency=high

  * Revert the mend of CVE-2025-31133, which
    broke CVE-2025-52565 too.
  * CVE-2024-21626: several breakouts

 -- A Maintainer <a@example.org>  Fri, 02 Feb 2024 21:53:05 +0800

runc (1.1.5+ds1-1) unstable; urgency=medium

  * New upstream version 1.1.5+ds1
    + CVE-2025-52881: a longer name, and
      CVE-2024-45310 on the next line
    + CVE-2025-31133
  * Names that are none: CVE-20-1, CVE-2024-1, CVE-2026-123456789, CVE-

 -- A Maintainer <a@example.org>  Fri, 02 Feb 2023 21:53:05 +0800
`

func TestChangelog(t *testing.T) {
	log, err := ReadChangelog("runc", strings.NewReader(runcLog))
	if err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]string{
		"1.1.5+ds1":           "2024-21626* 2024-45310* 2025-31133 2025-52565 2025-52881* 2026-41579 2026-119101",
		"1.1.5+ds1-1+deb12u1": "2024-21626* 2024-45310* 2025-31133 2025-52565 2025-52881* 2026-41579 2026-119101",
		"1.1.6":               "2024-21626 2024-45310 2025-31133 2025-52565 2025-52881 2026-41579 2026-119101", // not this package's
	} {
		found, err := BuiltIn().Known(Runc, version, log)
		if got := ids(found); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", version, got, err, want)
		}
		for _, a := range found {
			if a.Patched != "" && !strings.Contains(a.String(), "mended here by the distribution, says the changelog of the Debian package runc") {
				t.Errorf("%q", a)
			}
		}
	}
	if len(log.mended) != 5 {
		t.Errorf("%v", log.mended)
	}
}

func TestChangelogsThatCannotBeRead(t *testing.T) {
	entry := "runc (1.0-1) unstable; urgency=low\n"
	for name, r := range map[string]io.Reader{
		"empty":       strings.NewReader(""),
		"no entry":    strings.NewReader("  * CVE-2024-21626\n"),
		"no version":  strings.NewReader("runc (latest) unstable; urgency=low\n"),
		"a long line": strings.NewReader(entry + strings.Repeat("x", maxLine+1)),
		"too much":    io.MultiReader(strings.NewReader(entry), endless{}),
	} {
		if log, err := ReadChangelog("runc", r); !errors.Is(err, tranca.ErrInvalid) || log.known {
			t.Errorf("%s: %+v, %v", name, log, err)
		}
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = "  * CVE-2024-21626\n"[i%19]
	}
	return len(p), nil
}

// tree makes a root with a package that owns a program.
func tree(t *testing.T, log string) string {
	t.Helper()
	root := t.TempDir()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte(log)); err != nil || z.Close() != nil {
		t.Fatal("gzip")
	}
	for name, data := range map[string]string{
		"var/lib/dpkg/info/runc.list":              "/.\n/usr\n/usr/sbin\n/usr/sbin/runc\n",
		"usr/share/doc/runc/changelog.Debian.gz":   packed.String(),
		"usr/sbin/runc":                            "",
		"usr/local/bin/runc":                       "",
		"var/lib/dpkg/info/docker.io.list":         "/usr/sbin/dockerd\n",
		"usr/share/doc/crun/changelog.Debian.gz":   packed.String(),
		"usr/share/doc/podman/changelog.Debian.gz": "not packed",
		"var/lib/dpkg/info/podman.list":            "/usr/bin/podman\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("usr/sbin", filepath.Join(root, "sbin")); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestInstalledLog(t *testing.T) {
	root := tree(t, runcLog)
	for _, c := range []struct {
		component, program string
		want               bool
	}{
		{Runc, "/usr/sbin/runc", true},
		{Runc, "/sbin/runc", true},
		{Runc, "/usr/local/bin/runc", false}, // not the package's
		{Runc, "/nowhere", false},
		{Crun, "/usr/bin/crun", false},       // a changelog and no list
		{Docker, "/usr/sbin/dockerd", false}, // a list and no changelog
		{Podman, "/usr/bin/podman", false},   // a changelog that is none
		{"youki", "/usr/sbin/runc", false},
	} {
		log := InstalledLog(root, c.component, c.program)
		if log.known != c.want {
			t.Errorf("%s at %s: %+v", c.component, c.program, log)
		}
	}
	list := filepath.Join(root, "var/lib/dpkg/info/runc.list")
	if err := os.Remove(list); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(list, 0o755); err != nil {
		t.Fatal(err)
	}
	if log := InstalledLog(root, Runc, "/usr/sbin/runc"); log.known {
		t.Error("a folder was taken for a list")
	}
}

// FuzzChangelog shows of any bytes: no panic, bounded results, and a hole is
// called mended only if its name is there.
func FuzzChangelog(f *testing.F) {
	f.Add([]byte(runcLog))
	f.Add([]byte("a (1) b; \n  * CVE-2024-21626 CVE-2024-2162600000\n"))
	f.Add([]byte("a ((1)) b\n\x00\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		log, err := ReadChangelog("x", bytes.NewReader(data))
		if err != nil {
			if log.known {
				t.Fatal("an error with a changelog")
			}
			return
		}
		if len(log.mended) > maxIDs {
			t.Fatal("too many")
		}
		for id := range log.mended {
			if !bytes.Contains(data, []byte(id)) || idAt(id) != id {
				t.Fatalf("%q is not in it", id)
			}
		}
	})
}

// FuzzVersion shows of any text: no panic, and what is read is the same as
// itself and not the same as what follows it.
func FuzzVersion(f *testing.F) {
	for _, text := range []string{"1.1.5+ds1-1+deb12u1", "release-20250319.0", "v0.0.0-20260905035102-160fafc42237", "5:24.0.7-1~x", "1.0.0~rc93"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := parseVersion(text)
		if err != nil {
			if !errors.Is(err, tranca.ErrInvalid) || strings.Contains(err.Error(), "\n") {
				t.Fatal(err)
			}
			return
		}
		next := v
		next.numbers = append(append([]int64{}, v.numbers...), 1)
		if v.compare(v) != 0 || v.compare(next) >= 0 || next.compare(v) <= 0 {
			t.Fatalf("%+v and %+v", v, next)
		}
		for _, component := range BuiltIn().Components() {
			if _, err := BuiltIn().Known(component, text, Changelog{}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// FuzzTable shows of any bytes: no panic, and whatever table is accepted
// answers for any version.
func FuzzTable(f *testing.F) {
	f.Add(builtInText)
	f.Add([]byte(`{"schema":"tranca.advisories/1","date":"2026-01-01","rows":[{"component":"a","id":"CVE-2024-1234","fixed":["1"],"needs":"x"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := Parse("f", data)
		if err != nil {
			if !errors.Is(err, tranca.ErrInvalid) || strings.Contains(err.Error(), "\n") {
				t.Fatal(err)
			}
			return
		}
		for _, component := range table.Components() {
			if _, err := table.KnownAnywhere(component, "1.2.3-rc1", Changelog{}); err != nil {
				t.Fatal(err)
			}
		}
	})
}
