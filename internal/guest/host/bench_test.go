package host

import (
	"context"
	"io"
	"os/exec"
	"testing"
	"time"

	"tranca"
)

// BenchmarkStart is the way of one short program: start, output, end.
func BenchmarkStart(b *testing.B) {
	sb, _, _ := newSandbox(b, nil)
	for b.Loop() {
		p, err := sb.Start(context.Background(), tranca.Command{Args: []string{"true"}})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := p.Wait(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPing is one question and one answer.
func BenchmarkPing(b *testing.B) {
	sb, _, _ := newSandbox(b, nil)
	for b.Loop() {
		if err := sb.Ping(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

const gigabyte = 1 << 30

// BenchmarkStream is 1 GiB from a program in the guest to the host, against
// the same through a pipe of two cats; the ratio is reported.
func BenchmarkStream(b *testing.B) {
	sb, _, _ := newSandbox(b, nil)
	var ours, cats time.Duration
	b.SetBytes(gigabyte)
	for b.Loop() {
		begin := time.Now()
		p, err := sb.Start(context.Background(), tranca.Command{
			Args: []string{"head", "-c", "1G", "/dev/zero"}, Stdout: io.Discard,
		})
		if err != nil {
			b.Fatal(err)
		}
		if exit, err := p.Wait(context.Background()); err != nil || !exit.Success() {
			b.Fatal(exit, err)
		}
		ours += time.Since(begin)
		begin = time.Now()
		if err := exec.Command("sh", "-c", "head -c 1G /dev/zero | cat | cat >/dev/null").Run(); err != nil {
			b.Fatal(err)
		}
		cats += time.Since(begin)
	}
	b.ReportMetric(float64(cats)/float64(ours), "x-cat")
	b.ReportMetric(float64(b.N)*1024/ours.Seconds(), "MiB/s")
}
