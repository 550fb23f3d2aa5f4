package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"tranca"
	"tranca/internal/bench/sample"
)

const streamBytes = 1 << 30

// counter takes output and forgets it.
type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

// stream sends a gibibyte from a program in a sandbox to this one, beside two
// programs that send it to each other through a pipe.
func (o *options) stream(ctx context.Context, rep *report) error {
	b, p, err := o.backend(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = b.Close(ctx) }()
	s, err := b.Create(ctx, tranca.Spec{ID: benchID(0), Policy: p})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close(context.WithoutCancel(ctx)) }()

	dir, err := os.MkdirTemp("", "tranca-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "zeros")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, streamBytes)); err != nil {
		return err
	}
	const pipe, guest = "cat | cat, 1 GiB", "guest to engine, 1 GiB"
	var grown uint64
	times, err := sample.Interleave(ctx, []sample.Subject{
		{Name: pipe, Do: func(ctx context.Context) error {
			return exec.CommandContext(ctx, "sh", "-c", "cat "+file+" | cat >/dev/null").Run()
		}},
		{Name: guest, Do: func(ctx context.Context) error {
			n, err := fromGuest(ctx, s)
			grown = max(grown, n)
			return err
		}},
	}, 1, 5, o.seed)
	if err != nil {
		return err
	}
	rep.addRates("stream", "cat", pipe, guest, times, 0.25)
	rep.Rows = append(rep.Rows,
		row{
			Part: "stream", Name: "memory of this program meanwhile", Figure: "grew by",
			Value: float64(grown) / (1 << 20), Target: 16, Unit: "MiB",
		})
	return nil
}

// addRates adds how fast a gibibyte went two ways, the second held against the
// first.
func (r *report) addRates(part, unit, base, way string, times map[string]sample.Series, target float64) {
	rate := func(name string) float64 { return streamBytes / times[name].Percentile(50).Seconds() / (1 << 20) }
	r.Times[base], r.Times[way] = times[base], times[way]
	r.Rows = append(r.Rows,
		row{Part: part, Name: base, Figure: fmt.Sprintf("%.0f MiB/s", rate(base)), Value: 1, Unit: "x " + unit},
		row{
			Part: part, Name: way, Figure: fmt.Sprintf("%.0f MiB/s", rate(way)),
			Value: rate(way) / rate(base), Target: target, AtLeast: true, Unit: "x " + unit,
		})
}

// fromGuest returns by how many bytes the heap was larger than before at most.
func fromGuest(ctx context.Context, s tranca.Sandbox) (uint64, error) {
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	c := &counter{}
	proc, err := s.Start(ctx, tranca.Command{
		Args: []string{"head", "-c", fmt.Sprint(streamBytes), "/dev/zero"}, Stdout: c,
	})
	if err != nil {
		return 0, err
	}
	done := make(chan struct{})
	peak := make(chan uint64)
	go func() {
		most := before.HeapInuse
		for {
			select {
			case <-done:
				peak <- most - before.HeapInuse
				return
			case <-time.After(20 * time.Millisecond):
				runtime.ReadMemStats(&now)
				most = max(most, now.HeapInuse)
			}
		}
	}()
	exit, err := proc.Wait(ctx)
	close(done)
	grown := <-peak
	if err != nil {
		return grown, err
	}
	if !exit.Success() || c.n != streamBytes {
		return grown, fmt.Errorf("ended %s after %d bytes, want %d", exit, c.n, streamBytes)
	}
	return grown, nil
}
