package policy

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tranca"
)

func TestParseMount(t *testing.T) {
	for in, want := range map[string]tranca.Mount{
		"/a:/b":           {Source: "/a", Target: "/b"},
		"/a:/b:ro":        {Source: "/a", Target: "/b"},
		"/a b/ü:/work/b":  {Source: "/a b/ü", Target: "/work/b"},
		"/a:/b:rw":        {Source: "/a", Target: "/b", Writable: true, DiskUnbounded: true, Protect: DefaultProtect()},
		"/a:/b:cow":       {Source: "/a", Target: "/b", Cow: true, Protect: DefaultProtect()},
		"/etc/x:/procx/y": {Source: "/etc/x", Target: "/procx/y"},
	} {
		got, err := ParseMount(in)
		if err != nil {
			t.Errorf("ParseMount(%q): %v", in, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("ParseMount(%q) (-want +got):\n%s", in, diff)
		}
	}
}

func TestParseMountErrors(t *testing.T) {
	for in, want := range map[string]string{
		"":                `mount "": want SRC:DST`,
		"/a":              "want SRC:DST",
		"/a:/b:rw:x":      "want SRC:DST",
		"/a:/b:":          "want ro, rw or cow",
		"/a:/b:RW":        `did you mean "rw"?`,
		"/a:/b:z":         "want ro, rw or cow",
		":/b":             "source: it is empty",
		"/a:":             "target: it is empty",
		"a:/b":            `source: path "a" is not absolute`,
		"./a:/b":          "is not absolute",
		"/a/../b:/c":      `goes up by ".."`,
		"/a//b:/c":        `did you mean "/a/b"?`,
		"/a/:/c":          `did you mean "/a"?`,
		"/:/c":            "the host's whole tree",
		"/a:b":            `target: path "b" is not absolute`,
		"/a:/":            "can't replace the whole root",
		"/a:/..":          `goes up by ".."`,
		"/a:/proc":        "is in /proc, which tranca makes itself",
		"/a:/proc/1":      "is in /proc",
		"/a:/sys/fs":      "is in /sys",
		"/a:/dev/shm":     "is in /dev",
		"/a:/tmp/x":       "is in /tmp",
		"/a:/usr":         "is in /usr",
		"/a:/bin/sh":      "is in /bin",
		"/a:/sbin":        "is in /sbin",
		"/a:/lib":         "is in /lib",
		"/a:/lib64/ld.so": "is in /lib64",
		"/a:/etc/passwd":  "is in /etc",
		"/a:/.tranca/x":   "is in /.tranca",
		"/a:/work":        "tranca makes /work itself",
		"/a\x00:/b":       "holds a NUL",
		"/a:/b\xff":       "is not valid UTF-8",
		"/a:/b\x1b[0m":    "holds a control character",
		"/" + strings.Repeat("a", maxPath) + ":/b": "longer than 4095 bytes",
	} {
		_, err := ParseMount(in)
		var e *Error
		if !errors.As(err, &e) || !errors.Is(err, tranca.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseMount(%.40q): got %v, want %q", in, err, want)
		}
	}
}

func TestHostExecutable(t *testing.T) {
	protect := DefaultProtect()
	for path, want := range map[string]bool{
		".git/hooks":                 true,
		".git/hooks/pre-commit":      true,
		"vendor/x/.git/hooks/update": true,
		"fresh/.git/config":          true,
		"/.git/config":               true,
		"./a/../.git/config":         true,
		".GIT/Hooks/pre-commit":      true,
		".git/modules/sub/hooks/x":   true,
		".vscode/tasks.json":         true,
		"a/b/.envrc":                 true,
		".mcp.json":                  true,
		".github/hooks/x.json":       true,
		"home/.bashrc":               true,
		".git":                       false,
		".git/HEAD":                  false,
		".git/objects/ab/cdef":       false,
		"x.git/hooks/pre-commit":     false,
		".git/hooksmith":             false,
		".github/workflows/ci.yaml":  false,
		"src/envrc":                  false,
		"Makefile":                   false,
		"":                           false,
		"..":                         false,
	} {
		if got := HostExecutable(path, protect); got != want {
			t.Errorf("HostExecutable(%q) = %v, want %v", path, got, want)
		}
	}
	if HostExecutable(".git/hooks/x", nil) || HostExecutable("a", []string{""}) {
		t.Error("an empty list protects nothing")
	}
}

// TestProtectTable shows that the default list is one that a policy may have,
// and gives a reason for each entry.
func TestProtectTable(t *testing.T) {
	if bad := checkEntries("protect", DefaultProtect()); len(bad) > 0 {
		t.Error(bad)
	}
	for _, p := range protectTable {
		if p.why == "" {
			t.Errorf("%s has no reason", p.entry)
		}
	}
}

// TestDenyWins shows that no second mount shows what a first one denies: any
// policy in which it could is refused.
func TestDenyWins(t *testing.T) {
	base := tranca.Mount{Source: "/home/me", Target: "/a", Deny: []string{"secrets"}}
	for name, second := range map[string]tranca.Mount{
		"the denied":       {Source: "/home/me/secrets", Target: "/b"},
		"below the denied": {Source: "/home/me/secrets/x", Target: "/b"},
		"above it":         {Source: "/home", Target: "/b"},
		"the same":         {Source: "/home/me", Target: "/b"},
		"over the denied":  {Source: "/srv", Target: "/a/secrets"},
		"over the mount":   {Source: "/srv", Target: "/a"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, mounts := range [][]tranca.Mount{{base, second}, {second, base}} {
				p := Default()
				p.Mounts = mounts
				if len(Validate(p)) == 0 {
					t.Errorf("accepted: %+v", mounts)
				}
			}
		})
	}
	p := Default()
	p.Mounts = []tranca.Mount{base, {Source: "/home/me2", Target: "/a2"}}
	if bad := Validate(p); len(bad) > 0 {
		t.Errorf("neighbours: %v", bad)
	}
}
