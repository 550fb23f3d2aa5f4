package cgroup

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tranca/internal/linux/supervisor"
	"tranca/internal/require"
)

// The test binary runs itself as the programs that live in groups: under
// helperEnv it is the one that is named there.
const helperEnv = "CGROUP_TEST_HELPER"

// pathsEnv names delegated folders for a run of the tests as another user.
const pathsEnv = "CGROUP_TEST_PATHS"

func TestMain(m *testing.M) {
	mode := os.Getenv(helperEnv)
	if mode == "" {
		if err := adopt(); err != nil {
			fmt.Fprintln(os.Stderr, "adopt:", err)
			os.Exit(1)
		}
		os.Exit(m.Run())
	}
	if program, ok := strings.CutPrefix(mode, "join:"); ok {
		joinAndExec(program)
	}
	program, ok := helpers[mode]
	if !ok {
		fmt.Fprintln(os.Stderr, "no helper", mode)
		os.Exit(1)
	}
	if err := program(); err != nil {
		fmt.Fprintln(os.Stderr, mode+":", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// helpers are the programs.
var helpers = map[string]func() error{
	"sleep":   helpSleep,
	"spin":    helpSpin,
	"hog":     helpHog,
	"forks":   helpForks,
	"bomb":    helpBomb,
	"thread":  helpThread,
	"start":   helpStart,
	"serve":   helpServe,
	"share":   helpShare,
	"reopen":  helpReopen,
	"support": helpSupport,
}

// joinAndExec writes "0" to the first inherited files, then becomes the
// program: so the whole process is in the groups from its start.
func joinAndExec(program string) {
	runtime.LockOSThread()
	if err := writeZero(descriptorsFrom("JOIN", 3)); err != nil {
		fmt.Fprintln(os.Stderr, "join:", err)
		os.Exit(1)
	}
	os.Setenv(helperEnv, program)
	fmt.Fprintln(os.Stderr, "exec:", syscall.Exec("/proc/self/exe", os.Args, os.Environ()))
	os.Exit(1)
}

// descriptorsFrom returns as many inherited files as the variable says.
func descriptorsFrom(variable string, first int) []*os.File {
	n, _ := strconv.Atoi(os.Getenv(variable))
	var files []*os.File
	for fd := first; fd < first+n; fd++ {
		files = append(files, os.NewFile(uintptr(fd), "inherited"))
	}
	return files
}

// inherited returns the files that the program was given.
func inherited() []*os.File {
	joined, _ := strconv.Atoi(os.Getenv("JOIN"))
	return descriptorsFrom("FILES", 3+joined)
}

func writeZero(files []*os.File) error {
	for _, f := range files {
		if _, err := f.WriteString("0"); err != nil {
			return err
		}
	}
	return nil
}

func helpSleep() error {
	fmt.Println("ready")
	stay()
	return nil
}

// stay waits until the process is killed, or its parent ends without that.
func stay() {
	for parent := os.Getppid(); os.Getppid() == parent; {
		time.Sleep(100 * time.Millisecond)
	}
}

func helpSpin() error {
	fmt.Println("ready")
	for end := time.Now().Add(patience); time.Now().Before(end); {
	}
	return nil
}

func helpHog() error {
	fmt.Println("ready")
	for {
		b, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err != nil {
			return err
		}
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
	}
}

// forkSleeper makes a process that only sleeps; in it nothing of the Go
// runtime may run.
//
//go:norace
//go:nosplit
func forkSleeper() syscall.Errno {
	pid, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		return errno
	}
	for {
		syscall.RawSyscall6(syscall.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
	}
}

// helpForks forks until it is refused, and goes on living.
func helpForks() error {
	for n := 0; ; n++ {
		if errno := forkSleeper(); errno != 0 {
			fmt.Println("ready", n, errno == unix.EAGAIN)
			stay()
			return nil
		}
	}
}

// forkForever is a fork bomb: each child does the same.
//
//go:norace
//go:nosplit
func forkForever() {
	for {
		syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	}
}

func helpBomb() error {
	fmt.Println("ready")
	runtime.LockOSThread()
	forkForever()
	return nil
}

// helpThread is an agent that is caught with one thread in the code's groups.
func helpThread() error {
	failed := make(chan error)
	go func() {
		runtime.LockOSThread()
		failed <- writeZero(inherited())
		select {}
	}()
	if err := <-failed; err != nil {
		return err
	}
	return helpSleep()
}

// helper makes the command of a helper that lives in a leaf and inherits
// files.
func helper(e Entry, mode string, files ...*os.File) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), helperEnv+"=join:"+mode,
		"JOIN="+strconv.Itoa(len(e.Tasks)), "FILES="+strconv.Itoa(len(files)))
	cmd.ExtraFiles = slices.Concat(e.Tasks, files)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if e.Dir != nil {
		cmd.SysProcAttr.UseCgroupFD = true
		cmd.SysProcAttr.CgroupFD = int(e.Dir.Fd())
	}
	return cmd
}

