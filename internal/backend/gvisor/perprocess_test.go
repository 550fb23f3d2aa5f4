package gvisor

import (
	"bytes"
	"context"
	"testing"
	"time"

	"tranca"
)

// TestLimitsOfEachProcess: where no control group bounds memory and CPU time
// of the tree, which the operator has waived then, each process is bounded, as
// the enforcement statement says. Where one does, a process may map what it
// likes.
func TestLimitsOfEachProcess(t *testing.T) {
	b := newBackend(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	p := testPolicy(b)
	p.Limits.Memory, p.Limits.CPUTime = 128<<20, 7*time.Second
	sb, err := b.Create(ctx, tranca.Spec{ID: tranca.NewID(), Policy: p})
	if err != nil {
		t.Fatal(err)
	}
	defer closeBox(t, sb)
	var out, errs bytes.Buffer
	proc, err := sb.Start(ctx, tranca.Command{
		Args: []string{"/usr/bin/python3", "-I", "-c", `
import mmap, resource
print(resource.getrlimit(resource.RLIMIT_CPU)[0])
try:
    mmap.mmap(-1, 256 << 20)
    print("mapped")
except OSError:
    print("refused")
`}, Stdout: &out, Stderr: &errs,
	})
	if err != nil {
		t.Fatal(err)
	}
	if exit, err := proc.Wait(ctx); err != nil || exit.Code != 0 {
		t.Fatalf("%+v, %v: %s", exit, err, errs.String())
	}
	cpu, memory := "-1\n", "mapped\n"
	if !b.report.Holds(tranca.ItemCPUTime) {
		cpu = "7\n"
	}
	if !b.report.Holds(tranca.ItemMemory) {
		memory = "refused\n"
	}
	if got := out.String(); got != cpu+memory {
		t.Errorf("%q, want %q", got, cpu+memory)
	}
}
