package policy

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"tranca"
)

var update = flag.Bool("update", false, "write golden files and docs/POLICY.md anew")

// TestErrors reads each wrong policy of an archive and compares the errors.
func TestErrors(t *testing.T) {
	const path = "testdata/errors.txtar"
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, f := range archive.Files {
		want[f.Name] = string(f.Data)
	}
	var out []txtar.File
	for _, f := range archive.Files {
		name := strings.TrimSuffix(f.Name, filepath.Ext(f.Name))
		if filepath.Ext(f.Name) == ".err" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			got := wrongPolicy(t, f.Name, f.Data)
			out = append(out, f, txtar.File{Name: name + ".err", Data: []byte(got)})
			if diff := cmp.Diff(want[name+".err"], got); diff != "" && !*update {
				t.Errorf("errors differ (-want +got):\n%s", diff)
			}
		})
	}
	if *update {
		archive.Files = out
		if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// wrongPolicy parses what must not parse and returns its errors, one a line.
func wrongPolicy(t *testing.T, name string, data []byte) string {
	t.Helper()
	_, err := Parse(name, data)
	if err == nil {
		t.Fatal("it was accepted")
	}
	if !errors.Is(err, tranca.ErrInvalid) {
		t.Errorf("%v does not wrap ErrInvalid", err)
	}
	var one *Error
	if !errors.As(err, &one) || one.File != name || one.Line < 1 || one.Column < 1 {
		t.Errorf("no place in %#v", one)
	}
	return err.Error() + "\n"
}

// TestErrorsOfBytes holds what can't stand in an archive of text.
func TestErrorsOfBytes(t *testing.T) {
	for name, c := range map[string]struct{ data, want string }{
		"nul":                {"version: 1\nhostname: a\x00b\n", "p:2:12: a NUL byte: this is no text"},
		"latin1":             {"version: 1\nhostname: \xe9\n", "p:2:11: not valid UTF-8"},
		"latin1 before nul":  {"\xff\x00", "p:1:1: not valid UTF-8"},
		"nul before latin1":  {"é\x00\xff", "p:1:2: a NUL byte: this is no text"},
		"large":              {"version: 1 #" + strings.Repeat("x", maxFile), fmt.Sprintf("p: the file has %d bytes: at most 1048576", maxFile+12)},
		"crlf":               {"version: 1\r\nlimits:\r\n  memory: 1\r\n", "p:3:11: limits.memory: size \"1\" has no unit: want B, KiB, MiB, GiB or TiB; did you mean \"1MiB\"?"},
		"unicode":            {"version: 1\n# größe\nlimits: {größe: 1MiB}\n", "p:3:10: limits.größe: there is no such field"},
		"deep block":         {"version: 1\n" + steps(20), "p:18:18: nested deeper than 16"},
		"deep entries":       {strings.Repeat("- ", 20) + "a", "p:1:33: nested deeper than 16"},
		"many fields":        {strings.Repeat("a: b\n", maxFields+1), "p:2001:2: the file has more than 2000 fields"},
		"many parts":         {"a: [" + strings.Repeat("b,", maxTokens), "p:1:1: the file has more than 100000 parts"},
		"many parts in JSON": {"[" + strings.Repeat("1,", maxTokens) + "1]", "p:1:200000: the file has more than 100000 parts"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("p", []byte(c.data))
			if err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			if !errors.Is(err, tranca.ErrInvalid) {
				t.Error("it does not wrap ErrInvalid")
			}
		})
	}
}

// steps makes a block of keys, each below the one before.
func steps(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

// TestManyErrors shows that errors are bounded, in number and in length.
func TestManyErrors(t *testing.T) {
	var b strings.Builder
	b.WriteString("version: 1\n")
	for i := range 500 {
		fmt.Fprintf(&b, "%s%d: 1\n", strings.Repeat("x", 500), i)
	}
	_, err := Parse("p", []byte(b.String()))
	var all Errors
	if !errors.As(err, &all) || len(all) != MaxErrors {
		t.Fatalf("got %d errors, want %d", len(all), MaxErrors)
	}
	if n := len(err.Error()); n > 400*MaxErrors {
		t.Errorf("the errors have %d bytes", n)
	}
}

func TestNearest(t *testing.T) {
	words := []string{"memory", "wall", "cpu_time", "open_files"}
	for in, want := range map[string]string{
		"memroy": "memory", "Memory": "memory", "wal": "wall", "cpu-time": "cpu_time",
		"openfiles": "open_files", "xyz": "", "": "", strings.Repeat("m", 1000): "",
	} {
		if got := nearest(in, words); got != want {
			t.Errorf("nearest(%.20q) = %q, want %q", in, got, want)
		}
	}
}
