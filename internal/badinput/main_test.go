package badinput

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/app"
	"tranca/internal/cli"
	"tranca/internal/policy"
	"tranca/internal/require"
	"tranca/local"
)

// roleVariable makes the test binary be something else: the command, or a
// control of a test.
const roleVariable = "BADINPUT_ROLE"

// scratch is a folder of this run, in which every file that tranca makes for
// an ordinary user lies.
var scratch string

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "tranca":
		os.Exit(cli.Main(context.Background(), app.World(), os.Args))
	case "clock":
		os.Exit(clockControl())
	case "":
		if os.Geteuid() == 0 {
			os.Exit(inOwnMounts())
		}
	}
	os.Exit(run(m))
}

// inOwnMounts runs the tests in a mount namespace with a /run of its own: root's
// runtime folder can't be chosen, and what is left in it must be ours, and not
// be swept by others before it was seen.
func inOwnMounts() int {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), roleVariable+"=tests")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // Pdeathsig is told of this thread's end
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return cmd.ProcessState.ExitCode()
}

func run(m *testing.M) int {
	if err := prepareHost(); err != nil {
		fmt.Fprintln(os.Stderr, "badinput:", err)
		return 1
	}
	defer os.RemoveAll(scratch)
	status := m.Run()
	// What a test that failed has left can be swept by nobody, once the locks
	// are gone.
	app.World().Probe(context.Background())
	return status
}

func prepareHost() (err error) {
	// What a killed tranca leaves becomes a child of this process, and is told
	// by that from what others on the host do.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	if scratch, err = os.MkdirTemp("", "badinput"); err != nil {
		return err
	}
	// The subprocess backend's code runs as nobody, and must get through.
	if err := os.Chmod(scratch, 0o711); err != nil {
		return err
	}
	for name, mode := range map[string]os.FileMode{"home": 0o700, "run": 0o711, "tmp": 0o711} {
		if err := os.Mkdir(filepath.Join(scratch, name), mode); err != nil {
			return err
		}
	}
	if err := os.Mkdir(filepath.Join(scratch, "run", "tranca"), 0o700); err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		if err := unix.Mount(filepath.Join(scratch, "run"), "/run", "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	for _, v := range environment() {
		name, value, _ := strings.Cut(v, "=")
		os.Setenv(name, value)
	}
	return watchSupervisors(filepath.Join(scratch, "run", "tranca"))
}

// environment is what both the tests and the commands that they start have in
// place of the user's own.
func environment() []string {
	env := []string{
		"HOME=" + filepath.Join(scratch, "home"),
		"XDG_CONFIG_HOME=" + filepath.Join(scratch, "home"),
		"XDG_RUNTIME_DIR=" + filepath.Join(scratch, "run"),
	}
	if groups := os.Getenv("TRANCA_TEST_CGROUP"); groups != "" {
		env = append(env, "TRANCA_CGROUP="+groups)
	}
	return env
}

// lacking lists what this host can't enforce for this user. It asks for the
// process backend, and skips the test where that can't run at all.
func lacking(t testing.TB) []tranca.Item {
	t.Helper()
	items, why := probed()
	require.Check(t, "process", why == "", why)
	return items
}

var probed = sync.OnceValues(func() (items []tranca.Item, why string) {
	why = "it is not in this build"
	for _, p := range app.World().Probe(context.Background()) {
		if p.Backend != "process" {
			continue
		}
		if p.Err != nil {
			return nil, p.Err.Error()
		}
		why = ""
		asked := policy.Default()
		asked.Floor = tranca.LevelProcess
		for _, problem := range policy.Check(asked, p.Report) {
			items = append(items, problem.Item)
			if !problem.Waivable {
				why = string(problem.Item) + ": " + problem.Missing
			}
		}
	}
	return items, why
})

// has reports whether this host enforces an item for this user.
func has(t testing.TB, item tranca.Item) bool {
	t.Helper()
	for _, l := range lacking(t) {
		if l == item {
			return false
		}
	}
	return true
}

// open makes a Local on the process backend, with what this host lacks waived,
// and closes it with the test.
func open(t *testing.T, change func(*tranca.Policy), opts ...local.Option) *local.Local {
	t.Helper()
	l, err := tryOpen(t, change, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func tryOpen(t *testing.T, change func(*tranca.Policy), opts ...local.Option) (*local.Local, error) {
	t.Helper()
	p := local.DefaultPolicy()
	p.Floor, p.Backend = tranca.LevelProcess, "process"
	p.Waive = lacking(t)
	if change != nil {
		change(&p)
	}
	l, err := local.New(append([]local.Option{local.WithPolicy(p)}, opts...)...)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l, nil
}

// waivers are the flags by which the process backend is used, with what this
// host lacks waived.
func waivers(t testing.TB) []string {
	t.Helper()
	flags := []string{"--isolation", "process"}
	for _, item := range lacking(t) {
		flags = append(flags, "--waive", string(item))
	}
	return flags
}
