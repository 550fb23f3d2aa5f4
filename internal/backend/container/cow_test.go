package container_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tranca"
	"tranca/internal/hostiletest"
)

// TestCow writes to a copy of a host folder, through each runtime that sees the
// stage: what it wrote can be had, the host's folder is as it was, and what the
// policy hides and protects in it stays so, or is refused.
func TestCow(t *testing.T) {
	held := []tranca.Mount{{Deny: []string{"secret", "deny.txt"}, Protect: []string{".git/hooks", ".git/config"}}}
	for runtime, c := range map[string]struct{ works, refused []tranca.Mount }{
		"runc":         {append(held, tranca.Mount{}), nil},
		"tranca-runsc": {[]tranca.Mount{{}}, append(held, tranca.Mount{Deny: []string{"deny.txt"}})},
	} {
		t.Run(runtime, func(t *testing.T) {
			o, _ := docker.options(t)
			b := open(t, o)
			t.Cleanup(func() { _ = b.Close(context.Background()) }) // after the sandboxes
			under := func(m tranca.Mount) tranca.Policy {
				m.Source, m.Target, m.Cow = project(t), "/m", true
				return testPolicy(func(p *tranca.Policy) {
					p.Runtime, p.Mounts = runtime, []tranca.Mount{m}
					if runtime != "runc" {
						p.Waive = append(p.Waive, tranca.ItemPIDs)
					}
					p.Limits.Disk.Size = 4 << 20
				})
			}
			for _, m := range c.works {
				testCow(t, b, under(m))
			}
			for _, m := range c.refused {
				sb, err := b.Create(t.Context(), tranca.Spec{ID: tranca.NewID(), Policy: under(m)})
				if sb != nil || err == nil || !strings.Contains(err.Error(), "rename what is mounted over") {
					t.Errorf("%+v: %v", m, err)
				}
			}
		})
	}
}

// testCow tells a copy that holds something from one that does not by its
// mount's policy.
func testCow(t *testing.T, b tranca.Backend, p tranca.Policy) {
	t.Helper()
	m := p.Mounts[0]
	if err := os.WriteFile(m.Source+"/.git/config", []byte("config"), 0o644); err != nil {
		t.Fatal(err)
	}
	sb := create(t, b, p)
	out, said := run(t, sb, "/usr/bin/python3", "-I", "-c", `
import os
def tell(what, f):
    try: f()
    except OSError as e: print(what, type(e).__name__, e.strerror)
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
tell('hook away', lambda: os.rename('.git/hooks/pre-commit', 'hook'))
tell('config away', lambda: os.rename('.git/config', 'config'))
tell('config over', lambda: os.replace('a', '.git/config'))
tell('config gone', lambda: os.remove('.git/config'))
tell('git away', lambda: os.rename('.git', 'git'))
tell('hidden', lambda: os.listdir('secret'))
tell('denied', lambda: open('deny.txt').read())
tell('denied away', lambda: os.rename('deny.txt', 'x'))
tell('fill', lambda: write('big', 'x' * (8 << 20)))
`)
	if want := "append done\ntextmore\nremove done\nmake done\nrename done\n"; !strings.HasPrefix(out, want) {
		t.Errorf("it says %q and %q, want %q first", out, said, want)
	}
	if !strings.HasSuffix(out, "fill OSError No space left on device\n") {
		t.Errorf("it says %q", out)
	}
	if m.Deny != nil {
		for what, why := range map[string]string{
			"hook": "Read-only file system", "hook away": "Invalid cross-device link", "config away": "Device or resource busy",
			"config over": "Device or resource busy", "config gone": "Device or resource busy", "git away": "Device or resource busy",
			"hidden": "Permission denied", "denied": "Permission denied", "denied away": "Device or resource busy",
		} {
			if !strings.Contains(out, "\n"+what+" ") || strings.Contains(out, "\n"+what+" done") || !strings.Contains(out, why) {
				t.Errorf("%s: it says %q", what, out)
			}
		}
	}
	checkWritten(t, sb, m)
	for name, want := range map[string]string{
		"a": "text", "sub/file": "x", ".git/hooks/pre-commit": "hook", ".git/config": "config", "secret/key": "key", "deny.txt": "denied",
	} {
		if text, err := os.ReadFile(filepath.Join(m.Source, name)); err != nil || string(text) != want {
			t.Errorf("the host's %s is %q, %v", name, text, err)
		}
	}
}

// checkWritten looks at the upper folder: it has what was written, and nothing of
// what was denied, under any name.
func checkWritten(t *testing.T, sb tranca.Sandbox, m tranca.Mount) {
	t.Helper()
	upper := hostiletest.OpenChanges(t, sb, "/m")
	defer upper.Close()
	root, err := os.OpenRoot(filepath.Join("/proc/self/fd", fdName(upper)))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	text, err := root.ReadFile("sub/new")
	if err != nil || string(text) != "new" {
		t.Errorf("sub/new was written as %q, %v", text, err)
	}
	names, err := upper.Readdirnames(-1)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if text, err := root.ReadFile(name); err == nil && string(text) == "denied" && m.Deny != nil {
			t.Errorf("what was denied is written as %s", name)
		}
	}
}

func fdName(f *os.File) string { return strconv.Itoa(int(f.Fd())) }

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
