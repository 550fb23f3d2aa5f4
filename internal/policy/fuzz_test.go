package policy

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"tranca"
)

// FuzzParse shows of any bytes: no panic; what is accepted is valid, means
// the same when read again, and holds no YAML that could mean another thing;
// what is refused says where, in one line each.
func FuzzParse(f *testing.F) {
	archive, err := txtar.ParseFile("testdata/errors.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range archive.Files {
		if !strings.HasSuffix(file.Name, ".err") {
			f.Add(file.Data)
		}
	}
	everything, err := os.ReadFile("testdata/everything.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(everything)
	f.Add(Starter())
	f.Add([]byte(`{"version": 1, "limits": {"cpus": 0.5}, "mounts": [{"source": "/a", "target": "/b"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Parse("p", data)
		if err != nil {
			checkRefusal(t, err)
			return
		}
		if bad := Validate(p); len(bad) > 0 {
			t.Fatalf("accepted, but not valid: %v", bad)
		}
		again, err := Parse("p", asJSON(p, ""))
		if err != nil || Digest(again) != Digest(p) {
			t.Fatalf("written and read again it differs: %v", err)
		}
	})
}

func checkRefusal(t *testing.T, err error) {
	t.Helper()
	var all Errors
	if !errors.As(err, &all) || len(all) == 0 || len(all) > MaxErrors || !errors.Is(err, tranca.ErrInvalid) {
		t.Fatalf("not the error that is promised: %#v", err)
	}
	for _, e := range all {
		if line := e.Error(); strings.ContainsAny(line, "\n\r\x00\x1b") {
			t.Fatalf("not one clean line: %q", line)
		}
		if e.File != "p" || (e.Line < 1 && len(all) > 1) {
			t.Fatalf("no place: %#v", e)
		}
	}
}

// FuzzMount shows of any text that what is accepted is absolute, clean, and
// not in a place that tranca makes.
func FuzzMount(f *testing.F) {
	for _, s := range []string{"/a:/b", "/a:/b:rw", "/a:/b:ro", "a:b", "/a:/proc/x", "/a/..:/b", "/a:/work", ":::", "/a\x00:/b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m, err := ParseMount(s)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r\x00\x1b") || !errors.Is(err, tranca.ErrInvalid) {
				t.Fatalf("not one clean line: %q", err)
			}
			return
		}
		if !strings.HasPrefix(s, m.Source+":"+m.Target) {
			t.Fatalf("%q became %+v", s, m)
		}
		if m.Writable != strings.HasSuffix(s, ":rw") {
			t.Fatalf("%q: writable is %v", s, m.Writable)
		}
		for _, p := range []string{m.Source, m.Target} {
			if p == "/" || !strings.HasPrefix(p, "/") || strings.Contains(p+"/", "/../") || strings.Contains(p+"/", "//") || strings.Contains(p, "\x00") {
				t.Fatalf("%q gave the path %q", s, p)
			}
		}
		first := strings.SplitN(m.Target, "/", 3)[1]
		for _, r := range reserved {
			if "/"+first == r {
				t.Fatalf("%q is in %s", s, r)
			}
		}
		p := Default()
		p.Mounts = []tranca.Mount{m}
		if bad := Validate(p); len(bad) > 0 {
			t.Fatalf("accepted, but not valid: %v", bad)
		}
	})
}

// FuzzSize shows of any text that units are more than 0 and written back as
// the same number.
func FuzzSize(f *testing.F) {
	for _, s := range []string{"1B", "64MiB", "0B", "-1", "9223372036854775808B", "1.5GiB", "30s", "1h30m", "0.5", "256", "1:2", "NaN"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := ParseSize(s); err == nil {
			if again, err := ParseSize(FormatSize(n)); n <= 0 || again != n || err != nil {
				t.Fatalf("%q is %d, written %q", s, n, FormatSize(n))
			}
		} else {
			checkUnit(t, s, err)
		}
		if d, err := ParseDuration(s); err == nil {
			if again, err := ParseDuration(FormatDuration(d)); d <= 0 || again != d || err != nil {
				t.Fatalf("%q is %d, written %q", s, d, FormatDuration(d))
			}
		} else {
			checkUnit(t, s, err)
		}
		if n, err := ParseCPUs(s); err == nil {
			if again, err := ParseCPUs(FormatCPUs(n)); n <= 0 || again != n || err != nil {
				t.Fatalf("%q is %d, written %q", s, n, FormatCPUs(n))
			}
		} else {
			checkUnit(t, s, err)
		}
		if u, err := ParseUser(s); err == nil && (u.UID == 0 || u.GID == 0 || u.UID > maxID || u.GID > maxID) {
			t.Fatalf("%q is %+v", s, u)
		}
	})
}

// checkUnit shows that an error is clean, and that its suggestion is right.
func checkUnit(t *testing.T, s string, err error) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || strings.ContainsAny(err.Error(), "\n\r\x00\x1b") {
		t.Fatalf("%q: not one clean line: %q", s, err)
	}
	if e.Suggestion == "" {
		return
	}
	_, size := ParseSize(e.Suggestion)
	_, duration := ParseDuration(e.Suggestion)
	_, cpus := ParseCPUs(e.Suggestion)
	if size != nil && duration != nil && cpus != nil {
		t.Fatalf("%q: suggestion %q is wrong too: %v, %v, %v", s, e.Suggestion, size, duration, cpus)
	}
}
