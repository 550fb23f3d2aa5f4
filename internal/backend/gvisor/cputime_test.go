package gvisor

import (
	"bytes"
	"context"
	"testing"
	"time"

	"tranca"
	"tranca/internal/require"
)

// TestCPUTimeIsOfTheRun: in the group that counts CPU time is a kernel that has
// booted and served files before any program runs. Here that alone has used more
// than the limit, and the first program has the whole of it all the same. What
// the result says is used agrees with the limit.
func TestCPUTimeIsOfTheRun(t *testing.T) {
	b := newBackend(t)
	require.Check(t, "cgroup", b.report.Holds(tranca.ItemCPUTime), b.report.Find(tranca.ItemCPUTime).Missing)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	const limit = 500 * time.Millisecond
	p := testPolicy(b)
	p.Limits.CPUTime = limit
	m, sb := booted(ctx, t, b, p)
	run := func(program string) (tranca.Exit, time.Duration) {
		proc, err := sb.Start(ctx, tranca.Command{Args: []string{"/bin/sh", "-c", program}})
		if err != nil {
			t.Fatal(err)
		}
		exit, err := proc.Wait(ctx)
		if err != nil {
			t.Fatal(err)
		}
		u, err := sb.Usage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return exit, u.CPU
	}
	for i := range 2 {
		used := putFiles(ctx, t, sb, m, limit+limit/2)
		exit, cpu := run("exit 0")
		if exit != (tranca.Exit{Reason: tranca.EndExited}) || cpu >= limit/2 {
			t.Errorf("run %d ended with %s and is said to have used %s; %s were used before it", i, exit, cpu, used)
		}
		exit, cpu = run("while :; do :; done")
		if exit.Reason != tranca.EndCPU || cpu < limit || cpu > 2*limit {
			t.Errorf("the loop of run %d ended with %s after %s, under a limit of %s", i, exit, cpu, limit)
		}
	}
}

// putFiles writes into a sandbox until its group has used so much CPU time, and
// returns how much it has.
func putFiles(ctx context.Context, t *testing.T, sb tranca.Sandbox, m *box, enough time.Duration) time.Duration {
	t.Helper()
	began, err := m.Group.Stats()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := sb.Files().Write(ctx, "/work/file", bytes.NewReader(make([]byte, 4<<20)), 0o644); err != nil {
			t.Fatal(err)
		}
		s, err := m.Group.Stats()
		if err != nil {
			t.Fatal(err)
		}
		if used := s.CPUTime - began.CPUTime; used >= enough {
			return used
		}
	}
}
