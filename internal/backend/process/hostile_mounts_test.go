package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tranca"
	"tranca/internal/guest/bootspec"
	"tranca/internal/hostiletest"
)

// TestHostileMounts tries what a writable folder of the host lets code do to
// the host.
func TestHostileMounts(t *testing.T) {
	runRows(t, []row{setIDRow(), setIDProgramRow(), protectRow(), denyRow(), leftoverRow()})
}

// share makes the row's own folder a writable mount at /p.
func (s *scene) share(files map[string]string, change func(*tranca.Mount)) {
	s.Helper()
	for name, content := range files {
		path := filepath.Join(s.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			s.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			s.Fatal(err)
		}
	}
	m := tranca.Mount{Source: s.dir, Target: "/p", Writable: true, DiskUnbounded: true}
	if change != nil {
		change(&m)
	}
	s.policy.Mounts = []tranca.Mount{m}
}

// setIDRow leaves a program in a writable mount that would run as the mount's
// owner: root's, where root made the sandbox.
func setIDRow() row {
	acts := []string{"chmod", "fchmod", "fchmodat2", "open", "creat", "openat2", "mknod", "tmpfile", "setgid"}
	return row{
		id: "FS-19", what: "make a set-id file in a writable mount",
		scene: func(s *scene) {
			s.share(nil, nil)
			for _, name := range acts {
				s.effect[name] = func() bool {
					fi, err := os.Stat(filepath.Join(s.dir, name))
					return err == nil && fi.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0
				}
			}
		},
		program: `
os.chdir('/p')
def made(name):
    write(name)
    return name
attempt('chmod', lambda: os.chmod(made('chmod'), 0o4755))
attempt('setgid', lambda: os.chmod(made('setgid'), 0o2755))
attempt('fchmod', lambda: os.fchmod(os.open(made('fchmod'), os.O_RDONLY), 0o4755))
attempt('fchmodat2', lambda: call('fchmodat2', -100, made('fchmodat2').encode(), 0o4755, 0x100))
attempt('open', lambda: os.open('open', os.O_CREAT | os.O_WRONLY, 0o4755))
attempt('creat', lambda: os.open('creat', os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o6755))
attempt('openat2', lambda: call('openat2', -100, b'openat2', ctypes.create_string_buffer(struct.pack('QQQ', os.O_CREAT | os.O_WRONLY, 0o4755, 0)), 24))
attempt('mknod', lambda: os.mknod('mknod', stat.S_IFREG | 0o4755))
def named(mode, name):
    fd = os.open('.', os.O_TMPFILE | os.O_WRONLY, mode)
    call('linkat', -100, b'/proc/self/fd/%d' % fd, -100, name, 0x400)
attempt('tmpfile', named, 0o4755, b'tmpfile')
twin('chmod to 755', lambda: os.chmod(made('plain'), 0o755))
twin('make one with open', lambda: os.open('plain2', os.O_CREAT | os.O_WRONLY, 0o1755))
twin('a temporary file', named, 0o644, b'plain3')
`,
		controls: []control{{what: "the filter", weaken: unfiltered}},
		blind:    map[string]string{"fchmodat2": "only from Linux 6.6 on"},
	}
}

