package attempt

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"tranca/internal/require"
)

func TestActsOfTheInterpreter(t *testing.T) {
	do := doers()
	for _, a := range Acts() {
		if do[a.Do] == nil {
			t.Errorf("the interpreter has no %s", a.Do)
		}
		delete(do, a.Do)
	}
	for name := range do {
		t.Errorf("unknown to Check: %s", name)
	}
}

// TestErrorNames: both interpreters call each error alike.
func TestErrorNames(t *testing.T) {
	python := require.Program(t, "python3")
	body, _, ok := strings.Cut(twin, "\nmain()\n")
	if !ok {
		t.Fatal("attempt.py doesn't end with main()")
	}
	cmd := exec.Command(python, "-I", "-")
	cmd.Stdin = strings.NewReader(body + "\nfor n in range(1, 134): print(errno_name(n))\n" +
		"for n in range(1, 65): print(signal_name(n))\n")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(names) != 133+64 {
		t.Fatalf("%d names", len(names))
	}
	for n := 1; n < 134; n++ {
		if got := errnoName(syscall.Errno(n)); got != names[n-1] {
			t.Errorf("error %d is %s here and %s in Python", n, got, names[n-1])
		}
	}
	for n := 1; n < 32; n++ {
		if got := signalName(syscall.Signal(n)); got != names[132+n] {
			t.Errorf("signal %d is %s here and %s in Python", n, got, names[132+n])
		}
	}
}

func TestCalls(t *testing.T) {
	steps := []Step{{Do: "syscall", Call: "getpid"}, {Do: "spawn", Steps: []Step{{Do: "syscall", Call: "modify_ldt"}}}}
	calls, err := Calls(steps)
	if err != nil || len(calls) != 2 || calls["getpid"] != syscall.SYS_GETPID {
		t.Errorf("%v, %v", calls, err)
	}
	if _, err := Calls([]Step{{Do: "syscall", Call: "no_such_call"}}); err == nil || !strings.Contains(err.Error(), "no_such_call") {
		t.Errorf("an unknown call: %v", err)
	}
	if calls, err := Calls([]Step{{Do: "ignore"}}); calls != nil || err != nil {
		t.Errorf("none named: %v, %v", calls, err)
	}
	seen := map[string]bool{}
	for _, c := range append(everywhere(), amd64Only()...) {
		if seen[c.name] {
			t.Errorf("%s stands there twice", c.name)
		}
		seen[c.name] = true
	}
}
