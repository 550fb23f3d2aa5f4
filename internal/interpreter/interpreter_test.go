package interpreter_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tranca"
	"tranca/internal/interpreter"
	"tranca/internal/require"
)

// ran is what a program that was run as the interpreter says left behind.
type ran struct {
	stdout, stderr string
	code           int
	tmp, dir       string
}

// run runs code on this host, without any boundary: this is the reference
// that a sandbox is held against.
func run(t *testing.T, language, code string, change func(*interpreter.Source, *exec.Cmd)) ran {
	t.Helper()
	l, err := interpreter.Find(language)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Check(code); err != nil {
		t.Fatal(err)
	}
	program := ""
	for _, p := range l.Programs {
		if _, err := os.Stat(p); err == nil {
			program = p
			break
		}
	}
	require.Check(t, l.Name, program != "", "no interpreter")
	r := ran{tmp: t.TempDir(), dir: t.TempDir()}
	src := interpreter.Source{Code: code, Workdir: r.dir}
	var out, errs bytes.Buffer
	cmd := exec.Command(program)
	cmd.Dir, cmd.Env = r.dir, []string{"TMPDIR=" + r.tmp, "PATH=/usr/bin:/bin", "LANG=C.UTF-8"}
	cmd.Stdout, cmd.Stderr = &out, &errs
	if change != nil {
		change(&src, cmd)
	}
	args, stdin := l.Command(program, src)
	cmd.Args, cmd.Stdin = args, stdin
	var failed *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	r.stdout, r.stderr, r.code = out.String(), errs.String(), cmd.ProcessState.ExitCode()
	return r
}

func TestPythonLooksLikeAFile(t *testing.T) {
	r := run(t, "", `"""the doc"""
from __future__ import annotations
import sys, os
print(sys.argv == [__file__, "a", "-b"], __name__, __doc__)
print(os.path.basename(__file__), open(__file__).read()[:13], sys.getprofile())
print(sys.path[-1] == os.getcwd(), sys.path[0] != "")
print(sorted(k for k in globals() if not k.startswith("__")))
print(sys.stdin.read())
def f(x): return x + 1
import inspect
print(inspect.getsource(f).strip())
`, func(s *interpreter.Source, _ *exec.Cmd) {
		s.Args, s.Stdin = []string{"a", "-b"}, strings.NewReader("the program's own input")
	})
	want := `True __main__ the doc
.main.py """the doc""" None
True True
['annotations', 'os', 'sys']
the program's own input
def f(x): return x + 1
`
	if r.stdout != want || r.stderr != "" || r.code != 0 {
		t.Errorf("%q\n%q\n%d", r.stdout, r.stderr, r.code)
	}
}

func TestPythonTracebacks(t *testing.T) {
	for name, tc := range map[string]struct{ code, want string }{
		"uncaught": {"def f():\n    return 1 / 0\n\nf()\n", `Traceback (most recent call last):
  File "FILE", line 4, in <module>
    f()
  File "FILE", line 2, in f
    return 1 / 0
           ~~^~~
ZeroDivisionError: division by zero
`},
		"caught and printed": {"import traceback\ntry:\n    {}['x']\nexcept KeyError:\n    traceback.print_exc()\n    raise SystemExit(1)\n", `Traceback (most recent call last):
  File "FILE", line 3, in <module>
    {}['x']
    ~~^^^^^
KeyError: 'x'
`},
		"chained": {"try:\n    1 / 0\nexcept ZeroDivisionError:\n    raise ValueError('second')\n", `Traceback (most recent call last):
  File "FILE", line 2, in <module>
    1 / 0
    ~~^~~
ZeroDivisionError: division by zero

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "FILE", line 4, in <module>
    raise ValueError('second')
ValueError: second
`},
		"syntax": {"x = 1\ny = (\n", `  File "FILE", line 2
    y = (
        ^
SyntaxError: '(' was never closed
`},
		"deep": {"class A:\n    def g(self):\n        def h():\n            return [1 / x for x in [0]]\n        return h()\nA().g()\n", `Traceback (most recent call last):
  File "FILE", line 6, in <module>
    A().g()
  File "FILE", line 5, in g
    return h()
           ^^^
  File "FILE", line 4, in h
    return [1 / x for x in [0]]
           ^^^^^^^^^^^^^^^^^^^^
  File "FILE", line 4, in <listcomp>
    return [1 / x for x in [0]]
            ~~^~~
ZeroDivisionError: division by zero
`},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, "python", tc.code, nil)
			got := strings.ReplaceAll(r.stderr, filepath.Join(r.tmp, ".main.py"), "FILE")
			if plain(got) != plain(tc.want) || r.code != 1 {
				t.Errorf("code %d\n%s", r.code, got)
			}
		})
	}
}

