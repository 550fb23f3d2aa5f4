package gvisor

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"testing"

	"tranca"
	"tranca/internal/guest/bootspec"
	"tranca/internal/hostiletest"
)

// TestHostileFiles tries the walls of the root: secrets, sockets, devices,
// handles, the runtime's own binaries.
func TestHostileFiles(t *testing.T) {
	runRows(t, []row{
		secretsRow(), environmentRow(), processRow(), socketRow(), runtimeRow(), deviceRow(), handleRow(), writableRow(), ttyRow(),
	})
}

// shownFolder is a control that shows the scene's folder, as by a mount left by
// mistake.
func shownFolder(s *scene, pl *plan) {
	pl.Boot.Binds = append(pl.Boot.Binds, bootspec.Bind{Source: s.dir, Target: "mnt"})
}

func secretsRow() row {
	return row{
		id: "FS-01", what: "read secrets of the host's users",
		scene: func(s *scene) {
			if err := os.WriteFile(filepath.Join(s.dir, "id_rsa"), []byte(s.canary), 0o644); err != nil {
				s.Fatal(err)
			}
			s.vars["dir"] = s.dir
		},
		program: `
def search(*roots):
    found = []
    for r in roots:
        for d, _, files in os.walk(r):
            for f in files:
                if f in ('id_rsa', '.netrc', 'credentials', 'config.json', 'shadow', '.bash_history'):
                    try: found.append(str(read(os.path.join(d, f))))
                    except OSError: pass
    expect('nothing found', found)
    return found
reads('by its path', search, V['dir'], '/mnt')
reads('by where others are', search, *(['/nowhere'] if V['bare'] else ['/root', '/home', '/var', '/etc', '/proc/1/root/root', '/proc/1/cwd/etc']))
twin('own file', lambda: (write('id_rsa', b'mine'), search('.')))
`,
		blind: map[string]string{"by where others are": "the canary is in no such place of a host; the first attempt stands for them"},
		controls: []control{
			{what: "the bounds of the root", weaken: shownFolder, escapes: []string{"by its path"}},
			{what: "any boundary", escapes: []string{"by its path"}},
		},
	}
}

func environmentRow() row {
	return row{
		id: "FS-02", what: "read the supervisor's variables",
		scene: func(s *scene) { s.Setenv("SECRET_TOKEN", s.canary) },
		program: `
reads('own environment', lambda: dict(os.environ))
reads('of all processes', lambda: [read(p, 1 << 16) for p in glob.glob('/proc/*/environ') if os.access(p, os.R_OK)])
twin('declared', lambda: os.environ['PATH'])
`,
		controls: []control{
			{what: "an own environment", weaken: func(_ *scene, pl *plan) { pl.agent.Env = append(pl.agent.Env, os.Environ()...) }},
		},
	}
}

func processRow() row {
	return row{
		id: "FS-04", what: "find processes of the host",
		scene: func(s *scene) { s.vars["pid"], s.vars["self"] = os.Getpid(), filepath.Base(os.Args[0]) },
		program: `
def lines():
    found = []
    for p in glob.glob('/proc/[0-9]*/cmdline'):
        try: found.append(open(p, 'rb').read())
        except OSError: pass # it has ended
    return found
def named():
    found = [c for c in lines() if V['mark'].encode() not in c and (V['self'].encode() in c or b'tranca-sentry' in c)]
    expect(lines(), found)
    return found
attempt('its command line', named)
def kill():
    # A sandbox can have a process of the same number; then it is its own.
    text = open('/proc/%d/cmdline' % V['pid'], 'rb').read()
    expect('it is here', V['self'].encode() in text and V['mark'].encode() not in text)
    os.kill(V['pid'], 0)
attempt('signal it', kill)
twin('own processes', lambda: expect('own', any(b'python3' in c for c in lines())))
`,
		controls: []control{{what: "any boundary"}},
	}
}

func socketRow() row {
	return row{
		id: "FS-05", what: "connect to the host's sockets: in a mounted folder, in one shown by mistake, by an abstract name",
		scene: func(s *scene) {
			path, abstract := &hostiletest.Listener{}, &hostiletest.Listener{}
			path.Serve(s, "unix", filepath.Join(s.dir, "docker.sock"))
			abstract.Serve(s, "unix", "@"+s.mark)
			s.policy.Mounts = []tranca.Mount{{Source: s.dir, Target: "/data"}}
			s.vars["dir"] = s.dir
			s.effect["by path"] = path.Hit
			s.effect["abstract"] = abstract.Hit
		},
		program: hostiletest.UnixSockets + `
attempt('by path', first, V['dir'] + '/docker.sock', '/data/docker.sock', '/mnt/docker.sock')
attempt('abstract', connect, '\0' + V['mark'])
twin('the folder', lambda: expect('seen', 'docker.sock' in os.listdir(V['dir'] if V['bare'] else '/data')))
`,
		controls: []control{{what: "any boundary"}},
	}
}

