package container_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"tranca"
)

// TestCow writes to a copy of a host folder, through each runtime that sees the
// stage: what it wrote can be had, the host's folder is as it was, and what the
// policy hides and protects in it stays so.
func TestCow(t *testing.T) {
	for _, runtime := range []string{"runc", "tranca-runsc"} {
		t.Run(runtime, func(t *testing.T) {
			o, _ := docker.options(t)
			b := open(t, o)
			t.Cleanup(func() { _ = b.Close(context.Background()) }) // after the sandbox
			testCow(t, b, runtime)
		})
	}
}

func testCow(t *testing.T, b tranca.Backend, runtime string) {
	dir := project(t)
	sb := create(t, b, testPolicy(func(p *tranca.Policy) {
		p.Runtime = runtime
		if runtime != "runc" {
			p.Waive = append(p.Waive, tranca.ItemPIDs)
		}
		p.Limits.Disk.Size = 4 << 20
		p.Mounts = []tranca.Mount{{
			Source: dir, Target: "/m", Cow: true, Deny: []string{"secret"}, Protect: []string{".git/hooks"},
		}}
	}))
	out, said := run(t, sb, "/usr/bin/python3", "-I", "-c", `
import os
def tell(what, f):
    try: f()
    except OSError as e: print(what, type(e).__name__)
    else: print(what, 'done')
def write(name, text='new', mode='w'):
    with open(name, mode) as f: f.write(text)
os.chdir('/m')
tell('append', lambda: write('a', 'more', 'a'))
print(open('a').read())
tell('remove', lambda: os.remove('sub/file'))
tell('make', lambda: write('new'))
tell('rename', lambda: os.rename('new', 'sub/new'))
tell('hook', lambda: write('.git/hooks/pre-commit'))
tell('hidden', lambda: os.listdir('secret'))
tell('upper', lambda: os.listdir('/cow'))
tell('fill', lambda: write('big', 'x' * (8 << 20)))
`)
	want := "append done\ntextmore\nremove done\nmake done\nrename done\nhook OSError\nhidden PermissionError\nupper FileNotFoundError\nfill OSError\n"
	if out != want {
		t.Errorf("it says %q and %q, want %q", out, said, want)
	}
	if err := sb.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	reader, ok := tranca.As[tranca.ChangeReader](sb)
	if !ok {
		t.Fatal("the sandbox hands out no changes")
	}
	upper, err := reader.OpenChanges("/m")
	if err != nil {
		t.Fatal(err)
	}
	defer upper.Close()
	written, err := upper.Readdirnames(-1)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "sub", "big"} {
		if !slices.Contains(written, name) {
			t.Errorf("written is %q, without %s", written, name)
		}
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/self/fd/%d/a", upper.Fd()))
	if err != nil || string(text) != "textmore" {
		t.Errorf("a was written as %q, %v", text, err)
	}
	if text, err := os.ReadFile(dir + "/a"); err != nil || string(text) != "text" {
		t.Errorf("the host's a is %q, %v", text, err)
	}
	if _, err := os.Stat(dir + "/sub/file"); err != nil {
		t.Errorf("the host's file is gone: %v", err)
	}
}

// TestCowOfTheEngine: an engine that makes the mounts by itself has none.
func TestCowOfTheEngine(t *testing.T) {
	o, here := rootless.options(t)
	if !here {
		return
	}
	b := open(t, o)
	defer b.Close(t.Context())
	sb, err := b.Create(t.Context(), tranca.Spec{ID: tranca.NewID(), Policy: testPolicy(waived(t, b), mounting(tranca.Mount{
		Source: project(t), Target: "/m", Cow: true,
	}))})
	if sb != nil || err == nil || !strings.Contains(err.Error(), "as root alone") {
		t.Errorf("%v", err)
	}
}
