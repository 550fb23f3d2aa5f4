package badinput

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tranca"
	"tranca/internal/interpreter"
)

// row is one command and how it has to end.
type row struct {
	name   string
	args   []string
	stdin  string
	status int
	stdout string // all of it
	stderr string // a part of it
}

func (r row) run(t *testing.T) {
	t.Run(r.name, func(t *testing.T) {
		o := runTranca(t, strings.NewReader(r.stdin), runArgs(t, r.args...)...)
		o.wants(t, r.status, r.stderr)
		if o.stdout != r.stdout {
			t.Errorf("stdout %.300q, want %.300q", o.stdout, r.stdout)
		}
	})
}

func file(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEmptyCode(t *testing.T) {
	nothingLeft(t)
	const empty = "the code is empty: there is nothing to run"
	for _, r := range []row{
		{name: "flag", args: []string{"-c", ""}, status: 125, stderr: empty},
		{name: "blanks", args: []string{"-c", " \n\t"}, status: 125, stderr: empty},
		{name: "file", args: []string{file(t, "empty.py", "")}, status: 125, stderr: empty},
		{name: "input", args: []string{"-"}, status: 125, stderr: empty},
		{name: "shell", args: []string{"--lang", "sh", "-c", ""}, status: 125, stderr: empty},
		{name: "comment", args: []string{"-c", "#"}, status: 0},
		{name: "nothing at all", args: nil, status: 125, stderr: "no code: name a file"},
	} {
		r.run(t)
	}
	l := open(t, nil)
	for _, code := range []string{"", "\n"} {
		if _, err := l.Run(t.Context(), code); !errors.Is(err, tranca.ErrInvalid) {
			t.Errorf("%q: %v", code, err)
		}
	}
	if _, err := l.RunRequest(t.Context(), tranca.Request{Command: []string{""}}); !errors.Is(err, tranca.ErrInvalid) {
		t.Errorf("an empty command: %v", err)
	}
}

const mib = 1 << 20

// TestLargeCode: code of 50 MB is run where there is memory for it, else the
// limit that it hits is named; what is larger than tranca takes is said.
func TestLargeCode(t *testing.T) {
	nothingLeft(t)
	text := "s = '" + strings.Repeat("a", 50*mib) + "'\nprint(len(s))\n"
	large := file(t, "large.py", text)
	tooLarge := strings.Repeat("#", 64*mib) + "\nprint(1)"
	for _, r := range []row{
		{name: "runs", args: []string{"--memory", "1GiB", large}, stdout: strconv.Itoa(50*mib) + "\n"},
		{name: "by input", args: []string{"--memory", "1GiB", "-"}, stdin: text, stdout: strconv.Itoa(50*mib) + "\n"},
		{name: "too large", args: []string{file(t, "more.py", tooLarge)}, status: 125, stderr: "is larger than 64 MiB"},
		{name: "endless", args: []string{"/dev/zero"}, status: 125, stderr: "is larger than 64 MiB"},
		{name: "other language", args: []string{"--lang", "sh", large}, status: 125, stderr: "can have at most 122880"},
	} {
		r.run(t)
	}
	t.Run("more than the memory", func(t *testing.T) {
		o := runCode(t, large)
		if has(t, tranca.ItemMemory) {
			o.wants(t, 124, "it needed more than 256MiB of memory")
		} else if o.status == 125 || o.status == 0 && o.stdout == "" {
			t.Errorf("%+v", o)
		}
	})
}

// TestBytesThatAreNoText: a NUL is refused where nothing can take one, and
// every other byte arrives as it was sent.
func TestBytesThatAreNoText(t *testing.T) {
	nothingLeft(t)
	const show = "import os, sys; sys.stdout.buffer.write(b'|'.join(map(os.fsencode, sys.argv[1:])))"
	odd := "\xff\xfe\x80 \xc3"
	named := filepath.Join(t.TempDir(), "na\xff\x01me.py")
	if err := os.WriteFile(named, []byte("print('named')"), 0o644); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "m\xff")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, r := range []row{
		{name: "NUL in code", args: []string{file(t, "nul.py", "print(1)\nx='\x00'")}, status: 125, stderr: "NUL byte at 12 (line 2)"},
		{name: "NUL in input code", args: []string{"-"}, stdin: "print(1)\x00", status: 125, stderr: "NUL byte at 8 (line 1)"},
		{name: "code", args: []string{"-c", "print('\xff')"}, status: 1, stderr: "SyntaxError"},
		{name: "code that says what it is", args: []string{"-c", "# coding: latin-1\nprint(len('\xff'))"}, stdout: "1\n"},
		{name: "shell code", args: []string{"--lang", "sh", "-c", "printf %s '\xff\x80'"}, stdout: "\xff\x80"},
		{name: "arguments", args: []string{"-c", show, "--", odd, "", "\n"}, stdout: odd + "||\n"},
		{name: "input", args: []string{"-c", "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())"}, stdin: "a\x00\xff\n", stdout: "a\x00\xff\n"},
		{name: "output", args: []string{"-c", "import sys; sys.stdout.buffer.write(bytes(range(256)))"}, stdout: allBytes()},
		{name: "file name", args: []string{named}, stdout: "named\n"},
		{name: "missing file name", args: []string{"no\xff\x1b[2J.py"}, status: 127, stderr: "no such file"},
		{name: "mount", args: []string{"--mount", folder + ":/m", "-c", "1"}, status: 125, stderr: "not valid UTF-8"},
		{name: "mount target", args: []string{"--mount", "/usr/share:/m\xff", "-c", "1"}, status: 125, stderr: "not valid UTF-8"},
		{name: "value", args: []string{"--env", "A=\xff", "-c", "1"}, status: 125, stderr: "not valid UTF-8"},
		{name: "name", args: []string{"--env", "A\xff=1", "-c", "1"}, status: 125, stderr: "no name of a variable"},
		{name: "language", args: []string{"--lang", "py\xff", "-c", "1"}, status: 125, stderr: "is not known"},
		{name: "workdir", args: []string{"--workdir", "/w\xff", "-c", "1"}, status: 125, stderr: "not valid UTF-8"},
		{name: "backend", args: []string{"--backend", "\xff", "-c", "1"}, status: 125, stderr: "no name of a backend"},
		{name: "policy", args: []string{"--policy", "\xff\x1b[2J", "-c", "1"}, status: 127, stderr: "no such file"},
		{name: "flag", args: []string{"--\xff\x1b[2J", "-c", "1"}, status: 125, stderr: "has no flag"},
	} {
		r.run(t)
	}
}

