package seccomp

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The test binary is its own child: with childEnv set, it puts the filter that
// is named there on one thread and then does what its arguments say.
const childEnv = "TRANCA_SECCOMP_CHILD"

// The filters that a child can be put under.
const (
	unfiltered = "none"
	strict     = "strict"
	open       = "open"
)

func TestMain(m *testing.M) {
	if filter := os.Getenv(childEnv); filter != "" {
		if err := child(filter, os.Args[1], os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(100)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child runs a probe and prints its errno, or executes a program.
func child(filter, mode string, args []string) error {
	runtime.LockOSThread()
	if err := putFilter(filter); err != nil {
		return err
	}
	switch mode {
	case "probe":
		fmt.Println(int(runProbe(args[0])))
		return nil
	case "exec":
		os.Unsetenv(childEnv)
		return syscall.Exec(args[0], args, os.Environ())
	}
	return fmt.Errorf("no mode %q", mode)
}

func putFilter(filter string) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if filter == unfiltered {
		return nil
	}
	compiled, err := Compile(Profile{UnixSockets: filter == open})
	if err != nil {
		return err
	}
	prog, err := FromBytes(compiled.Bytes()) // as the agent gets it
	if err != nil {
		return err
	}
	return Install(prog)
}

// childCommand is a child that has not been started.
func childCommand(t testing.TB, filter, mode string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", append([]string{mode}, args...)...)
	// The race detector would hold up the end of each child by a second.
	cmd.Env = append(os.Environ(), childEnv+"="+filter, "GORACE=atexit_sleep_ms=0")
	return cmd
}

// probeErrno runs a probe in a child and returns the errno that it met.
func probeErrno(t *testing.T, filter, name string) unix.Errno {
	t.Helper()
	cmd := childCommand(t, filter, "probe", name)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("probe %q under filter %s: %v\n%s", name, filter, err, errs.Bytes())
	}
	n, err := strconv.Atoi(string(bytes.TrimSpace(out)))
	if err != nil {
		t.Fatalf("probe %q printed %q", name, out)
	}
	return unix.Errno(n)
}

// nativeNumber returns a call's number here, or false.
func nativeNumber(name string) (uintptr, bool) {
	for _, g := range groups() {
		for _, c := range g.calls {
			if n := c.number(Arch(runtime.GOARCH)); c.name == name && n != none {
				return uintptr(n), true
			}
		}
	}
	return 0, false
}
