package hostiletest

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tranca"
	"tranca/internal/backend/process"
	"tranca/local"
)

func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// mounted runs a program with a mount and returns the error.
func mounted(t *testing.T, m tranca.Mount) error {
	t.Helper()
	b, err := process.New(process.Options{})
	if err != nil {
		t.Fatal(err)
	}
	report, err := b.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := local.DefaultPolicy()
	p.Floor, p.Backend, p.Mounts = tranca.LevelProcess, process.Name, []tranca.Mount{m}
	p.Waive = append(p.Waive, Lacking(&report)...)
	l, err := local.New(local.WithBackend(b), local.WithPolicy(p))
	if err != nil {
		return err
	}
	_, err = l.Run(t.Context(), "print(1)")
	return errors.Join(err, l.Close())
}

// TestHostileWords gives words that a shell, a format or a path would take for
// something else: API-01. They arrive as they are. The control gives them to a
// shell.
func TestHostileWords(t *testing.T) {
	w := newWorld(t, nil)
	marker := filepath.Join(w.dir, "marker")
	hostile := []string{
		"$(touch " + marker + ")", "`touch " + marker + "`", "; touch " + marker + " #", "' ; touch " + marker + " ; '",
		"\" ; touch " + marker + " ; \"", "a\nb", "-c", "--", "-", "", "%s%n%d", "../../etc/passwd", "\x1b[2J", "\xff\xfe", "é\u202e", "*", "~root", "${IFS}",
	}
	res := w.request(tranca.Request{
		Code: "import sys, json, os\nprint(json.dumps([os.fsencode(a).decode('latin1') for a in sys.argv[1:]]))", Args: hostile,
	})
	var got []string
	if err := json.Unmarshal(res.Stdout, &got); err != nil {
		t.Fatalf("%v: %q %q", err, res.Stdout, res.Stderr)
	}
	var want []string
	for _, a := range append(hostile[:len(hostile):len(hostile)], w.mark) {
		want = append(want, latin1(a))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("a word was executed on the host")
	}
	_ = exec.CommandContext(t.Context(), "sh", "-c", "echo "+hostile[0]).Run()
	if _, err := os.Stat(marker); err != nil {
		t.Errorf("control: %v", err)
	}
}

// latin1 is a string of each byte as a character.
func latin1(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteRune(rune(s[i]))
	}
	return b.String()
}

// TestHostileRequests asks for what no request may have.
func TestHostileRequests(t *testing.T) {
	w := newWorld(t, nil)
	narrowed := func(n tranca.Narrowing) tranca.Request { return tranca.Request{Code: "print(1)", Narrow: n} }
	for name, req := range map[string]tranca.Request{
		"NUL in an argument": {Code: "print(1)", Args: []string{"a\x00b"}},
		"NUL in a command":   {Command: []string{"/bin/sh\x00x"}},
		"no command":         {Command: []string{""}},
		"another language":   {Code: "x", Language: "../../bin/sh"},
		"code and command":   {Code: "x", Command: []string{"sh"}},
		"a variable with =":  narrowed(tranca.Narrowing{Env: map[string]string{"A=B": "x"}}),
		"a variable with NUL": narrowed(tranca.Narrowing{
			Env: map[string]string{"A": "x\x00LD_PRELOAD=y"},
		}),
		"an empty variable":            narrowed(tranca.Narrowing{Env: map[string]string{"": "x"}}),
		"more memory":                  narrowed(tranca.Narrowing{Memory: 1 << 40}),
		"more time":                    narrowed(tranca.Narrowing{Wall: 1000 * time.Hour}),
		"negative time":                narrowed(tranca.Narrowing{Wall: -1}),
		"a lower floor":                narrowed(tranca.Narrowing{Floor: -1}),
		"another backend":              narrowed(tranca.Narrowing{Backend: "subprocess"}),
		"a mount that is not there":    narrowed(tranca.Narrowing{DropMounts: []string{"/nowhere"}}),
		"a folder above":               narrowed(tranca.Narrowing{Workdir: "../../.."}),
		"a folder by descriptor":       narrowed(tranca.Narrowing{Workdir: "/proc/self/fd/3"}),
		"a folder of the first":        narrowed(tranca.Narrowing{Workdir: "/proc/1/root"}),
		"a folder of the host":         narrowed(tranca.Narrowing{Workdir: w.dir}),
		"a folder that is not a path ": narrowed(tranca.Narrowing{Workdir: "/work/\x00"}),
	} {
		t.Run(name, func(t *testing.T) {
			res, err := w.RunRequest(t.Context(), req)
			if err == nil {
				t.Fatalf("it ran: %s %q %q", res.Exit, res.Stdout, res.Stderr)
			}
			if !errors.Is(err, tranca.ErrInvalid) && !errors.Is(err, tranca.ErrRefused) && !errors.Is(err, tranca.ErrNotFound) {
				t.Errorf("an error of no class: %v", err)
			}
		})
	}
	if res := w.request(narrowed(tranca.Narrowing{Workdir: "/tmp", Memory: 100 << 20, Env: map[string]string{"A": "b"}})); !res.Exit.Success() {
		t.Errorf("control: %s %q", res.Exit, res.Stderr)
	}
}

