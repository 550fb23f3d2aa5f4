package gvisor

import (
	"bytes"
	"context"
	"os"
	"testing"
	"time"

	"tranca"
)

func TestFirst(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	b, err := New(Options{DebugLog: os.Getenv("GVLOG")})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close(context.Background())
	p := *trialPolicy()
	p.Limits.Memory = 256 << 20
	for range 3 {
		t0 := time.Now()
		sb, err := b.Create(ctx, tranca.Spec{ID: tranca.NewID(), Policy: p})
		if err != nil {
			t.Fatal(err)
		}
		defer sb.Close(ctx)
		t1 := time.Now()
		u0, _ := sb.Usage(ctx)
		t.Log("booted with ", u0.CPU)
		var out, errs bytes.Buffer
		proc, err := sb.Start(ctx, tranca.Command{Args: []string{"/usr/bin/python3", "-I", "-c", "print(6*7)"}, Stdout: &out, Stderr: &errs})
		if err != nil {
			t.Fatal(err)
		}
		exit, err := proc.Wait(ctx)
		t2 := time.Now()
		u, uerr := sb.Usage(ctx)
		err = sb.Close(ctx)
		t.Logf("%v %v %q %q %v %+v %v; boot %v run %v close %v", exit, err, out.String(), errs.String(), err, u, uerr, t1.Sub(t0), t2.Sub(t1), time.Since(t2))
	}
}
