package gvisor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/confine"
	"tranca/internal/hostiletest"
)

func confineOptions(folder string) confine.Options { return confine.Options{RuntimeFolder: folder} }

// TestHostileMeetings: what one sandbox leaves in every place that two programs
// of one host could meet in, another does not find: TEN-01, TEN-03, TEN-04,
// MEM-08, NET-23. The control is a second program in the same sandbox, which
// finds all of it.
func TestHostileMeetings(t *testing.T) {
	b := newBackend(t)
	const leave = `
for d in ('/work', '/tmp', '/dev/shm'):
    with open(d + '/token', 'w') as f: f.write(V['mark'])
shm = libc.shmget(4711, 4096, 0o1666)
msg = libc.msgget(4712, 0o1666)
expect('System V', shm >= 0 and msg >= 0)
s = socket.create_server(('127.0.0.1', 4713))
a = socket.socket(socket.AF_UNIX)
a.bind('\0token')
a.listen()
print('left', flush=True)
time.sleep(60)`
	const look = `
for d in ('/work', '/tmp', '/dev/shm'): reads(d, read, d + '/token')
attempt('memory', lambda: expect('shared', libc.shmget(4711, 0, 0) >= 0))
attempt('queue', lambda: expect('a queue', libc.msgget(4712, 0) >= 0))
attempt('port', lambda: socket.create_connection(('127.0.0.1', 4713), 1).close())
def unix():
    s = socket.socket(socket.AF_UNIX)
    s.connect('\0token')
attempt('socket', unix)
def process():
    found = []
    for p in os.listdir('/proc'):
        try:
            if p.isdigit() and int(p) != os.getpid() and V['mark'].encode() in read('/proc/%s/cmdline' % p, 1 << 16): found.append(p)
        except OSError: pass
    expect('none', found)
attempt('process', process)
twin('own file', lambda: write('/work/own'))`
	s := (&row{}).newScene(t, b, false)
	s.canary = s.mark
	first, second := s.open(nil), s.open(nil)
	defer closeBox(t, first)
	defer closeBox(t, second)
	out := &hostiletest.Live{}
	if _, err := first.Start(t.Context(), tranca.Command{Args: s.argv(leave), Stdout: out, Stderr: out}); err != nil {
		t.Fatal(err)
	}
	hostiletest.Eventually(t, "it has left all", func() bool { return strings.Contains(out.String(), "\n") })
	for _, c := range []struct {
		where string
		in    tranca.Sandbox
		finds bool
	}{{"another sandbox", second, false}, {"the same sandbox", first, true}} {
		got := &hostiletest.Report{}
		got.Take(s.runIn(c.in, s.argv(look)...), s.canary)
		if len(got.Attempts) != 8 {
			t.Errorf("in %s it tried %d ways", c.where, len(got.Attempts))
		}
		got.All(t, "in "+c.where, c.finds)
	}
}

// TestHostileMounts tries what a folder of the host that is mounted gives away:
// FS-19, FS-23, FS-24, DSK-05. The control has the same folder without what the
// policy says of it.
func TestHostileMounts(t *testing.T) {
	runRows(t, []row{{
		id: "FS-19 FS-23 FS-24 DSK-05", what: "denied and protected paths, set-id files and links in a writable mount",
		scene: func(s *scene) {
			files := map[string]string{"open": "open", "secret/key": s.canary, ".git/hooks/pre-commit": "kept", "plain": "plain"}
			for name, text := range files {
				path := filepath.Join(s.dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
					s.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
					s.Fatal(err)
				}
			}
			if err := os.Symlink("/etc/hostname", filepath.Join(s.dir, "out")); err != nil {
				s.Fatal(err)
			}
			_ = os.Chmod(s.dir, 0o777)
			s.policy.Mounts = []tranca.Mount{{
				Source: s.dir, Target: "/data", Writable: true, DiskUnbounded: true,
				Deny: []string{"secret"}, Protect: []string{".git/hooks"},
			}}
			read := func(name string) string {
				text, _ := os.ReadFile(filepath.Join(s.dir, name)) // gone is changed too
				return string(text)
			}
			s.effect["overwrite a hook"] = func() bool { return read(".git/hooks/pre-commit") != "kept" }
			s.effect["move the hooks away"] = func() bool { return read(".git/hooks/pre-commit") != "kept" }
			s.effect["set-id on the host"] = func() bool {
				var st unix.Stat_t
				return unix.Stat(filepath.Join(s.dir, "plain"), &st) == nil && st.Mode&(unix.S_ISUID|unix.S_ISGID) != 0
			}
			s.effect["a device on the host"] = func() bool {
				var st unix.Stat_t
				return unix.Lstat(filepath.Join(s.dir, "device"), &st) == nil
			}
			s.vars["dir"] = s.dir
		},
		program: `
D = V['dir'] if V['bare'] else '/data'
reads('denied', read, D + '/secret/key')
attempt('overwrite a hook', lambda: write(D + '/.git/hooks/pre-commit', b'#!'))
attempt('move the hooks away', lambda: os.rename(D + '/.git', D + '/.other'))
attempt('set-id on the host', lambda: os.chmod(D + '/plain', 0o6755))
attempt('a device on the host', lambda: os.mknod(D + '/device', 0o666 | stat.S_IFCHR, os.makedev(1, 3)))
twin('read', lambda: expect('open', read(D + '/open') == b'open'))
twin('write', lambda: write(D + '/new', b'new'))
twin('a link leads inside', lambda: expect('not the host', V['bare'] or b'sandbox' in read(D + '/out')))
`,
		blind: map[string]string{"a device on the host": "the control needs root; the row on devices has it"},
		controls: []control{
			{what: "what the policy says of it", policy: func(_ *scene, p *tranca.Policy) {
				p.Mounts[0].Deny, p.Mounts[0].Protect = nil, nil
			}, escapes: []string{"denied", "overwrite a hook"}},
			{what: "any boundary", escapes: []string{"set-id on the host", "move the hooks away"}},
		},
	}})
}
