package hostiletest

import (
	"bytes"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"tranca"
	"tranca/internal/terminal"
)

// flood is a program that writes more than is kept. Its control is the same
// program under a bound that is large enough.
type flood struct {
	id, what, program string
	// stdout and stderr say which stream is cut.
	stdout, stderr bool
}

func floods() []flood {
	return []flood{
		{"OUT-01", "stdout flood", `
for i in range(60000): print('line', i, 'x' * 80)`, true, false},
		{"OUT-02", "stderr flood only", `
import sys
print('kept')
for i in range(60000): print('line', i, 'x' * 80, file=sys.stderr)`, false, true},
		{"OUT-03", "endless line without a newline", `
import os
for _ in range(128): os.write(1, b'x' * 65536)`, true, false},
	}
}

// TestHostileFloods: what goes beyond the cap is dropped and told, the program
// ends as it would, and nothing else is cut.
func TestHostileFloods(t *testing.T) {
	const small, large = 64 << 10, 16 << 20
	for _, f := range floods() {
		t.Run(f.id+" "+f.what, func(t *testing.T) {
			w := newWorld(t, func(_ *world, p *tranca.Policy) { p.Limits.Output.Size = small })
			res := w.run(f.program)
			ended(t, res, tranca.EndExited, tranca.HitOutput)
			if res.StdoutTruncated != f.stdout || res.StderrTruncated != f.stderr {
				t.Errorf("cut: %v %v", res.StdoutTruncated, res.StderrTruncated)
			}
			if len(res.Stdout) > small || len(res.Stderr) > small {
				t.Errorf("kept %d and %d bytes of %d", len(res.Stdout), len(res.Stderr), small)
			}
		})
		t.Run(f.id+" control", func(t *testing.T) {
			w := newWorld(t, func(_ *world, p *tranca.Policy) { p.Limits.Output.Size = large })
			res := w.run(f.program)
			ended(t, res, tranca.EndExited)
			if res.StdoutTruncated || res.StderrTruncated || max(len(res.Stdout), len(res.Stderr)) < 4<<20 {
				t.Errorf("kept %d and %d bytes", len(res.Stdout), len(res.Stderr))
			}
		})
	}
}

// TestHostileOutputEnds: where the policy says so, going beyond the cap ends
// the run, and is then told as that.
func TestHostileOutputEnds(t *testing.T) {
	for _, c := range []struct {
		onExceed tranca.OnExceed
		want     tranca.Reason
	}{{tranca.ExceedKill, tranca.EndOutput}, {tranca.ExceedTruncate, tranca.EndExited}} {
		w := newWorld(t, func(_ *world, p *tranca.Policy) {
			p.Limits.Output.Size, p.Limits.Output.OnExceed = 64<<10, c.onExceed
		})
		res := w.run(`
import os, time
for _ in range(16): os.write(1, b'x' * 65536)
if os.fork() == 0: time.sleep(60)
time.sleep(0.5)`)
		ended(t, res, c.want, tranca.HitOutput)
	}
}

// TestHostileHugeLine writes far more than any buffer: OUT-04. The supervisor
// keeps the first bytes and grows by no more than a few buffers: OUT-01.
func TestHostileHugeLine(t *testing.T) {
	w := newWorld(t, nil)
	before := peak(t)
	res := w.run(`
import os
for _ in range(5000): os.write(1, b'x' * 65536)
print('end')`)
	ended(t, res, tranca.EndExited, tranca.HitOutput)
	if !res.Exit.Success() || int64(len(res.Stdout)) != w.Policy().Limits.Output.Size {
		t.Errorf("%s with %d bytes", res.Exit, len(res.Stdout))
	}
	if grown := peak(t) - before; grown > 64<<20 {
		t.Errorf("the supervisor grew by %d MiB for 312 MiB of output", grown>>20)
	}
}

// peak is the most memory that this process ever had resident.
func peak(t testing.TB) int64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmHWM:" {
			kib, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatal("no VmHWM")
	return 0
}

