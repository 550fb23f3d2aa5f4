package gvisor

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"tranca"
	"tranca/internal/guest/host"
	"tranca/internal/hostiletest"
	"tranca/internal/linux/cgroup"
	"tranca/internal/require"
)

// measured is what a program made a sandbox use on the host, beside what the
// program itself holds.
type measured struct {
	memory, tasks int64
}

// holding is a program that holds memory and processes, says when it does, and
// waits.
const holding = `
import os, sys, time
held = bytearray(%d)
for i in range(0, len(held), 4096): held[i] = 1
for _ in range(%d): os.posix_spawn('/bin/sleep', ['sleep', '600'], {})
time.sleep(1)
print('holds', flush=True)
time.sleep(600)
`

// measure boots a sandbox, has it hold something, and reads the host's counters.
func measure(t *testing.T, b *Backend, memory, processes int) measured {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	p := *trialPolicy()
	p.Limits.Memory, p.Limits.Processes = 1<<30, 200
	spec := tranca.Spec{ID: tranca.NewID(), Policy: p}
	m, err := b.boot(ctx, &spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	sb, err := host.New(m, spec)
	if err != nil {
		t.Fatal(err)
	}
	defer sb.Close(ctx)
	if memory > 0 || processes > 0 {
		ready := &hostiletest.Live{}
		_, err := sb.Start(ctx, tranca.Command{
			Args:   []string{"/usr/bin/python3", "-I", "-c", fmt.Sprintf(holding, memory, processes)},
			Stdout: ready, Stderr: ready,
		})
		if err != nil {
			t.Fatal(err)
		}
		hostiletest.Eventually(t, "it holds what it was told to", func() bool { return strings.Contains(ready.String(), "\n") })
	}
	var s cgroup.Stats
	if s, err = m.Group.Stats(); err != nil {
		t.Fatal(err)
	}
	return measured{s.Memory - int64(memory), s.Processes}
}

// TestOverhead measures what limits_linux.go adds for the Sentry: the figures
// there are no less than what is found here, and not far more.
func TestOverhead(t *testing.T) {
	b, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close(context.Background())
	require.Check(t, "cgroup", b.report.Holds(tranca.ItemMemory), "no memory to count")
	idle := measure(t, b, 0, 0)
	large := measure(t, b, 400<<20, 0)
	many := measure(t, b, 0, 100)
	t.Logf("idle: %d KiB, %d tasks", idle.memory>>10, idle.tasks)
	t.Logf("400 MiB: %d KiB beside it, %d tasks", large.memory>>10, large.tasks)
	t.Logf("100 processes: %d KiB, %d tasks", many.memory>>10, many.tasks)
	if idle.memory > sentryMemory/2 || idle.memory < sentryMemory/32 {
		t.Errorf("an idle sandbox uses %d bytes, and %d are added", idle.memory, sentryMemory)
	}
	// The interpreter's own memory is in it.
	if most := int64(sentryMemory + 400<<20/sentryShare); large.memory > most {
		t.Errorf("%d bytes are used beside 400 MiB, and %d are added", large.memory, most)
	}
	if idle.tasks > sentryTasks || many.tasks > sentryTasks+100*tasksEach || many.tasks < 100 {
		t.Errorf("%d tasks without and %d with 100 processes; bounded are %d and %d for each",
			idle.tasks, many.tasks, sentryTasks, tasksEach)
	}
}
