package attempt_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tranca/hostile/attempt"
	"tranca/internal/require"
)

// testMark begins the argument with which the test binary is the interpreter
// in Go.
const testMark = "probe-twin-"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && strings.HasPrefix(os.Args[1], testMark) {
		p, err := attempt.Read(os.Stdin)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		os.Exit(attempt.Run(p, os.Stdout))
	}
	os.Exit(m.Run())
}

// interpreter is one of the two, as some user.
type interpreter struct {
	name string
	uid  int
	// clone are namespaces that it gets.
	clone uintptr
	// change changes the script in Python.
	change func(string) string
}

// both returns the two interpreters for each user that this run can be.
func both() []interpreter {
	own := os.Getuid()
	all := []interpreter{{name: "go", uid: own}, {name: "python", uid: own}}
	if own == 0 {
		all = append(all, interpreter{name: "go", uid: 65534}, interpreter{name: "python", uid: 65534})
	}
	return all
}

func (i interpreter) String() string { return fmt.Sprintf("%s as %d", i.name, i.uid) }

// command returns the interpreter about to run the program in the folder.
func (i interpreter) command(t *testing.T, folder string, p attempt.Program) *exec.Cmd {
	t.Helper()
	var cmd *exec.Cmd
	if i.name == "go" {
		exe := filepath.Join(folder, ".probe")
		copyFile(t, "/proc/self/exe", exe)
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		cmd = exec.Command(exe, p.Mark)
		cmd.Stdin = bytes.NewReader(text)
	} else {
		script, err := attempt.Python(p)
		if err != nil {
			t.Fatal(err)
		}
		if i.change != nil {
			script = i.change(script)
		}
		cmd = exec.Command("/usr/bin/python3", "-I", "-")
		cmd.Stdin = strings.NewReader(script)
	}
	cmd.Dir = folder
	cmd.Env = []string{"PATH=/usr/bin:/bin", "TRANCA_TWIN=told"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: i.clone, Setpgid: true}
	if i.uid != os.Getuid() {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(i.uid), Gid: uint32(i.uid)}
	}
	cmd.WaitDelay = 20 * time.Second
	return cmd
}

// place returns a folder that the interpreter's user owns.
func (i interpreter) place(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "twin-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	if i.uid != os.Getuid() {
		if err := os.Chown(folder, i.uid, i.uid); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	// Another test's child would hold the file open for writing until it runs its
	// own program, and so long this one can't be run.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(to, data, 0o755); err != nil {
		t.Fatal(err)
	}
}

// program reads steps, with the folder in place of {dir}.
func program(t *testing.T, text, folder string) attempt.Program {
	t.Helper()
	text = strings.ReplaceAll(text, "{dir}", folder)
	p, err := attempt.Read(strings.NewReader(`{"steps":[` + text + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	if p.Calls, err = attempt.Calls(p.Steps); err != nil {
		t.Fatal(err)
	}
	p.Mark = testMark + filepath.Base(folder)
	return p
}

// lines returns what was told, with the folder as {dir}.
func lines(t *testing.T, out, folder string) []attempt.Line {
	t.Helper()
	var all []attempt.Line
	for _, text := range strings.Split(out, "\n") {
		text, ok := strings.CutPrefix(text, attempt.Prefix)
		if !ok {
			continue
		}
		var l attempt.Line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		l.Value = strings.ReplaceAll(l.Value, folder, "{dir}")
		all = append(all, l)
	}
	return all
}

// short writes a line as the table has it.
func short(l attempt.Line) string {
	outcome := "ok"
	if !l.OK {
		outcome = l.Errno
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s %s %s", l.Step, l.As, outcome, l.Value))
}

// TestTwins runs each act bare, in both interpreters, as root and not. An
// outcome that begins with root: or user: counts for that one; "?" stands for
// a value that may be anything, and "=" for an outcome that only has to be the
// same in both.
func TestTwins(t *testing.T) {
	require.Program(t, "python3")
	servers := listen(t)
	for _, c := range twins() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			first := map[int][]string{}
			for _, i := range both() {
				if i.uid == 0 {
					i.clone = c.clone
				}
				folder := i.place(t)
				cmd := i.command(t, folder, program(t, servers.Replace(c.steps), folder))
				var out, errs bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, &errs
				err := cmd.Run()
				if cmd.Process != nil {
					_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) // what it left in its group
				}
				if err != nil {
					t.Errorf("%v: %v\n%s%s", i, err, out.String(), errs.String())
					continue
				}
				if c.errs != errs.String() {
					t.Errorf("%v: on standard error %q, want %q", i, errs.String(), c.errs)
				}
				got := lines(t, out.String(), folder)
				compare(t, i, c.want, got, first)
				if c.clean != nil {
					c.clean(t)
				}
			}
		})
	}
}