// plain leaves out what differs between versions of Python: the carets, and
// the frame of a list comprehension.
func plain(traceback string) string {
	var b strings.Builder
	skip := false
	for line := range strings.Lines(traceback) {
		switch {
		case strings.Contains(line, "in <listcomp>"):
			skip = true
		case skip:
			skip = false
		case strings.Trim(line, " ~^\n") != "" || line == "\n":
			b.WriteString(line)
		}
	}
	return b.String()
}

func TestPythonEnds(t *testing.T) {
	for code, want := range map[string]int{
		"import sys; sys.exit(7)":                     7,
		"import os; os._exit(137)":                    137,
		"raise SystemExit":                            0,
		"import os, signal; os.kill(os.getpid(), 15)": -1,
		"import os, signal; os.kill(os.getpid(), 2)":  -1,
		"pass":                          0,
		"import sys; sys.exit('words')": 1,
		"print('\xff')":                 1, // not UTF-8, and says so
		"# coding: latin-1\nassert '\xe4' == '\\xe4'": 0,
		"\ufeffprint(1)": 0,
		"def f():\n  yield\nimport sys; sys.exit(f.__code__.co_filename != __file__)": 0,
	} {
		if r := run(t, "python", code, nil); r.code != want {
			t.Errorf("%q ended with %d, want %d: %s", code, r.code, want, r.stderr)
		}
	}
}

