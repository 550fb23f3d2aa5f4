package place

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// childEnv has the test binary be the first process of a place.
const childEnv = "PLACE_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) == "" {
		os.Exit(m.Run())
	}
	if err := printAmbient(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// printAmbient prints the ambient sets of threads before and after dropAmbient.
func printAmbient() error {
	const threads = 8
	sets := make(chan string)
	again := make(chan struct{})
	for range threads {
		go func() {
			runtime.LockOSThread() // not given back: all of them live at once
			sets <- ambient()
			<-again
			sets <- ambient()
		}()
	}
	var before, after []string
	for range threads {
		before = append(before, <-sets)
	}
	if err := dropAmbient(); err != nil {
		return err
	}
	close(again)
	for range threads {
		after = append(after, <-sets)
	}
	fmt.Println(slices.Compact(before), slices.Compact(after))
	return nil
}

func ambient() string {
	status, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		return err.Error()
	}
	_, rest, _ := strings.Cut(string(status), "CapAmb:")
	set, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(set)
}

// A control must not have what the place needs for itself, or it shows what
// nobody can do on the host: the kernel keeps that set for each thread, and a
// program may be started from any.
func TestProgramsHaveNoCapabilityOfThePlace(t *testing.T) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), childEnv+"=1")
	cmd.SysProcAttr = namespaces()
	if cmd.SysProcAttr.Cloneflags&unix.CLONE_NEWUSER == 0 {
		cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN} // root's are of another kind
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v %s", explain(err), out.String())
	}
	var before, after string
	if n, err := fmt.Sscanf(out.String(), "[%16s] [%16s]", &before, &after); n != 2 {
		t.Fatalf("%q: %v", out.String(), err)
	}
	if none := strings.Repeat("0", 16); before == none || after != none {
		t.Errorf("ambient before %s, after %s", before, after)
	}
}