// setIDProgramRow runs programs that are set-id already: those of the image
// and one in a mount.
func setIDProgramRow() row {
	return row{
		id: "FS-19", what: "run a set-id program",
		needs: []string{"root"},
		scene: func(s *scene) {
			python, err := os.ReadFile("/usr/bin/python3")
			if err != nil {
				s.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(s.dir, "suid"), python, 0o755); err != nil {
				s.Fatal(err)
			}
			if err := os.Chmod(filepath.Join(s.dir, "suid"), 0o755|os.ModeSetuid); err != nil {
				s.Fatal(err)
			}
			s.vars["program"] = filepath.Join(s.dir, "suid")
			s.policy.Mounts = []tranca.Mount{{Source: s.dir, Target: "/p"}}
		},
		program: `
if V['bare']:
    os.setresuid(65534, 65534, 65534)
own = os.geteuid()
def euid(program):
    out = subprocess.run([program, '-I', '-c', 'import os; print(os.geteuid())'], capture_output=True, text=True)
    expect('another user', int(out.stdout) != own)
attempt('in a mount', euid, V['program'] if V['bare'] else '/p/suid')
twin('run it', lambda: subprocess.run([V['program'] if V['bare'] else '/p/suid', '-I', '-c', ''], check=True))
attempt('without nosuid', lambda: expect('it', not [p for p in ('/', '/usr', '/work', '/tmp', '/dev/shm', '/p', '/proc') if not os.statvfs(p).f_flag & os.ST_NOSUID] == []))
`,
		controls: []control{{what: "any boundary"}},
		blind:    map[string]string{"without nosuid": "the bare host has no mount at /p to look at"},
	}
}

// protectRow goes at files that the host would execute, by every way around a
// read-only file. A set-id program is one of them: what is written through a
// mapping leaves the bits.
func protectRow() row {
	safe := strings.Repeat("safe", 16)
	files := map[string]string{}
	names := map[string]string{
		"write": ".git/hooks/pre-commit", "by descriptor": ".git/hooks/post-merge", "replace": ".git/hooks/update",
		"by link": ".git/config", "by mapping": "vendor/x/.git/config", "truncate": "vendor/x/.git/hooks/pre-push",
		"set-id by mapping": "bin/setuid", "move above": "vendor/x/.git/hooks/post-checkout",
	}
	for _, f := range names {
		files[f] = safe
	}
	return row{
		id: "FS-23 DSK-05", what: "change what the host executes",
		scene: func(s *scene) {
			s.share(files, func(m *tranca.Mount) { m.Protect = []string{".git/hooks", ".git/config"} })
			if err := os.Chmod(filepath.Join(s.dir, names["set-id by mapping"]), 0o755|os.ModeSetuid); err != nil {
				s.Fatal(err)
			}
			s.vars["names"] = names
			for name, file := range names {
				s.effect[name] = func() bool {
					got, err := os.ReadFile(filepath.Join(s.dir, file))
					return err != nil || string(got) != safe
				}
			}
		},
		program: `
import mmap
os.chdir('/p')
N = V['names']
def each(*acts):
    last = None
    for a in acts:
        try: a()
        except OSError as e: last = e
    if last: raise last
def over(path, how=os.O_WRONLY):
    os.write(os.open(path, how), b'evil')
def mapped(path):
    m = mmap.mmap(os.open(path, os.O_RDWR), 64)
    m[:4] = b'evil'
    m.flush()
attempt('write', over, N['write'])
attempt('by descriptor', lambda: over('/proc/self/fd/%d' % os.open(N['by descriptor'], os.O_RDONLY)))
attempt('by link', lambda: (os.link(N['by link'], 'linked'), over('linked')))
attempt('by mapping', mapped, N['by mapping'])
attempt('set-id by mapping', mapped, N['set-id by mapping'])
attempt('truncate', lambda: os.truncate(N['truncate'], 0))
def replace():
    write('evil', b'evil')
    each(lambda: os.rename('evil', N['replace']), lambda: os.unlink(N['replace']),
         lambda: call('renameat2', -100, b'evil', -100, N['replace'].encode(), 2))
attempt('replace', replace)
def move():
    each(lambda: os.rename('vendor/x/.git/hooks', 'vendor/x/.git/h2'), lambda: os.rename('vendor/x/.git', 'vendor/x/g'),
         lambda: os.rename('vendor/x', 'vendor/y'), lambda: os.rename('vendor', 'vendor2'),
         lambda: os.makedirs('vendor/x/.git/hooks'), lambda: write(N['move above'], b'evil'))
attempt('move above', move)
twin('write elsewhere', lambda: write('ordinary'))
`,
		controls: []control{{what: "protection", policy: func(p *tranca.Policy) { p.Mounts[0].Protect = nil }}},
	}
}