func allBytes() string {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return string(b)
}

// TestBytesInAResult: output that is no text comes whole in JSON too.
func TestBytesInAResult(t *testing.T) {
	nothingLeft(t)
	o := runCode(t, "--json", "-c", "import sys; sys.stdout.buffer.write(bytes(range(256))); sys.stderr.write('\\0 text')")
	o.wants(t, 0, "")
	var res struct {
		Stdout, Stderr string
		Encoding       struct{ Stdout, Stderr string }
	}
	if err := json.Unmarshal([]byte(o.stdout), &res); err != nil {
		t.Fatal(err)
	}
	got, err := base64.StdEncoding.DecodeString(res.Stdout)
	if err != nil || string(got) != allBytes() || res.Encoding.Stdout != "base64" {
		t.Errorf("stdout %q, %v, %s", got, err, res.Encoding.Stdout)
	}
	if res.Stderr != "\x00 text" || res.Encoding.Stderr != "utf-8" {
		t.Errorf("stderr %q, %s", res.Stderr, res.Encoding.Stderr)
	}
}

// TestBytesInARequest: what a command line can't hold at all.
func TestBytesInARequest(t *testing.T) {
	nothingLeft(t)
	l := open(t, nil)
	for name, req := range map[string]tranca.Request{
		"NUL in an argument":   {Code: "1", Args: []string{"a\x00b"}},
		"NUL in a command":     {Command: []string{"/bin/true\x00"}},
		"NUL in code":          {Code: "1\x00"},
		"NUL in a language":    {Code: "1", Language: "python\x00"},
		"NUL in a value":       {Code: "1", Narrow: tranca.Narrowing{Env: map[string]string{"A": "\x00"}}},
		"NUL in a name":        {Code: "1", Narrow: tranca.Narrowing{Env: map[string]string{"A\x00": "1"}}},
		"NUL in a folder":      {Code: "1", Narrow: tranca.Narrowing{Workdir: "/work\x00"}},
		"too many arguments":   {Code: "1", Args: make([]string, 5000)},
		"an argument of 1 MiB": {Code: "1", Args: []string{strings.Repeat("a", mib)}},
		"both":                 {Code: "1", Command: []string{"/bin/true"}},
	} {
		if res, err := l.RunRequest(t.Context(), req); !errors.Is(err, tranca.ErrInvalid) && !errors.Is(err, tranca.ErrRefused) {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
	works(t, runner{l})
}

// TestMissingInterpreter asks for each language, of which most hosts lack some,
// and for programs that no sandbox has.
func TestMissingInterpreter(t *testing.T) {
	nothingLeft(t)
	l := open(t, nil)
	for name, req := range map[string]tranca.Request{
		"program":    {Command: []string{"/usr/bin/no-such-program"}},
		"by PATH":    {Command: []string{"no-such-program"}},
		"of host":    {Command: []string{hostProgram(t)}},
		"a folder's": {Command: []string{"/usr/bin/no/such"}},
	} {
		if res, err := l.RunRequest(t.Context(), req); !errors.Is(err, tranca.ErrNotFound) {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
	for _, name := range interpreter.Names() {
		_, err := l.RunRequest(t.Context(), tranca.Request{Language: name, Code: "1"})
		if slices.Contains(interpreter.OnHost(), name) == errors.Is(err, tranca.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, command := range [][]string{{"/usr"}, {"/etc/passwd"}} {
		if res, err := l.RunRequest(t.Context(), tranca.Request{Command: command}); err == nil || classless(err) {
			t.Errorf("%s: %+v, %v", command, res, err)
		}
	}
}

// hostProgram is a program that the host has and no sandbox.
func hostProgram(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// classless reports an error of no class that a caller could tell.
func classless(err error) bool {
	for _, class := range []error{
		tranca.ErrInvalid, tranca.ErrRefused, tranca.ErrUnavailable, tranca.ErrNotFound,
		tranca.ErrBusy, tranca.ErrGone, tranca.ErrClosed, tranca.ErrNoSpace,
	} {
		if errors.Is(err, class) {
			return false
		}
	}
	return true
}