// TestHostileVariables sets variables that loaders and interpreters act on:
// PY-03. They reach the program and nothing else.
func TestHostileVariables(t *testing.T) {
	w := newWorld(t, nil)
	marker := filepath.Join(w.dir, "marker")
	script := filepath.Join(w.dir, "script")
	if err := os.WriteFile(script, []byte("touch "+marker+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"LD_PRELOAD": "/work/none.so", "LD_LIBRARY_PATH": "/work", "PYTHONSTARTUP": script, "PYTHONPATH": "/work",
		"BASH_ENV": script, "ENV": script, "NODE_OPTIONS": "--require " + script, "GODEBUG": "x", "GOTRACEBACK": "crash",
		"PERL5OPT": "-M" + script,
	}
	res := w.request(tranca.Request{
		Code:   "import os\nprint(os.environ['LD_LIBRARY_PATH'], os.environ['BASH_ENV'])",
		Narrow: tranca.Narrowing{Env: env},
	})
	if want := "/work " + script + "\n"; string(res.Stdout) != want {
		t.Errorf("%s %q %q", res.Exit, res.Stdout, res.Stderr)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("a variable took effect on the host")
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "true")
	cmd.Env = append(os.Environ(), "BASH_ENV="+script)
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(marker); err != nil {
		t.Errorf("control: %v", err)
	}
}

// TestHostilePickle returns objects that act when they are loaded, by output
// and by file: PY-07. The control loads one.
func TestHostilePickle(t *testing.T) {
	w := newWorld(t, shared)
	marker := filepath.Join(w.dir, "marker")
	res := w.run(`
import os, pickle, sys
class Evil:
    def __reduce__(self): return (os.system, ('touch ` + marker + `',))
    def __repr__(self): os.system('touch ` + marker + `'); return 'evil'
data = pickle.dumps(Evil())
open('/p/result.pkl', 'wb').write(data)
sys.stdout.buffer.write(data)
sys.exit(Evil())`)
	if res.Exit.Code != 1 {
		t.Errorf("%s %q", res.Exit, res.Stderr)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("an object was loaded on the host")
	}
	load := exec.CommandContext(t.Context(), "/usr/bin/python3", "-I", "-c", "import pickle; pickle.load(open('"+w.dir+"/result.pkl', 'rb'))")
	if err := load.Run(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(marker); err != nil {
		t.Errorf("control: %v", err)
	}
}

// TestHostileNeighbours plants modules of the standard library's names beside
// the code: PY-01. A module of another name can be imported.
func TestHostileNeighbours(t *testing.T) {
	w := newWorld(t, nil)
	s := w.open()
	w.next(s, `
for name in ('json', 'random', 'sitecustomize', 'usercustomize', 'own'):
    open(name + '.py', 'w').write('print("EVIL" if __name__ != "own" else "own")')`)
	res := w.next(s, "import json, random, own\nprint('end')")
	if string(res.Stdout) != "own\nend\n" {
		t.Errorf("%q %q", res.Stdout, res.Stderr)
	}
	control, err := s.Run(t.Context(), tranca.Request{Command: []string{"/usr/bin/python3", "-c", "import json"}})
	if err != nil || !strings.Contains(string(control.Stdout), "EVIL") {
		t.Errorf("control: %v %q", err, control.Stdout)
	}
}