// denyRow asks for a hidden path inside a shown one, and the reverse.
func denyRow() row {
	return row{
		id: "FS-24", what: "read a denied path inside of an allowed one",
		scene: func(s *scene) {
			s.share(map[string]string{"secret/key": s.canary, "deep/.env": s.canary, "deep/open": "1"},
				func(m *tranca.Mount) { m.Deny = []string{"secret", "deep/.env"} })
		},
		program: `
os.chdir('/p')
for path in ('secret/key', 'deep/.env', 'deep/../secret/key', '/proc/self/cwd/secret/key'):
    reads('read ' + path, lambda: read(path))
def moved(a, b, then):
    os.rename(a, b)
    try: return read(then)
    finally: os.rename(b, a)
reads('move it', moved, 'secret', 'open', 'open/key')
reads('move what is above', moved, 'deep', 'deep2', 'deep2/.env')
def renamed(a, b):
    os.rename(a, b)
    os.rename(b, a)
attempt('give it another name for the next sandbox', renamed, 'deep', 'deep3')
reads('link it', lambda: (os.link('deep/.env', 'linked'), read('linked')))
def linked():
    os.symlink('secret', 'sym')
    return read('sym/key')
reads('link to it', linked)
attempt('list it', lambda: expect('something', os.listdir('secret')))
attempt('change its mode', lambda: (os.chmod('secret', 0o777), os.chmod('deep/.env', 0o777)))
twin('read what is beside it', lambda: read('deep/open'))
`,
		controls: []control{{what: "the denial", policy: func(p *tranca.Policy) { p.Mounts[0].Deny = nil }}},
	}
}

// leftoverRow leaves things in a writable mount that could hold up or
// mislead whoever walks it on the host afterwards.
func leftoverRow() row {
	return row{
		id: "DSK-06", what: "leave devices and sockets in a writable mount",
		scene: func(s *scene) {
			s.share(nil, nil)
			for _, name := range []string{"device", "socket"} {
				s.effect[name] = func() bool { _, err := os.Lstat(filepath.Join(s.dir, name)); return err == nil }
			}
		},
		program: `
os.chdir('/p')
attempt('device', lambda: os.mknod('device', stat.S_IFCHR | 0o666, 0))
def bound():
    s = socket.socket(socket.AF_UNIX)
    s.bind('socket')
attempt('socket', bound)
twin('a FIFO, which the host must not open', lambda: os.mkfifo('fifo'))
`,
		holds:    []control{{what: "Landlock", weaken: unlocked}},
		controls: []control{{what: "filter and Landlock", weaken: all(unfiltered, unlocked)}},
	}
}

// TestHostileFileRequests answers the host's own file requests with links that
// lead out: FS-16. They are resolved inside, with the code's rights.
func TestHostileFileRequests(t *testing.T) {
	b := newBackend(t)
	r := row{}
	for _, exposed := range []bool{false, true} {
		t.Run(fmt.Sprintf("exposed=%v", exposed), func(t *testing.T) {
			s := r.newScene(t, b, false)
			secret := s.plant()["folder"]
			var weaken weakening
			if exposed { // the control: the host's folder is there under its own name
				weaken = func(s *scene, pl *plan) {
					pl.Boot.Binds = append(pl.Boot.Binds, bootspec.Bind{Source: s.dir, Target: strings.TrimPrefix(s.dir, "/")})
				}
			}
			sb := s.open(weaken)
			defer closeBox(t, sb)
			for _, l := range [][2]string{{"leaf", secret}, {"folder", filepath.Dir(secret)}, {"up", "../../../.."}, {"proc", "/proc/1/root"}} {
				if out := s.runIn(sb, "ln", "-s", l[1], "/work/"+l[0]); !out.Exit.Success() {
					t.Fatalf("%v %s", out.Exit, out.Stderr)
				}
			}
			base := filepath.Base(secret)
			paths := []string{secret, "leaf", "folder/" + base, "up" + secret, "../../../.." + secret, "/work/../.." + secret}
			for _, p := range append(paths, "proc"+secret) {
				got := readThrough(t, sb, p)
				if escaped := strings.Contains(got, s.canary); escaped != (exposed && !strings.HasPrefix(p, "proc")) {
					t.Errorf("read %s: %q", p, got)
				}
			}
			writeThrough(t, s, sb, []string{"folder/new", s.dir + "/new", "up" + s.dir + "/new", "folder/missing/new"})
			if _, err := sb.Files().Write(t.Context(), "own", strings.NewReader("x"), 0o4755); err != nil {
				t.Errorf("own file: %v", err)
			}
			if info, err := sb.Files().Stat(t.Context(), "own"); err != nil || info.Mode&os.ModeSetuid != 0 {
				t.Errorf("a file that the host asked for: %v %v", info.Mode, err)
			}
		})
	}
}

