//go:build linux

package image

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// benchLayer is a layer as distributions have them: some thousand files, most of
// them small, in some hundred folders.
func benchLayer(b *testing.B) []byte {
	b.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	var entries []entry
	for d := range 300 {
		entries = append(entries, dir(fmt.Sprintf("usr/lib/d%d", d)))
		for f := range 20 {
			entries = append(entries, entry{Name: fmt.Sprintf("usr/lib/d%d/f%d", d, f), Size: 1 + int64(random.ExpFloat64()*16384)})
		}
	}
	return layerOf(b, entries...)
}

// BenchmarkUnpack unpacks a layer, and has `tar x` do the same right after it; the
// ratio of their times is what counts on a host that is busy.
func BenchmarkUnpack(b *testing.B) {
	tarProgram, err := exec.LookPath("tar")
	if err != nil {
		b.Fatal(err)
	}
	layer := benchLayer(b)
	for name, packed := range map[string][]byte{"plain": layer, "gzip": gzipOf(b, layer)} {
		b.Run(name, func(b *testing.B) {
			archived := filepath.Join(b.TempDir(), "layer")
			if err := os.WriteFile(archived, packed, 0o600); err != nil {
				b.Fatal(err)
			}
			src := makeImage(b, config{}, packed)
			s := newStore(b)
			mustAdd(b, s, src, "x")
			m, c, err := s.documents(digestOf(src.root))
			if err != nil {
				b.Fatal(err)
			}
			var ours, theirs time.Duration
			for b.Loop() {
				top := b.TempDir()
				mine, other := filepath.Join(top, "a"), filepath.Join(top, "b")
				if err := os.Mkdir(mine, 0o755); err != nil {
					b.Fatal(err)
				}
				if err := os.Mkdir(other, 0o755); err != nil {
					b.Fatal(err)
				}
				began := time.Now()
				if _, err := s.unpackLayers(b.Context(), mine, m, c, nil); err != nil {
					b.Fatal(err)
				}
				ours += time.Since(began)
				began = time.Now()
				if out, err := exec.Command(tarProgram, "xf", archived, "-C", other).CombinedOutput(); err != nil {
					b.Fatal(err, string(out))
				}
				theirs += time.Since(began)
				if err := os.RemoveAll(top); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(theirs)/float64(ours), "times-tar-x")
			b.ReportMetric(float64(ours.Milliseconds())/float64(b.N), "ms/unpack")
		})
	}
}

// BenchmarkOpen opens an image that is there.
func BenchmarkOpen(b *testing.B) {
	s := newStore(b)
	mustAdd(b, s, makeImage(b, config{}, layerOf(b, file("a"))), "x")
	for b.Loop() {
		_, release, err := s.Open(b.Context(), "x")
		if err != nil {
			b.Fatal(err)
		}
		release()
	}
}