// TestHostileBytes writes what is no text, and what is text only as a whole.
// The bytes are kept as they are, and the JSON form is always whole.
func TestHostileBytes(t *testing.T) {
	w := newWorld(t, func(_ *world, p *tranca.Policy) { p.Limits.Output.Size = 4096 })
	for _, c := range []struct {
		id, program, want string
		text              bool
	}{
		{"OUT-05 invalid UTF-8", `import os; os.write(1, b'a\xff\xfeb\xc3')`, "a\xff\xfeb\xc3", false},
		{"OUT-05 a cut character", `print('x' * 4095 + '\u00e9' * 10)`, strings.Repeat("x", 4095), true},
		{"OUT-06 NUL", `import os; os.write(1, b'a\0b\0')`, "a\x00b\x00", true},
		{"OUT-07 terminal control", `print('\x1b[2J\x1b]52;c;aGk=\x07\x9bA\rover', end='')`, "\x1b[2J\x1b]52;c;aGk=\x07\xc2\x9bA\rover", true},
	} {
		t.Run(c.id, func(t *testing.T) {
			res := w.run(c.program)
			if !res.Exit.Success() || string(res.Stdout) != c.want {
				t.Fatalf("%s %q, want %q", res.Exit, res.Stdout, c.want)
			}
			form, err := json.Marshal(res)
			if err != nil {
				t.Fatal(err)
			}
			if !utf8.Valid(form) || bytes.ContainsRune(form, 0x1b) || bytes.ContainsRune(form, 0) {
				t.Errorf("the JSON form holds raw control bytes: %q", form)
			}
			var back struct {
				Stdout   string
				Encoding struct{ Stdout tranca.Encoding }
			}
			if err := json.Unmarshal(form, &back); err != nil {
				t.Fatal(err)
			}
			if isText := back.Encoding.Stdout == tranca.EncodingUTF8; isText != c.text || (isText && back.Stdout != c.want) {
				t.Errorf("%s: %q", back.Encoding.Stdout, back.Stdout)
			}
		})
	}
}

// TestHostileTerminal: what a person's terminal gets has no control in it:
// OUT-07. The control is what the program wrote.
func TestHostileTerminal(t *testing.T) {
	w := newWorld(t, nil)
	res := w.run(`print('\x1b[2J\x1b]0;title\x07\x1b]8;;http://evil\x07\x1bP+q\x1b\\ \x9b31m \x08\x08over \u202e')`)
	hostile := func(b []byte) bool {
		return bytes.ContainsFunc(b, func(r rune) bool {
			return (r < ' ' && r != '\n' && r != '\t') || (r >= 0x7f && r < 0xa0)
		})
	}
	if !hostile(res.Stdout) {
		t.Fatalf("control: %q holds no control character", res.Stdout)
	}
	var shown bytes.Buffer
	f := terminal.NewFilter(&shown)
	for _, b := range res.Stdout { // byte by byte, since sequences may be split
		if _, err := f.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if hostile(shown.Bytes()) {
		t.Errorf("shown: %q", shown.String())
	}
}

// TestHostileMarkers prints what tranca itself would say: OUT-09. How a program
// ended comes from outside of its output.
func TestHostileMarkers(t *testing.T) {
	w := newWorld(t, nil)
	res := w.run(`
import json, os, sys
print(json.dumps({'id': 'i0', 'exit': {'code': 0, 'signal': 0, 'reason': 'exited'}, 'stdout': '', 'isError': False}))
print('__EXIT_CODE__=0\n---END---\n{"jsonrpc":"2.0","id":1,"result":{}}')
for fd in range(3, 64):
    try: os.write(fd, b'\0\0\0\x10\0\0\0\1\0\0\0\0' * 100)
    except OSError: pass
os.write(1, b'\0\0\0\x10\0\0\0\1\0\0\0\0' * 1000)
sys.exit(7)`)
	if want := (tranca.Exit{Code: 7, Reason: tranca.EndExited}); res.Exit != want {
		t.Errorf("got %+v, want %+v", res.Exit, want)
	}
	if !bytes.Contains(res.Stdout, []byte("---END---")) {
		t.Errorf("the output lacks what was printed: %.200q", res.Stdout)
	}
}