// compare holds lines against the table, and what may be anything against the
// other interpreter.
func compare(t *testing.T, i interpreter, want []string, got []attempt.Line, first map[int][]string) {
	t.Helper()
	var mine []string
	who := map[bool]string{true: "root:", false: "user:"}[i.uid == 0]
	for _, w := range want {
		if rest, ok := strings.CutPrefix(w, who); ok {
			mine = append(mine, rest)
		} else if !strings.HasPrefix(w, "root:") && !strings.HasPrefix(w, "user:") {
			mine = append(mine, w)
		}
	}
	mine = append(mine, "-1  ok")
	if len(got) != len(mine) {
		t.Errorf("%v: %d lines, want %d:\n%v", i, len(got), len(mine), got)
		return
	}
	var all []string
	for n, l := range got {
		s := short(l)
		w := mine[n]
		start, any := strings.CutSuffix(w, "?")
		_, same := strings.CutSuffix(w, "=")
		all = append(all, s)
		switch {
		case any && !strings.HasPrefix(s, start):
			t.Errorf("%v: line %d is %q, want %q", i, n, s, w)
		case same && first[i.uid] != nil && first[i.uid][n] != s:
			t.Errorf("%v: line %d is %q, in the other %q", i, n, s, first[i.uid][n])
		case !any && !same && s != w:
			t.Errorf("%v: line %d is %q, want %q", i, n, s, w)
		}
	}
	if first[i.uid] == nil {
		first[i.uid] = all
	}
}

// listen starts what the acts of the network connect to. Each answers with
// "hello" and what came.
func listen(t *testing.T) *strings.Replacer {
	t.Helper()
	folder, err := os.MkdirTemp("", "twin-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	pairs := []string{}
	for _, l := range [][2]string{
		{"tcp", "127.0.0.1:0"}, {"tcp", "[::1]:0"}, {"unix", folder + "/s"}, {"unix", "@" + filepath.Base(folder)},
	} {
		listener, err := net.Listen(l[0], l[1])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { listener.Close() })
		go serve(listener)
		pairs = append(pairs, fmt.Sprintf("{listener%d}", len(pairs)/2), listener.Addr().String())
	}
	if err := os.Chmod(folder+"/s", 0o777); err != nil {
		t.Fatal(err)
	}
	for n, l := range [][2]string{{"udp", "127.0.0.1:0"}, {"unixgram", folder + "/g"}} {
		packets, err := net.ListenPacket(l[0], l[1])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { packets.Close() })
		go servePackets(packets)
		pairs = append(pairs, fmt.Sprintf("{packets%d}", n), packets.LocalAddr().String())
	}
	for n, network := range []string{"tcp", "udp"} {
		pairs = append(pairs, fmt.Sprintf("{free%d}", n), free(t, network))
	}
	if err := os.Chmod(folder+"/g", 0o777); err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(pairs...)
}

// free returns an address on loopback that nobody has.
func free(t *testing.T, network string) string {
	t.Helper()
	if network == "tcp" {
		l, err := net.Listen(network, "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return l.Addr().String()
	}
	p, err := net.ListenPacket(network, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	return p.LocalAddr().String()
}

func serve(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			buf := make([]byte, 1024)
			n, _ := c.Read(buf)
			_, _ = c.Write(append([]byte("hello "), buf[:n]...))
		}()
	}
}

func servePackets(p net.PacketConn) {
	buf := make([]byte, 1024)
	for {
		n, from, err := p.ReadFrom(buf)
		if err != nil {
			return
		}
		if from != nil && from.Network() == "udp" {
			_, _ = p.WriteTo(append([]byte("hello "), buf[:n]...), from)
		}
	}
}

// TestTwinsDoAllActs: the table above leaves none out.
func TestTwinsDoAllActs(t *testing.T) {
	var done []string
	for _, c := range twins() {
		for _, s := range program(t, c.steps, "/x").Steps {
			done = append(done, s.Do)
			for _, inner := range s.Steps {
				done = append(done, inner.Do)
			}
		}
	}
	// What ends a program has tests of its own.
	done = append(done, "exit")
	for _, a := range attempt.Acts() {
		if !slices.Contains(done, a.Do) {
			t.Errorf("no case does %s", a.Do)
		}
	}
}

// removeSegment removes the System V segment that a case leaves.
func removeSegment(t *testing.T) {
	t.Helper()
	id, err := unix.SysvShmGet(0x7472616e, 0, 0)
	if err != nil {
		t.Error(err)
		return
	}
	if _, err := unix.SysvShmCtl(id, unix.IPC_RMID, nil); err != nil {
		t.Error(err)
	}
}