func readThrough(t *testing.T, sb tranca.Sandbox, path string) string {
	t.Helper()
	f, err := sb.Files().Read(t.Context(), path, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	got, _ := io.ReadAll(io.LimitReader(f, 1<<16))
	return string(got)
}

// writeThrough wants writes to fail and the host's folder to stay as it is.
func writeThrough(t *testing.T, s *scene, sb tranca.Sandbox, paths []string) {
	t.Helper()
	for _, p := range paths {
		if _, err := sb.Files().Write(t.Context(), p, strings.NewReader("x"), 0o644); err == nil {
			// It may have been made inside, at a path that is only there.
			t.Logf("write %s: made inside", p)
		}
	}
	for _, remove := range []string{"folder", s.dir} {
		_ = sb.Files().Remove(t.Context(), remove+"/"+filepath.Base(s.plant()["folder"]))
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("the host's folder has %v, %v", entries, err)
	}
}

// TestHostileSwap swaps a folder and a link to the host's while the host reads
// through it: FS-17.
func TestHostileSwap(t *testing.T) {
	b := newBackend(t)
	r := row{}
	for _, exposed := range []bool{false, true} {
		t.Run(fmt.Sprintf("exposed=%v", exposed), func(t *testing.T) {
			s := r.newScene(t, b, false)
			secret := s.plant()["folder"]
			s.vars["dir"], s.vars["name"] = s.dir, filepath.Base(secret)
			var weaken weakening
			if exposed {
				weaken = func(s *scene, pl *plan) {
					pl.Boot.Binds = append(pl.Boot.Binds, bootspec.Bind{Source: s.dir, Target: strings.TrimPrefix(s.dir, "/")})
				}
			}
			sb := s.open(weaken)
			defer closeBox(t, sb)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			out := &hostiletest.Live{}
			proc, err := sb.Start(ctx, tranca.Command{Args: s.argv(swapper), Stdout: out})
			if err != nil {
				t.Fatal(err)
			}
			hostiletest.Eventually(t, "it swaps", func() bool { return out.String() != "" })
			seen, own := 0, 0
			for i := 0; i < 3000 || (i < 30_000 && (own == 0 || (exposed && seen == 0))); i++ {
				switch got := readThrough(t, sb, "/work/d/"+filepath.Base(secret)); {
				case strings.Contains(got, s.canary):
					seen++
				case strings.Contains(got, "inside"):
					own++
				}
			}
			if err := sb.Kill(ctx); err != nil {
				t.Error(err)
			}
			if _, err := proc.Wait(ctx); err != nil && !errors.Is(err, tranca.ErrGone) {
				t.Error(err)
			}
			if own == 0 || (seen > 0) != exposed {
				t.Errorf("read the own file %d times, the host's %d times", own, seen)
			}
		})
	}
}

const swapper = `
os.makedirs('/work/real')
write('/work/real/' + V['name'], b'inside')
os.symlink(V['dir'], '/work/link')
os.symlink('real', '/work/d')
n = 0
while True:
    n += 1
    os.symlink('real' if n % 2 else V['dir'], '/work/next')
    os.rename('/work/next', '/work/d')
    if n == 10: os.write(1, b'swapping')
`
