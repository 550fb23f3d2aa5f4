package hostiletest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tranca"
)

// What a run leaves in a writable mount is looked at on the host afterwards.

func changed(res *tranca.Result) map[string]tranca.Change {
	all := map[string]tranca.Change{}
	for _, c := range res.Changes {
		all[c.Path] = c
	}
	return all
}

// TestHostileArtifacts leaves what a collector could hang on, read without end
// or follow: DSK-03, DSK-06.
func TestHostileArtifacts(t *testing.T) {
	w := newWorld(t, func(w *world, p *tranca.Policy) {
		shared(w, p)
		p.Limits.FileSize = 1 << 30
	})
	secret := filepath.Join(OpenFolder(t), "tranca-secret")
	if err := os.WriteFile(secret, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	res := w.run(`
import os
os.chdir('/p')
os.mkfifo('fifo')
os.symlink('/dev/zero', 'zero')
os.symlink('` + secret + `', 'file')
os.symlink('` + filepath.Dir(secret) + `', 'folder')
os.symlink('loop', 'loop')
with open('sparse', 'wb') as f: f.truncate(1 << 30)
try:
    with open('huge', 'wb') as f: f.truncate(1 << 40)
except OSError as e: print(e.strerror)
for d in range(300):
    os.mkdir('d')
    os.chdir('d')
`)
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
	ended(t, res, tranca.EndExited)
	if string(res.Stdout) != "File too large\n" {
		t.Errorf("a file of 1 TiB: %q %q", res.Stdout, res.Stderr)
	}
	got := changed(res)
	for _, name := range []string{"/p/fifo", "/p/zero", "/p/file", "/p/folder", "/p/loop", "/p/sparse", "/p/d/d"} {
		if got[name].Kind != tranca.ChangeCreated {
			t.Errorf("%s is not told", name)
		}
	}
	if got["/p/sparse"].Size != 1<<30 || got["/p/zero"].Size != 0 || got["/p/file"].Size != 0 {
		t.Errorf("sizes: %+v %+v %+v", got["/p/sparse"], got["/p/zero"], got["/p/file"])
	}
	for name := range got {
		if strings.Contains(name, "tranca-secret") {
			t.Errorf("%s was reached through a link", name)
		}
	}
	// Controls: reading the FIFO blocks, and a walk that follows finds the file.
	if err := exec.CommandContext(within(t, 500*time.Millisecond), "cat", filepath.Join(w.dir, "fifo")).Run(); err == nil {
		t.Error("control: reading the FIFO came to an end")
	}
	if list, err := os.ReadDir(filepath.Join(w.dir, "folder")); err != nil || len(list) != 1 {
		t.Errorf("control: the link leads nowhere: %v %v", list, err)
	}
}

// TestHostileManyArtifacts makes more files than are told: DSK-11.
func TestHostileManyArtifacts(t *testing.T) {
	w := newWorld(t, shared)
	const many = `
import os
for i in range(%): os.close(os.open('/p/f%d' % i, os.O_CREAT | os.O_WRONLY))`
	res := w.run(strings.Replace(many, "%", "12000", 1))
	ended(t, res, tranca.EndExited)
	if len(res.Changes) > 10_000 || len(res.Notes) == 0 {
		t.Errorf("%d changes, notes %q", len(res.Changes), res.Notes)
	}
	// Control: fewer are all told, without a note.
	w = newWorld(t, shared)
	res = w.run(strings.Replace(many, "%", "50", 1))
	if len(res.Changes) != 50 || len(res.Notes) != 0 {
		t.Errorf("control: %d changes, notes %q", len(res.Changes), res.Notes)
	}
}

// TestHostileSwapWhileCollected swaps a folder and a link to one of the host's
// up to the end of the run, and by a process that outlives it: FS-17.
func TestHostileSwapWhileCollected(t *testing.T) {
	w := newWorld(t, func(w *world, p *tranca.Policy) {
		shared(w, p)
		p.Limits.Wall = 300 * time.Millisecond
	})
	host := OpenFolder(t)
	if err := os.WriteFile(filepath.Join(host, "tranca-secret"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for range 8 {
		res := w.run(`
import os
os.chdir('/p')
os.makedirs('real', exist_ok=True)
open('real/own', 'a').write('x')
os.fork()
n = os.getpid()
while True:
    try:
        os.symlink('` + host + `', 'next%d' % os.getpid())
        os.rename('next%d' % os.getpid(), 'd')
        os.unlink('d')
        os.rename('real', 'd')
        os.rename('d', 'real')
    except OSError: pass`)
		for _, c := range res.Changes {
			if strings.Contains(c.Path, "tranca-secret") {
				t.Errorf("%s was reached through a link", c.Path)
			}
		}
		if _, err := os.Stat(filepath.Join(w.dir, "d/tranca-secret")); err == nil {
			seen++
		}
		os.RemoveAll(filepath.Join(w.dir, "real"))
		os.RemoveAll(filepath.Join(w.dir, "d"))
	}
	if err := os.Symlink(host, filepath.Join(w.dir, "d")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "d/tranca-secret")); err != nil {
		t.Errorf("control: %v", err)
	}
	t.Logf("the link was there at the end of %d runs", seen)
}

// TestHostileExecutable makes files that the host would execute by itself, in
// a fresh folder where there was nothing to protect: FS-23. They are told as
// what they are; others are not.
func TestHostileExecutable(t *testing.T) {
	w := newWorld(t, shared)
	res := w.run(`
import os
os.chdir('/p')
for name in ('.git/hooks/pre-commit', '.git/config', 'vendor/x/.git/hooks/post-checkout', '.vscode/tasks.json', '.envrc', '.mcp.json', 'src/ordinary.py'):
    os.makedirs(os.path.dirname(name) or '.', exist_ok=True)
    open(name, 'w').write('x')`)
	ended(t, res, tranca.EndExited)
	got := changed(res)
	for _, name := range []string{
		"/p/.git/hooks/pre-commit", "/p/.git/config", "/p/vendor/x/.git/hooks/post-checkout",
		"/p/.vscode/tasks.json", "/p/.envrc", "/p/.mcp.json",
	} {
		if !got[name].HostExecutable {
			t.Errorf("%s is not told as something that the host executes: %+v", name, got[name])
		}
	}
	if c := got["/p/src/ordinary.py"]; c.Kind != tranca.ChangeCreated || c.HostExecutable {
		t.Errorf("control: %+v", c)
	}
}

// TestHostileMountSources names what must not be mounted: API-04.
func TestHostileMountSources(t *testing.T) {
	dir := OpenFolder(t)
	link := filepath.Join(dir, "link")
	if err := os.Symlink("/etc", link); err != nil {
		t.Fatal(err)
	}
	for _, m := range []tranca.Mount{
		{Source: link, Target: "/p"}, {Source: "/dev/null", Target: "/p"}, {Source: dir + "/missing", Target: "/p"},
		{Source: dir, Target: "/proc"}, {Source: dir, Target: "/"}, {Source: dir, Target: "/usr/bin"},
		{Source: dir, Target: "/etc/x"}, {Source: dir, Target: "/dev/x"}, {Source: "relative", Target: "/p"}, {Source: dir + "/../x", Target: "/p"},
	} {
		if err := mounted(t, m); !errors.Is(err, tranca.ErrInvalid) {
			t.Errorf("%s at %s: %v", m.Source, m.Target, err)
		}
	}
	if err := mounted(t, tranca.Mount{Source: dir, Target: "/p"}); err != nil {
		t.Errorf("control: %v", err)
	}
}
