package gvisor

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"tranca"
)

// TestCow writes to a copy of a host folder through the Sentry, whose file
// server stands on the same overlay as the process backend.
func TestCow(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	b, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
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
	defer func() {
		if err := sb.Close(ctx); err != nil {
			t.Error(err)
		}
	}()
	var out bytes.Buffer
	proc, err := sb.Start(ctx, tranca.Command{Args: []string{"sh", "-c", `
cd /p && echo more >>a && rm gone && rm -r d && mkdir d && echo z >d/z && mv m m2 && ln -s a l && chmod 600 m2
cat a; ls . d`}, Stdout: &out, Stderr: &out})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := proc.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	if want := "a\nmore\n.:\na\nd\nl\nm2\n\nd:\nz\n"; out.String() != want {
		t.Errorf("out %q, want %q", out.String(), want)
	}
	if err := sb.Kill(ctx); err != nil {
		t.Fatal(err)
	}
	reader, ok := tranca.As[tranca.ChangeReader](sb)
	if !ok {
		t.Fatal("the sandbox hands out no changes")
	}
	upper, err := reader.OpenChanges("/p")
	if err != nil {
		t.Fatal(err)
	}
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