// TestPythonPlanted plants what Python would load by itself, in the working
// folder: none of it may run before the code, or in place of the standard
// library. A module of another name can be imported.
func TestPythonPlanted(t *testing.T) {
	planted := []string{
		"sitecustomize.py", "usercustomize.py", "json.py", "os.py", "traceback.py", "linecache.py", "x.pth",
	}
	r := run(t, "python", "import json, helper\nprint(json.dumps([helper.answer]))\n1/0\n",
		func(s *interpreter.Source, cmd *exec.Cmd) {
			for _, name := range planted {
				text := "import sys; sys.stderr.write('PLANTED')\nopen('marker', 'w')\n"
				if err := os.WriteFile(filepath.Join(cmd.Dir, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(cmd.Dir, "helper.py"), []byte("answer = 42\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd.Env = append(cmd.Env, "PYTHONPATH="+cmd.Dir, "PYTHONSTARTUP=sitecustomize.py", "HOME="+cmd.Dir)
		})
	if r.stdout != "[42]\n" || strings.Contains(r.stderr, "PLANTED") || r.code != 1 {
		t.Errorf("%q, %q, %d", r.stdout, r.stderr, r.code)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "marker")); err == nil {
		t.Error("a planted file was run")
	}
}

// TestPythonWithoutRoom runs where no file can be made: on a full disk, say.
// What an earlier run left under the name, a FIFO, must not block.
func TestPythonWithoutRoom(t *testing.T) {
	r := run(t, "python", "print(__name__)\nraise ValueError('still told')", func(_ *interpreter.Source, cmd *exec.Cmd) {
		cmd.Env = append(cmd.Env, "TMPDIR=/nowhere")
	})
	if r.stdout != "__main__\n" || !strings.Contains(r.stderr, "ValueError: still told") {
		t.Errorf("%q, %q", r.stdout, r.stderr)
	}
	r = run(t, "python", "print(open(__file__).read())", func(_ *interpreter.Source, cmd *exec.Cmd) {
		tmp := strings.TrimPrefix(cmd.Env[0], "TMPDIR=")
		if err := exec.Command("mkfifo", filepath.Join(tmp, ".main.py")).Run(); err != nil {
			t.Fatal(err)
		}
	})
	if r.stdout != "print(open(__file__).read())\n" {
		t.Errorf("%q, %q", r.stdout, r.stderr)
	}
}

func TestPythonHuge(t *testing.T) {
	code := "n = 0\n" + strings.Repeat("#"+strings.Repeat("x", 1022)+"\n", 50<<10) + "print('huge', len(input()))"
	r := run(t, "python", code, func(s *interpreter.Source, _ *exec.Cmd) { s.Stdin = strings.NewReader("four\n") })
	if r.stdout != "huge 4\n" {
		t.Errorf("%q, %q, %d", r.stdout, r.stderr, r.code)
	}
}

func TestPythonCodeCutOff(t *testing.T) {
	l, err := interpreter.Find("python")
	if err != nil {
		t.Fatal(err)
	}
	args, stdin := l.Command(require.Program(t, "python3"), interpreter.Source{Code: "print('whole')", Workdir: "/"})
	half, err := io.ReadAll(io.LimitReader(stdin, 5))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin = bytes.NewReader(half)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "cut off") {
		t.Errorf("half of the code: %q, %v", out, err)
	}
}

func TestOthers(t *testing.T) {
	for language, code := range map[string]string{
		"sh":   `echo "$@"; cat; exit 3`,
		"bash": `[[ x == x ]] && echo "$@"; cat; exit 3`,
		"node": `console.log(process.argv.slice(1).join(" ")); process.stdin.pipe(process.stdout); process.exitCode = 3`,
		"perl": `print "@ARGV\n"; print while <STDIN>; exit 3`,
		"ruby": `puts ARGV.join(" "); print $stdin.read; exit 3`,
	} {
		t.Run(language, func(t *testing.T) {
			r := run(t, language, code, func(s *interpreter.Source, _ *exec.Cmd) {
				s.Args, s.Stdin = []string{"-a", "b"}, strings.NewReader("input")
			})
			if r.stdout != "-a b\ninput" || r.code != 3 {
				t.Errorf("%q, %q, %d", r.stdout, r.stderr, r.code)
			}
		})
	}
}

func TestCodeThatLooksLikeAnOption(t *testing.T) {
	for language, code := range map[string]string{"sh": "-x", "bash": "--version", "node": "-1", "perl": "-1", "ruby": "-1"} {
		t.Run(language, func(t *testing.T) {
			r := run(t, language, code, nil)
			shell := strings.HasSuffix(language, "sh")
			if shell && r.code != 127 || !shell && r.code != 0 || r.stdout != "" {
				t.Errorf("%q, %q, %d", r.stdout, r.stderr, r.code)
			}
		})
	}
}

func TestFindAndCheck(t *testing.T) {
	if _, err := interpreter.Find("cobol"); !errors.Is(err, tranca.ErrInvalid) || !strings.Contains(err.Error(), "python, sh") {
		t.Error(err)
	}
	for _, name := range interpreter.Names() {
		l, err := interpreter.Find(name)
		if err != nil || l.Name != name {
			t.Fatalf("%s: %v", name, err)
		}
		for _, bad := range []string{"", " \n", "a\x00b", strings.Repeat("x", interpreter.MaxStreamed+1)} {
			if err := l.Check(bad); !errors.Is(err, tranca.ErrInvalid) {
				t.Errorf("%s takes %d bytes of bad code: %v", name, len(bad), err)
			}
		}
		if err := l.Check("x\xff"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	require.Program(t, "sh")
	if on := interpreter.OnHost(); !strings.Contains(strings.Join(on, " "), "sh") {
		t.Errorf("on the host: %v", on)
	}
}
