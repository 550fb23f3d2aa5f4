package process

import (
	"bytes"
	"context"
	"testing"

	"tranca"
	"tranca/internal/require"
)

// BenchmarkCold is one run in a fresh sandbox, from the call to the dead tree.
func BenchmarkCold(b *testing.B) {
	require.Root(b)
	be, err := New(Options{})
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	defer be.Close(ctx)
	p := trialPolicy()
	p.Waive = nil
	p.Limits.Memory = 256 << 20
	for b.Loop() {
		sb, err := be.Create(ctx, tranca.Spec{ID: "i0123", Policy: *p})
		if err != nil {
			b.Fatal(err)
		}
		var out bytes.Buffer
		proc, err := sb.Start(ctx, tranca.Command{Args: []string{"/usr/bin/python3", "-I", "-c", "print(6*7)"}, Stdout: &out})
		if err != nil {
			b.Fatal(err)
		}
		if exit, err := proc.Wait(ctx); err != nil || !exit.Success() {
			b.Fatal(exit, err)
		}
		if err := sb.Close(ctx); err != nil {
			b.Fatal(err)
		}
	}
}