// process is a helper that runs.
type process struct {
	*exec.Cmd
	out *bufio.Reader
}

// start starts a helper in a leaf and waits for its first line. It is dead
// when the test ends.
func start(t testing.TB, e Entry, mode string) *process {
	t.Helper()
	p := startCmd(t, helper(e, mode))
	if line := p.line(t); !strings.HasPrefix(line, "ready") {
		t.Fatalf("helper %s said %q", mode, line)
	}
	return p
}

func startCmd(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	started.Store(cmd.Process.Pid, nil)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &process{cmd, bufio.NewReader(stdout)}
}

func (p *process) line(t testing.TB) string {
	t.Helper()
	s, err := p.out.ReadString('\n')
	if err != nil {
		t.Fatalf("helper: %v", err)
	}
	return strings.TrimSpace(s)
}

// alive reports whether the process runs and is no zombie.
func alive(t testing.TB, pid int) bool {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	return len(rest) > 0 && rest[0] != 'Z' && rest[0] != 'X'
}

// forTest fills in the supervisor and the delegated folders.
func (o Options) forTest(s *supervisor.Supervisor) Options {
	o.ID, o.Note, o.Bus = s.ID(), Note(s), "none"
	if paths := os.Getenv(pathsEnv); paths != "" {
		o.Paths = strings.Split(paths, ":")
	}
	return o
}

// newTree finds a tree for a test, and checks at its end that no folder of it
// is left.
func newTree(t testing.TB, o Options) *Tree {
	t.Helper()
	s, err := supervisor.Open(filepath.Join(t.TempDir(), "run"))
	if err != nil {
		t.Fatal(err)
	}
	tree, err := Find(o.forTest(s))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
		if left := folders(t, s.ID()); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		s.Close()
	})
	return tree
}

// needTree finds a tree that holds everything.
func needTree(t testing.TB, o Options) *Tree {
	t.Helper()
	tree := newTree(t, o)
	s := tree.Support()
	for _, f := range []Feature{s.Memory, s.PIDs, s.CPU, s.CPUTime, s.Kill} {
		require.Check(t, "cgroup", f.Held, f.Missing+" (mend: "+f.Mend+")")
	}
	return tree
}

// folders lists the group folders of a supervisor, in all hierarchies.
func folders(t testing.TB, id string) []string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	mounts, err := parseMounts(string(text))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, m := range mounts {
		err := filepath.WalkDir(m.point, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() && strings.Contains(path, "tranca-"+id) {
				found = append(found, path)
			}
			return nil // others' groups come and go meanwhile
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(found)
	return found
}

var defaultLimits = Limits{
	Memory: 64 << 20, Processes: 40, MilliCPUs: 1000,
	AgentMemory: 64 << 20, AgentProcesses: 64,
}

func create(t testing.TB, tree *Tree, name string, l Limits) *Group {
	t.Helper()
	g, err := tree.Create(name, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Destroy(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return g
}

// bothKinds runs a test with what Find prefers, and with the v2 tree of a
// hybrid host beside v1. On other hosts the two are the same.
func bothKinds(t *testing.T, test func(t *testing.T, tree *Tree)) {
	t.Helper()
	for name, o := range map[string]Options{"as found": {}, "with v2": {V2: true}} {
		t.Run(name, func(t *testing.T) { test(t, needTree(t, o)) })
	}
}

func stats(t testing.TB, g *Group) Stats {
	t.Helper()
	s, err := g.Stats()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// patience is long enough for an emulated host.
const patience = 2 * time.Minute

// eventually waits for something that the kernel does in its own time.
func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in %v: %s", patience, what)
		}
	}
}
