package cgroup

import (
	"context"
	"path/filepath"
	"testing"

	"tranca/internal/linux/supervisor"
)

func BenchmarkFind(b *testing.B) {
	s, err := supervisor.Open(filepath.Join(b.TempDir(), "run"))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for b.Loop() {
		tree, err := Find(Options{}.forTest(s))
		if err != nil {
			b.Fatal(err)
		}
		if err := tree.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// What the groups add to the start and end of each sandbox.
func BenchmarkCreateDestroy(b *testing.B) {
	for name, o := range map[string]Options{"as found": {}, "with v2": {V2: true}} {
		b.Run(name, func(b *testing.B) {
			tree := needTree(b, o)
			for b.Loop() {
				g, err := tree.Create("bench", defaultLimits)
				if err != nil {
					b.Fatal(err)
				}
				if err := g.Destroy(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkStats(b *testing.B) {
	tree := needTree(b, Options{})
	g := create(b, tree, "bench", defaultLimits)
	for b.Loop() {
		if _, err := g.Stats(); err != nil {
			b.Fatal(err)
		}
	}
}
