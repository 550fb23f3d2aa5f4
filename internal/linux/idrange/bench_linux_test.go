package idrange

import (
	"path/filepath"
	"testing"
)

func BenchmarkAcquireRelease(b *testing.B) {
	p := &Pool{}
	if err := p.forRoot("/etc"); err != nil {
		b.Fatal(err)
	}
	if err := p.openFolder(filepath.Join(b.TempDir(), "run")); err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	for b.Loop() {
		block, err := p.Acquire()
		if err != nil {
			b.Fatal(err)
		}
		if err := block.Release(); err != nil {
			b.Fatal(err)
		}
	}
}
