package process

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tranca/internal/hostiletest"
)

// children returns the processes below a process, as the host sees them.
func children(t testing.TB, pid int) []string {
	t.Helper()
	parent := map[string]string{}
	for _, p := range processes(t) {
		stat, err := os.ReadFile("/proc/" + p + "/stat")
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		if f := strings.Fields(rest); len(f) > 1 {
			parent[p] = f[1]
		}
	}
	var below []string
	for p := range parent {
		for up := parent[p]; up != ""; up = parent[up] {
			if up == strconv.Itoa(pid) {
				below = append(below, p)
				break
			}
		}
	}
	return below
}

func processes(t testing.TB) []string {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range dirs {
		dirs[i] = filepath.Base(d)
	}
	return dirs
}

// marked returns the living processes of the host that have the mark in their
// arguments, other than this one.
func (s *scene) marked() []int {
	s.Helper()
	return hostiletest.Marked(s, s.mark)
}
