package badinput

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
)

// talker writes without end, so that whoever doesn't read holds it up.
const talker = `
import sys
while True:
    sys.stdout.write('x' * 65536)
    sys.stderr.write('y' * 65536)
`

// TestReaderGoesAway closes the other end of the output while the program
// writes, and when it writes no more: then the run goes on.
func TestReaderGoesAway(t *testing.T) {
	nothingLeft(t)
	c := prepare(t, runArgs(t, "--timeout", "20s", "-c", "import time\nwhile True: print('x', flush=True); time.sleep(.01)")...)
	r := c.pipe()
	c.start()
	r.expect(t, "x")
	r.r.Close()
	o := c.wait()
	o.wants(t, 128+int(unix.SIGPIPE), "")
	if o.stderr != "" || o.took > 15*time.Second {
		t.Errorf("after %s: %q", o.took, o.stderr)
	}
}

// TestOutputClosedBefore starts the command with its output closed, or with
// nobody at the other end.
func TestOutputClosedBefore(t *testing.T) {
	nothingLeft(t)
	for name, redirect := range map[string]string{
		"stdout": ">&-", "both": ">&- 2>&-", "all": "<&- >&- 2>&-", "input": "<&-",
	} {
		args := runArgs(t, "-c", "import sys; print(6*7); sys.exit(3)")
		c := prepare(t, args...)
		program, dir := c.cmd.Path, t.TempDir()
		if target, err := os.Readlink(program); err == nil {
			program = target // its own name for itself is the shell's there
		}
		c.cmd.Path = "/bin/sh"
		c.cmd.Args = append([]string{"sh", "-c", `exec "$0" "$@" ` + redirect, program}, args...)
		c.cmd.Dir = dir
		o := c.start().wait()
		// A closed output is an error of its own, or is written nowhere.
		if o.status != 3 && o.status != 125 && o.status != 128+int(unix.SIGPIPE) {
			t.Errorf("%s: status %d, %q", name, o.status, o.stderr)
		}
		if name == "input" && (o.status != 3 || o.stdout != "42\n") {
			t.Errorf("%s: status %d, %q %q", name, o.status, o.stdout, o.stderr)
		}
	}
}

// TestReaderNeverReads gives the command a pipe that nobody reads: it ends all
// the same, at the limit of a program that writes without end. Who reads then
// finds all that a pipe can hold, or is told that the rest is lost.
func TestReaderNeverReads(t *testing.T) {
	for name, r := range map[string]struct {
		args   []string
		status int
		words  string
		least  int // bytes that are there afterwards
	}{
		"live":       {[]string{"--timeout", "2s", "--output-limit", "512KiB", "-c", talker}, 124, "it ran for longer than 2s", 512 << 10},
		"result":     {[]string{"--json", "-c", "print('x' * 300000)"}, 0, "", 300_000},
		"large":      {[]string{"--json", "--timeout", "2s", "--output-limit", "4MiB", "-c", talker}, 125, "nobody read the output for 2s", 64 << 10},
		"short":      {[]string{"-c", "print('x' * 500000)"}, 0, "", 500_001},
		"background": {[]string{"--timeout", "2s", "-c", "import os, time\nif os.fork() == 0:\n    time.sleep(600)\nprint('x' * 500000)"}, 0, "", 500_001},
	} {
		t.Run(name, func(t *testing.T) {
			nothingLeft(t)
			c := prepare(t, runArgs(t, r.args...)...)
			pipe := c.pipe()
			defer pipe.r.Close()
			o := c.start().wait()
			if o.status != r.status || !strings.Contains(o.stderr, r.words) || o.took > 30*time.Second {
				t.Errorf("status %d after %s: %d bytes of errors, %q", o.status, o.took, len(o.stderr), tail(o.stderr))
			}
			text, err := io.ReadAll(pipe.r)
			if err != nil || len(text) < r.least {
				t.Errorf("%d bytes are left to read, want %d: %v", len(text), r.least, err)
			}
			if t.Failed() {
				t.Logf("they begin with %.400s", text)
			}
		})
	}
}

// TestNobodyReadsErrors: not even an error can be told.
func TestNobodyReadsErrors(t *testing.T) {
	nothingLeft(t)
	c := prepare(t, runArgs(t, "--timeout", "2s", "--output-limit", "8MiB", "-c", talker)...)
	r := c.pipe()
	defer r.r.Close()
	c.cmd.Stderr = c.cmd.Stdout
	if o := c.start().wait(); o.status != 125 || o.took > 40*time.Second {
		t.Errorf("status %d after %s", o.status, o.took)
	}
}

// TestSignalWhileNobodyReads: a signal ends the wait for a reader too.
func TestSignalWhileNobodyReads(t *testing.T) {
	nothingLeft(t)
	c := prepare(t, runArgs(t, "--output-limit", "8MiB", "-c", talker)...)
	r := c.pipe()
	defer r.r.Close()
	c.start()
	time.Sleep(time.Second)
	c.signal(unix.SIGINT)
	if o := c.wait(); o.status != 130 && o.status != 125 || o.took > 15*time.Second {
		t.Errorf("status %d after %s: %q", o.status, o.took, tail(o.stderr))
	}
}

func tail(s string) string { return s[max(0, len(s)-300):] }

// blocked is a writer or reader that never returns until it is let go.
type blocked chan struct{}

func (b blocked) Write(p []byte) (int, error) { <-b; return len(p), nil }
func (b blocked) Read([]byte) (int, error)    { <-b; return 0, io.EOF }

// failing is one that fails at once.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
func (failing) Read([]byte) (int, error)  { return 0, io.ErrUnexpectedEOF }

// TestStreamsOfARequest: whoever reads and writes for a program inside another
// Go program can't hold up its run, nor lose what is in the result.
func TestStreamsOfARequest(t *testing.T) {
	nothingLeft(t)
	l := open(t, func(p *tranca.Policy) { p.Limits.Wall = 3 * time.Second })
	never := make(blocked)
	defer close(never)
	text := strings.Repeat("x", 300_000) + "\n"
	for name, req := range map[string]tranca.Request{
		"blocked output": {Stdout: never, Stderr: never},
		"failing output": {Stdout: failing{}, Stderr: failing{}},
		"blocked input":  {Stdin: never},
		"failing input":  {Stdin: failing{}},
		"endless input":  {Stdin: endless{}},
	} {
		req.Code = "print('x' * 300000)"
		res, err := l.RunRequest(t.Context(), req)
		if err != nil || !res.Exit.Success() || string(res.Stdout) != text {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
	req := tranca.Request{Code: "import sys; sys.stdin.read()", Stdin: never}
	if res, err := l.RunRequest(t.Context(), req); err != nil || res.Exit.Reason != tranca.EndWall {
		t.Errorf("input that never comes: %+v, %v", res, err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
