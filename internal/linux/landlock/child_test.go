package landlock

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// The test binary is its own child: with childEnv set it makes the ruleset that
// is named there, restricts one thread by it and runs a probe on that thread.
const childEnv = "TRANCA_LANDLOCK_CHILD"

// The rulesets that a child can be put under. All name the same folders.
const (
	free       = "none"
	restricted = "restricted"
	networked  = "network" // restricted, with the network handled
	terminal   = "terminal"
)

func TestMain(m *testing.M) {
	if set := os.Getenv(childEnv); set != "" {
		errno, err := child(set, os.Args[1], os.Args[2])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(100)
		}
		fmt.Println(int(errno))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child restricts this thread to the folders under dir and runs a probe there.
func child(set, probe, dir string) (unix.Errno, error) {
	run, ok := probes[probe]
	if !ok {
		return 0, fmt.Errorf("no probe %q", probe)
	}
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 0, err
	}
	if set != free {
		if err := restrict(set, dir); err != nil {
			return 0, err
		}
	}
	return run.act(dir), nil
}

func restrict(set, dir string) error {
	device := Device
	if set == terminal {
		device = Terminal
	}
	rw, err := os.Open(filepath.Join(dir, "rw"))
	if err != nil {
		return err
	}
	defer rw.Close()
	ruleset, err := NewRuleset(Config{
		HandleNetwork: set == networked,
		Rules: []Rule{
			{Path: filepath.Join(dir, "ro"), Access: ReadExec},
			{File: rw, Access: ReadWrite},
			{Path: filepath.Join(dir, "rw2"), Access: ReadWrite},
			{Path: "/dev/zero", Access: device},
		},
	})
	if err != nil {
		return err
	}
	return Restrict(int(ruleset.Fd()))
}

// layout makes what the probes work on: the same file in each folder.
func layout(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"ro", "rw", "rw2", "hidden"} {
		path := filepath.Join(dir, folder)
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, "file"), []byte("text"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// probeErrno runs a probe in a child and returns the errno that it met.
func probeErrno(t *testing.T, set, name, dir string) unix.Errno {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", name, dir)
	// The race detector would hold up the end of each child by a second.
	cmd.Env = append(os.Environ(), childEnv+"="+set, "GORACE=atexit_sleep_ms=0")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("probe %q under %s: %v\n%s", name, set, err, errs.Bytes())
	}
	n, err := strconv.Atoi(string(bytes.TrimSpace(out)))
	if err != nil {
		t.Fatalf("probe %q printed %q", name, out)
	}
	return unix.Errno(n)
}

// errnoOf returns the errno in an error; EDOM if there is another error.
func errnoOf(err error) unix.Errno {
	var errno unix.Errno
	if err != nil && !errors.As(err, &errno) {
		return unix.EDOM
	}
	return errno
}
