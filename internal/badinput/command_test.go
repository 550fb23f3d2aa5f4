package badinput

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long a command may take that should end by itself.
const patience = 60 * time.Second

// command is tranca in a process of its own, as the leader of its own process
// group, as a shell starts it.
type command struct {
	t              testing.TB
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
	began          time.Time
	after          []io.Closer // the command's ends of pipes
}

// outcome is how a command ended.
type outcome struct {
	// status is the exit status as a shell tells it: 128 and the signal's
	// number where a signal ended it.
	status         int
	signal         syscall.Signal // that ended it, or 0
	stdout, stderr string
	took           time.Duration
	memory         int64 // the most that it had at once, in bytes
}

// prepare makes a command that start has not yet started.
func prepare(t testing.TB, args ...string) *command {
	t.Helper()
	program, role := os.Getenv("TRANCA_BIN"), ""
	if program == "" {
		program, role = "/proc/self/exe", "tranca"
	}
	c := &command{t: t, cmd: exec.Command(program, args...)}
	c.cmd.Args[0] = "tranca"
	c.cmd.Stdout, c.cmd.Stderr = &c.stdout, &c.stderr
	// A program that keeps a descriptor must not hold up the test.
	c.cmd.WaitDelay = patience
	c.cmd.Dir = t.TempDir()
	c.cmd.Env = append(environment(),
		roleVariable+"="+role, "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
		"TMPDIR="+filepath.Join(scratch, "tmp"), "LANG=C.UTF-8",
	)
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return c
}

func (c *command) start() *command {
	c.t.Helper()
	c.began = time.Now()
	if err := c.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	for _, f := range c.after {
		f.Close()
	}
	return c
}

func start(t testing.TB, args ...string) *command {
	t.Helper()
	return prepare(t, args...).start()
}

func (c *command) pid() int { return c.cmd.Process.Pid }

// signal sends a signal to the whole process group, as a terminal does. One
// that has ended gets nothing.
func (c *command) signal(s unix.Signal) {
	c.t.Helper()
	if err := unix.Kill(-c.pid(), s); err != nil && !errors.Is(err, unix.ESRCH) {
		c.t.Errorf("signal: %v", err)
	}
}

// wait waits for the end, and kills a command that does not come to it.
func (c *command) wait() outcome {
	c.t.Helper()
	late := time.AfterFunc(patience, func() { _ = c.cmd.Process.Kill() })
	err := c.cmd.Wait()
	if !late.Stop() {
		c.t.Errorf("tranca %q did not end within %s", c.cmd.Args[1:], patience)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		c.t.Errorf("tranca %q: %v", c.cmd.Args[1:], err)
	}
	o := outcome{
		status: c.cmd.ProcessState.ExitCode(), took: time.Since(c.began),
		stdout: c.stdout.String(), stderr: c.stderr.String(),
		memory: c.cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10,
	}
	if ws := c.cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signaled() {
		o.signal = ws.Signal()
		o.status = 128 + int(o.signal)
	}
	return o
}

// reader gives a command's output as it comes.
type reader struct {
	r    *os.File
	seen string
}

// pipe makes the command write into a pipe. Call it before start.
func (c *command) pipe() *reader {
	c.t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		c.t.Fatal(err)
	}
	c.cmd.Stdout = w
	c.after = append(c.after, w)
	c.t.Cleanup(func() { r.Close() })
	return &reader{r: r}
}

// expect waits for words of output.
func (r *reader) expect(t testing.TB, words string) {
	t.Helper()
	if err := r.r.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4096)
	for !strings.Contains(r.seen, words) {
		n, err := r.r.Read(buf)
		r.seen += string(buf[:n])
		if err != nil {
			t.Fatalf("%q did not come: %v; %q", words, err, r.seen)
		}
	}
}

// runTranca runs a command to its end.
func runTranca(t testing.TB, stdin io.Reader, args ...string) outcome {
	t.Helper()
	c := prepare(t, args...)
	c.cmd.Stdin = stdin
	return c.start().wait()
}

// runCode runs code by "tranca run", with what this host lacks waived.
func runCode(t testing.TB, args ...string) outcome {
	t.Helper()
	return runTranca(t, nil, runArgs(t, args...)...)
}

func runArgs(t testing.TB, args ...string) []string {
	t.Helper()
	return append(append([]string{"run"}, waivers(t)...), args...)
}

// wants fails the test unless the command ended with the status, and its
// stderr holds the words.
func (o outcome) wants(t testing.TB, status int, words string) {
	t.Helper()
	if o.status != status || !strings.Contains(o.stderr, words) {
		t.Errorf("status %d, want %d and %q\nstdout: %.300q\nstderr: %.600q", o.status, status, words, o.stdout, o.stderr)
	}
	if strings.Contains(o.stderr, "panic:") || strings.Contains(o.stderr, "goroutine ") {
		t.Errorf("a panic: %.2000s", o.stderr)
	}
}
