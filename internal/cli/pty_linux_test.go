package cli_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/client"
	"tranca/internal/app"
	"tranca/internal/require"
)

// desk is a terminal with a command at it, and somebody who types and reads.
type desk struct {
	t      *testing.T
	master *os.File
	slave  *os.File
	cmd    *exec.Cmd
	before unix.Termios

	mu     sync.Mutex
	screen bytes.Buffer // all that came
	read   int          // what was waited for already
	came   chan struct{}
}

// atTerminal starts tranca at a terminal of 24 rows and 80 columns.
func atTerminal(t *testing.T, env []string, args ...string) *desk {
	t.Helper()
	d := &desk{t: t, came: make(chan struct{}, 1)}
	d.open()
	d.cmd = exec.Command("tranca", args...)
	d.cmd.Env = append(append(os.Environ(), "REAL=1", "TERM=xterm-256color"), env...)
	d.cmd.Stdin, d.cmd.Stdout, d.cmd.Stderr = d.slave, d.slave, d.slave
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go d.watch()
	return d
}

func (d *desk) open() {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err := errors.Join(err, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)); err != nil {
		d.t.Fatal(err)
	}
	slave, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { slave.Close() })
	d.master, d.slave = master, slave
	d.size(24, 80)
	d.before = d.modes()
}

func (d *desk) modes() unix.Termios {
	d.t.Helper()
	m, err := unix.IoctlGetTermios(int(d.slave.Fd()), unix.TCGETS)
	if err != nil {
		d.t.Fatal(err)
	}
	return *m
}

// size changes the terminal's size, of which the kernel tells the command.
func (d *desk) size(rows, columns uint16) {
	d.t.Helper()
	if err := unix.IoctlSetWinsize(int(d.slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns}); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) watch() {
	buf := make([]byte, 32<<10)
	for {
		n, err := d.master.Read(buf)
		d.mu.Lock()
		d.screen.Write(buf[:n])
		d.mu.Unlock()
		select {
		case d.came <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// see waits until something comes, after what was seen before.
func (d *desk) see(text string) {
	d.t.Helper()
	deadline := time.After(time.Minute)
	for {
		d.mu.Lock()
		rest := d.screen.Bytes()[d.read:]
		i := bytes.Index(rest, []byte(text))
		if i >= 0 {
			d.read += i + len(text)
		}
		all := string(rest)
		d.mu.Unlock()
		if i >= 0 {
			return
		}
		select {
		case <-d.came:
		case <-deadline:
			d.cmd.Process.Kill()
			d.t.Fatalf("%q did not come; there is %q", text, all)
		}
	}
}

// all is everything that came.
func (d *desk) all() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.screen.String()
}

func (d *desk) write(text string) {
	d.t.Helper()
	if _, err := d.master.WriteString(text); err != nil {
		d.t.Fatal(err)
	}
}

// ends waits for the command's end, and looks at its status and how it leaves
// the terminal.
func (d *desk) ends(status int) {
	d.t.Helper()
	timer := time.AfterFunc(time.Minute, func() { d.cmd.Process.Kill() })
	defer timer.Stop()
	_ = d.cmd.Wait()
	if got := d.cmd.ProcessState.ExitCode(); got != status {
		d.t.Errorf("status %d, want %d; on the screen: %q", got, status, d.all())
	}
	if after := d.modes(); after != d.before {
		d.t.Errorf("the terminal is left as %+v, it was %+v", after, d.before)
	}
}

// realServer is a server as it is shipped, in a process of its own.
type realServer struct {
	cmd    *exec.Cmd
	socket string
}

// serveReal starts a server. It needs a host on which the process backend holds
// all that it promises.
func serveReal(t *testing.T) *realServer {
	t.Helper()
	missing := "the process backend is not in this build"
	for _, p := range app.World().Probe(t.Context()) {
		if p.Backend == "process" {
			missing = lacks(p)
		}
	}
	require.Check(t, "process", missing == "", missing)
	folder, err := os.MkdirTemp("", "tranca") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	s := &realServer{socket: filepath.Join(folder, "s")}
	// As nohup and a script's background start it: what runs inside must hear
	// of signals all the same.
	s.cmd = exec.Command("sh", "-c", `trap "" HUP INT; exec tranca serve --socket "$0" --grace 1s`, s.socket)
	s.cmd.Env = append(os.Environ(), "REAL=1", "WORK="+folder)
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s.cmd.Stderr = &log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		_ = s.cmd.Wait()
		if t.Failed() {
			t.Logf("the server: %s", log.String())
		}
	})
	if line, err := readLine(out); err != nil || !strings.Contains(line, s.socket) {
		t.Fatalf("the server says %q, %v", line, err)
	}
	return s
}

func readLine(r interface{ Read([]byte) (int, error) }) (string, error) {
	var line []byte
	b := make([]byte, 1)
	for {
		if n, err := r.Read(b); n == 0 && err != nil {
			return string(line), err
		}
		if b[0] == '\n' {
			return string(line), nil
		}
		line = append(line, b[0])
	}
}

func (s *realServer) env() []string { return []string{"TRANCA_SERVER=" + s.socket} }

func (s *realServer) client(t *testing.T) *client.Client {
	t.Helper()
	c, err := client.New(client.WithSocket(s.socket))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// sandbox makes one that lives until the test ends.
func (s *realServer) sandbox(t *testing.T) *client.Sandbox {
	t.Helper()
	box, err := s.client(t).Create(t.Context(), tranca.CreateRequest{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = box.Close(context.Background()) })
	return box
}
