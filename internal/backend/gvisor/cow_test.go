package gvisor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"tranca"
	"tranca/internal/hostiletest"
)

// TestCow writes to a copy of a host folder through the Sentry, whose file
// server stands on the same overlay as the process backend.
func TestCow(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	b := newBackend(t)
	dir := t.TempDir()
	for name, content := range map[string]string{"a": "a\n", "gone": "g\n", "d/x": "x\n", "d/y": "y\n", "m": "m\n"} {
		at := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	p := *trialPolicy()
	p.Limits.Memory = 256 << 20
	p.Mounts = []tranca.Mount{{Source: dir, Target: "/p", Cow: true}}
	sb, err := b.Create(ctx, tranca.Spec{ID: tranca.NewID(), Policy: p})
	if err != nil {
		t.Fatal(err)
	}
	defer closeBox(t, sb)
	got := hostiletest.Run(t, sb, tranca.Command{Args: []string{"sh", "-c", `
cd /p && echo more >>a && rm gone && rm -r d && mkdir d && echo z >d/z && mv m m2 && ln -s a l && chmod 600 m2
cat a; ls . d`}})
	if got.Err != nil {
		t.Fatal(got.Err)
	}
	if want := "a\nmore\n.:\na\nd\nl\nm2\n\nd:\nz\n"; got.Stdout != want || got.Stderr != "" {
		t.Errorf("out %q and %q, want %q", got.Stdout, got.Stderr, want)
	}
	upper := hostiletest.OpenChanges(t, sb, "/p")
	defer upper.Close()
	written, err := upper.Readdirnames(-1)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(written)
	if want := []string{"a", "d", "gone", "l", "m", "m2"}; !slices.Equal(written, want) {
		t.Errorf("written %q, want %q", written, want)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || string(b) != "a\n" {
		t.Errorf("the host's file has %q, %v", b, err)
	}
}
