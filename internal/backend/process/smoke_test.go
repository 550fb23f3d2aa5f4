package process

import (
	"bytes"
	"context"
	"testing"
	"time"

	"tranca"
)

func TestSmoke(t *testing.T) {
	b, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	r, err := b.Probe(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range r.Guarantees {
		t.Logf("%v", g)
	}
	t.Log(r.Facts)
	p := trialPolicy()
	p.Waive = nil
	p.Limits.Memory = 256 << 20
	for i := range 3 {
		t0 := time.Now()
		sb, err := b.Create(ctx, tranca.Spec{ID: "i0123", Policy: *p})
		if err != nil {
			t.Fatal(err)
		}
		t1 := time.Now()
		var out, errb bytes.Buffer
		proc, err := sb.Start(ctx, tranca.Command{Args: []string{"python3", "-I", "-c", "print(6*7); import os; print(os.getuid(), os.getpid(), os.listdir('/'), open('/proc/self/cgroup').read(), open('/proc/self/status').read()); print(os.listdir('/proc/1'))"}, Stdout: &out, Stderr: &errb})
		if err != nil {
			t.Fatal(err)
		}
		exit, err := proc.Wait(ctx)
		t2 := time.Now()
		if i == 0 {
			t.Log(out.String(), errb.String())
		}
		u, _ := sb.Usage(ctx)
		if err := sb.Close(ctx); err != nil {
			t.Fatal(err)
		}
		t.Log(exit, err, u, t1.Sub(t0), t2.Sub(t1), time.Since(t2))
	}
	if err := b.Close(ctx); err != nil {
		t.Fatal(err)
	}
}
