package cgroup

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// started are the children that somebody waits for by an exec.Cmd.
var started sync.Map

// adopt makes this process the parent of its orphaned descendants: zombies
// count as processes, and what runs as the first process of a container may
// never reap.
func adopt() error {
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}

// waitReaped reaps adopted zombies until no process of the code is counted.
func waitReaped(t testing.TB, g *Group) {
	t.Helper()
	eventually(t, "no process is counted", func() bool {
		reap(t)
		return stats(t, g).Processes == 0
	})
}

func reap(t testing.TB) {
	t.Helper()
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // the thread is gone
		}
		for _, field := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			if _, ours := started.Load(pid); !ours {
				_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
			}
		}
	}
}
