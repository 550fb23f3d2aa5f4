package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tranca"
	"tranca/internal/backend/process"
	"tranca/internal/policy"
)

// sandbox makes a real one.
func sandbox(t *testing.T) tranca.Sandbox {
	t.Helper()
	b, err := process.New(process.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	report, err := b.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := policy.Default()
	for _, item := range tranca.Waivable() {
		if !report.Holds(item) {
			p.Waive = append(p.Waive, item)
		}
	}
	sb, err := b.Create(t.Context(), tranca.Spec{ID: tranca.NewID(), Policy: p})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sb.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return sb
}

// run runs Python code in a sandbox to its good end.
func run(t *testing.T, sb tranca.Sandbox, code string) {
	t.Helper()
	var out bytes.Buffer
	p, err := sb.Start(t.Context(), tranca.Command{Args: []string{"/usr/bin/python3", "-Ic", code}, Stdout: &out, Stderr: &out})
	if err != nil {
		t.Fatal(err)
	}
	if exit, err := p.Wait(t.Context()); err != nil || !exit.Success() {
		t.Fatalf("%v %v %s", exit, err, out.String())
	}
}

// A folder goes from the disk into a sandbox and out again, by pipes, and is
// what it was.
func TestThroughASandbox(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	big := make([]byte, 5<<20)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range big {
		big[i] = byte(r.Uint32())
	}
	lay(t, dir, map[string]string{"a": "text", "empty": "", "bad\xff\n": "x", "big": string(big), "d": "/", "link": "->d/f", "dangling": "->d/none"})
	lay(t, filepath.Join(dir, "d/e"), map[string]string{"up": "->../../a", "f": "y"})
	for i := range 300 {
		if err := os.WriteFile(filepath.Join(dir, "d", fmt.Sprint(i)), []byte{byte(i)}, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sb := sandbox(t)
	if _, can := tranca.As[tranca.FileLinker](sb.Files()); !can {
		t.Fatal("the sandbox makes no links")
	}
	in := pipe(func(w io.Writer) error { _, err := PackLocal(t.Context(), dir, w); return err })
	sum, err := Extract(t.Context(), sb.Files(), "in", in, Options{})
	if err != nil || sum.Files != 305 || sum.Links != 3 || sum.Folders != 2 {
		t.Fatalf("%+v %v", sum, err)
	}
	run(t, sb, `
import os
assert os.readlink("in/link") == "d/f" and open("in/d/e/up").read() == "text", os.listdir("in")
assert os.stat("in/d/7").st_mode & 0o7777 == 0o600
os.mkfifo("in/pipe")
`)
	var skipped Skipped
	out := pipe(func(w io.Writer) (err error) { skipped, err = Pack(t.Context(), sb.Files(), "in", w); return err })
	again := filepath.Join(t.TempDir(), "t")
	if _, err := ExtractLocal(t.Context(), again, out, Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, out); err != nil { // Pack has returned
		t.Fatal(err)
	}
	if skipped.Count != 1 || skipped.Names[0] != "pipe" {
		t.Errorf("%+v", skipped)
	}
	if diff := cmp.Diff(disk(t, dir), disk(t, again)); diff != "" {
		t.Error(diff)
	}
}

// pipe gives what f writes.
func pipe(f func(io.Writer) error) io.Reader {
	r, w := io.Pipe()
	go func() { w.CloseWithError(f(w)) }()
	return r
}

// Code changes its files and folders for links all the time while they are
// packed and extracted: each ends, with an archive that can be extracted or
// with an error of a class.
func TestRestlessSandbox(t *testing.T) {
	sb := sandbox(t)
	run(t, sb, `
import os, threading, time
os.mkdir("t")
if os.fork(): os._exit(0)
os.setsid()
for fd in (0, 1, 2): os.close(fd)
i = 0
while True:
    i += 1
    for f in (lambda: os.makedirs("t/d/e", exist_ok=True), lambda: open("t/d/f", "w").write("x" * (i * 7919 % 900000)),
              lambda: os.rename("t/d", "t/m"), lambda: os.symlink("/etc", "t/d"), lambda: os.unlink("t/d"),
              lambda: os.rename("t/m", "t/d"), lambda: os.symlink("..", "t/l"), lambda: os.unlink("t/l")):
        try: f()
        except OSError: pass
`)
	b := archived(t, folder("d"), file("d/f"), file("d/e/g"), link("l", "d"), file("last"))
	whole := 0
	for range 40 {
		_, err := Extract(t.Context(), sb.Files(), "t", bytes.NewReader(b), Options{})
		known(t, "extract", err)
		var packed bytes.Buffer
		_, err = Pack(t.Context(), sb.Files(), "t", &packed)
		known(t, "pack", err)
		if err == nil {
			whole++
			unpacked(t, packed.Bytes())
		}
	}
	t.Logf("%d whole archives", whole)
	if err := sb.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := Pack(t.Context(), sb.Files(), "t", io.Discard); err != nil {
		t.Errorf("at rest: %v", err)
	}
}

func known(t *testing.T, what string, err error) {
	t.Helper()
	for _, class := range []error{nil, tranca.ErrInvalid, tranca.ErrNotFound, tranca.ErrExists, tranca.ErrBusy, tranca.ErrRefused} {
		if errors.Is(err, class) {
			return
		}
	}
	t.Errorf("%s: %v", what, err)
}
