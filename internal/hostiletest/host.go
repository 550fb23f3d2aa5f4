package hostiletest

import (
	"bufio"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tranca"
)

// Limits are those of the tests, where a row has no others: CPU time as well as
// wall clock is longest.
func Limits(longest time.Duration) tranca.Limits {
	return tranca.Limits{
		Wall: longest, CPUTime: longest, MilliCPUs: 1000,
		Memory: 256 << 20, Processes: 64, OpenFiles: 256, FileSize: 64 << 20,
		Disk:   tranca.Disk{Size: 64 << 20, Inodes: 16384, Backing: tranca.BackingMemory},
		Output: tranca.Output{Size: 1 << 20, OnExceed: tranca.ExceedTruncate},
	}
}

// Lacking are the items that can be waived and that this host can't enforce for
// this user. Tests waive them, by name: what is waived is not what they are about.
func Lacking(r *tranca.Report) []tranca.Item {
	var all []tranca.Item
	for _, item := range tranca.Waivable() {
		if !r.Holds(item) {
			all = append(all, item)
		}
	}
	return all
}

// Close closes a backend or a sandbox, within a minute.
func Close(t testing.TB, what string, c interface{ Close(context.Context) error }) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := c.Close(ctx); err != nil {
		t.Errorf("close %s: %v", what, err)
	}
}

// OpenFolder makes a host folder that everybody may enter, other than one of
// the testing package. It is removed with the test.
func OpenFolder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "hostile-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Eventually waits until something is so, for half a minute at most.
func Eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it never came true that %s", what)
		}
	}
}

// Marked are the living processes of the host that have a mark in their
// arguments.
func Marked(t testing.TB, mark string) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, f := range files {
		args, err := os.ReadFile(f)
		if err != nil || !strings.Contains(string(args), mark) {
			continue // a process that has ended has none
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Status is the first word of a field of a process's status, as the host sees it.
func Status(t testing.TB, pid int, name string) string {
	t.Helper()
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == name+":" {
			return f[1]
		}
	}
	t.Fatalf("process %d has no %s", pid, name)
	return ""
}

// StartSupervisor starts one test of this test binary anew, as the supervisor
// that the environment makes of it, and reads what it says until a line that
// begins so. Kill and wait for it; else the end of the test does.
func StartSupervisor(t testing.TB, test, until string, env ...string) (cmd *exec.Cmd, said []string) {
	t.Helper()
	cmd = exec.Command("/proc/self/exe", "-test.run=^"+test+"$")
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for in := bufio.NewScanner(out); in.Scan(); {
		said = append(said, in.Text())
		if strings.HasPrefix(in.Text(), until) {
			return cmd, said
		}
	}
	t.Fatalf("the supervisor has ended: %q", said)
	return nil, nil
}

// Listener counts what comes to sockets of the host, until the test ends.
type Listener struct{ hits atomic.Int32 }

// Hit reports whether anything has come.
func (l *Listener) Hit() bool { return l.hits.Load() > 0 }

// Serve counts connections. A socket that has a path is everybody's to use.
func (l *Listener) Serve(t testing.TB, network, address string) net.Addr {
	t.Helper()
	ln, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	if network == "unix" && address[0] == '/' {
		if err := os.Chmod(address, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			l.hits.Add(1)
			c.Close()
		}
	}()
	return ln.Addr()
}

// Port counts connections by TCP and returns the port.
func (l *Listener) Port(t testing.TB, network, address string) int {
	t.Helper()
	return l.Serve(t, network, address).(*net.TCPAddr).Port
}

// Packets counts packets by UDP and returns the port.
func (l *Listener) Packets(t testing.TB, network, address string) int {
	t.Helper()
	c, err := net.ListenPacket(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	go func() {
		buf := make([]byte, 1500)
		for {
			if _, _, err := c.ReadFrom(buf); err != nil {
				return
			}
			l.hits.Add(1)
		}
	}()
	return c.LocalAddr().(*net.UDPAddr).Port
}