// runtimeRow tries to change what the next sandbox starts from.
func runtimeRow() row {
	digest := func(s *scene, f *os.File) string {
		sum := sha256.New()
		if _, err := io.Copy(sum, io.NewSectionReader(f, 0, 1<<30)); err != nil {
			s.Fatal(err)
		}
		return hex.EncodeToString(sum.Sum(nil))
	}
	return row{
		id: "FS-09", what: "open the runtime's own programs for writing",
		scene: func(s *scene) {
			agent, sentry := digest(s, s.b.agent), digest(s, s.b.sentry)
			s.effect["its bytes changed"] = func() bool {
				return digest(s, s.b.agent) != agent || digest(s, s.b.sentry) != sentry
			}
			// A copy that everybody may write stands for a runtime without care.
			copied := filepath.Join(s.dir, "runtime")
			if err := os.WriteFile(copied, []byte("ELF"), 0o777); err != nil {
				s.Fatal(err)
			}
			if err := os.Chmod(copied, 0o777); err != nil {
				s.Fatal(err)
			}
			s.vars["target"] = copied
			s.effect["a copy"] = func() bool {
				text, err := os.ReadFile(copied)
				return err != nil || string(text) != "ELF"
			}
		},
		program: `
def overwrite(*paths):
    for p in paths:
        try:
            fd = os.open(p, os.O_WRONLY)
            return os.write(fd, b'#!')
        except OSError as e: last = e
    raise last
attempt('its bytes changed', overwrite, '/proc/1/exe', '/proc/self/exe')
attempt('a copy', overwrite, V['target'], '/mnt/runtime')
twin('own file', lambda: (open('own', 'w').close(), overwrite('own')))
`,
		blind:    map[string]string{"its bytes changed": "the file is sealed, or not its owner's to write, for everybody"},
		controls: []control{{what: "any boundary", escapes: []string{"a copy"}}},
	}
}

// allowedDevices are gVisor's own. None of them is the host's: net/tun makes
// interfaces of gVisor's stack, fuse mounts in gVisor, and neither is the code's
// user's to use.
const allowedDevices = "['null', 'zero', 'full', 'random', 'urandom', 'tty', 'ptmx', 'pts', 'shm', 'fd', 'stdin', 'stdout', 'stderr', 'fuse', 'net', 'char']"

func deviceRow() row {
	return row{
		id: "FS-12", what: "devices of the host",
		program: `
def others():
    found = [d for d in os.listdir('/dev') if d not in ` + allowedDevices + `]
    expect('none but the allowed ones', found)
    return found
attempt('another device', others)
def make():
    os.mknod('disk', 0o600 | stat.S_IFBLK, os.makedev(8, 0))
    os.unlink('disk')
twin('null', lambda: os.write(os.open('/dev/null', os.O_WRONLY), b'x'))
twin('random', lambda: expect('random', len(read('/dev/urandom', 8))))
attempt('make one', make)
`,
		controls: []control{{what: "any boundary", root: true}},
	}
}

func handleRow() row {
	return row{
		id: "FS-20", what: "open a file of the host by its handle",
		scene: func(s *scene) {
			if err := os.WriteFile(filepath.Join(s.dir, "secret"), []byte(s.canary), 0o644); err != nil {
				s.Fatal(err)
			}
			s.vars["dir"] = s.dir
		},
		program: `
def handle(path):
    h = ctypes.create_string_buffer(struct.pack('Ii', 128, 0) + b'\0' * 128)
    mount = ctypes.c_int()
    call('name_to_handle_at', -100, ctypes.c_char_p(path.encode()), h, ctypes.byref(mount), 0)
    return h
def opened():
    root = os.open(V['dir'] if V['bare'] else '/usr', os.O_RDONLY)
    h = handle(V['dir'] + '/secret' if V['bare'] else '/usr/bin/python3')
    fd = call('open_by_handle_at', root, h, os.O_RDONLY)
    return os.read(fd, 100)
attempt('by handle', opened)
twin('by name', lambda: read('/usr/bin/env', 4))
`,
		controls: []control{{what: "any boundary", root: true}},
	}
}

func writableRow() row {
	return row{
		id: "DSK-04", what: "write every path",
		scene: func(s *scene) {
			s.vars["dir"] = s.dir
			if err := os.Chmod(s.dir, 0o777); err != nil {
				s.Fatal(err)
			}
			s.effect["on the host"] = func() bool {
				_, err := os.Stat(filepath.Join(s.dir, s.mark))
				return err == nil
			}
		},
		program: `
def places():
    found = []
    for d, folders, files in os.walk('/', onerror=lambda e: None):
        if d.startswith(('/proc', '/sys/')): folders[:] = []; continue
        if d.startswith(('/work', '/tmp', '/dev')) or d.count('/') > 3: folders[:] = []; continue
        try:
            open(os.path.join(d, V['mark']), 'w').close()
            os.unlink(os.path.join(d, V['mark']))
            found.append(d)
        except OSError: pass
    expect('nothing writable', found)
    return found
if V['bare']: attempt('a place', lambda: write(V['dir'] + '/x'))
else: attempt('a place', places)
attempt('on the host', lambda: [write(d + '/' + V['mark']) for d in (V['dir'], '/mnt') if os.path.isdir(d)][0])
for d in ('/work', '/tmp', '/dev/shm'):
    twin(d, write, (d if not V['bare'] else '.') + '/f')
`,
		controls: []control{{what: "any boundary"}},
	}
}

func ttyRow() row {
	return row{
		id: "OUT-13", what: "the terminal of who runs it",
		program: `
attempt('by name', lambda: os.write(os.open('/dev/tty', os.O_RDWR), b'x'))
twin('output', lambda: sys.stdout.fileno())
`,
		blind: map[string]string{"by name": "a test has no terminal; TestHostileOwnTerminal of the process backend has one, and the agent is the same"},
	}
}
