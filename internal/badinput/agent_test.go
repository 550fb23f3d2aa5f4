package badinput

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// agents lists the guest agents below a process: its children, of which each
// is the first process of a sandbox.
func agents(t testing.TB, pid int) []int {
	t.Helper()
	names, children := processTable()
	var all []int
	for _, child := range children[pid] {
		if !strings.Contains(names[child], ") Z") {
			all = append(all, child)
		}
	}
	if len(all) == 0 {
		t.Fatal("there is no guest agent")
	}
	return all
}

func stopAgents(t testing.TB, c *command) {
	t.Helper()
	for _, pid := range agents(t, c.pid()) {
		if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
}
