package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tranca/internal/guest/bootspec"
	"tranca/internal/hostiletest"
)

// TestHostileSecrets looks for what the host and its users keep to themselves.
func TestHostileSecrets(t *testing.T) { runRows(t, secretRows()) }

func secretRows() []row {
	return []row{
		{
			id: "FS-01", what: "read secrets of the host's users",
			scene: func(s *scene) { s.vars["paths"] = s.plant() },
			program: `
for label, path in V['paths'].items():
    reads('in ' + label, lambda: read(path))
reads('search', lambda: [read(p) for d in ('/tmp', '/var/tmp', '/run', '/dev/shm', '/root', '/etc', '/opt') for p in glob.glob(d + '/tranca-secret-*') + glob.glob(d + '/*/*/tranca-secret-*')])
attempt('/etc/shadow', lambda: expect('a user', b':' in read('/etc/shadow')))
attempt('users of the host', lambda: expect('more users', len(open('/etc/passwd').readlines()) > 4))
attempt('boot arguments', lambda: expect('arguments', len(read('/proc/cmdline')) > 0))
twin('read a file of the image', lambda: read('/usr/bin/env', 4))
`,
			blind: map[string]string{"/etc/shadow": "an unprivileged user can't read it either"},
			controls: []control{
				{what: "any boundary", root: true, escapes: []string{"/etc/shadow", "in home", "in etc", "in root"}},
				{what: "any boundary"},
			},
		},
		{
			id: "FS-01", what: "read secrets in a folder that is not mounted",
			scene: func(s *scene) { s.vars["paths"] = s.plant() },
			program: `
reads('in a folder', lambda: read('/mnt/' + os.path.basename(V['paths']['folder'])))
reads('by parents', lambda: read('/work/../../../..' + V['paths']['folder']))
reads('by init', lambda: read('/proc/1/root' + V['paths']['folder']))
reads('by oneself', lambda: read('/proc/self/root' + V['paths']['folder']))
twin('list a folder', lambda: os.listdir('/tmp'))
`,
			blind: map[string]string{
				"by parents": "the root's own .. is itself, whatever is mounted", "by oneself": "the same",
				"by init": "shown by KRN-07",
			},
			controls: []control{{what: "the bounds of the root", weaken: func(s *scene, pl *plan) {
				pl.Boot.Binds = append(pl.Boot.Binds, bootspec.Bind{Source: s.dir, Target: "mnt"})
			}}},
		},
		{
			id: "FS-02", what: "see variables that nobody declared",
			scene: func(s *scene) {
				s.Setenv("TRANCA_TEST_SECRET", s.canary)
				s.policy.Env = map[string]string{"DECLARED": "yes"}
			},
			program: `
reads('environ', lambda: dict(os.environ))
reads('/proc/self/environ', lambda: read('/proc/self/environ', 1 << 17))
attempt('undeclared names', lambda: expect('more', set(os.environ) - {'DECLARED', 'HOME', 'PATH', 'USER', 'LOGNAME', 'LANG', 'TMPDIR', 'PWD', 'LC_CTYPE'}))
twin('declared', lambda: expect('DECLARED', V['bare'] or os.environ['DECLARED'] == 'yes'))
`,
			controls: []control{
				{what: "an own environment", weaken: func(_ *scene, pl *plan) { pl.Boot.Env = append(pl.Boot.Env, os.Environ()...) }},
			},
		},
		agentEnvironmentRow(), processesRow(),
		{
			id: "FS-10", what: "open the kernel's own files",
			scene: func(s *scene) {
				for _, p := range kernelFiles {
					if _, err := os.Stat(p); err != nil {
						s.blind["read "+p], s.blind["write "+p] = "not on this host", "not on this host"
					}
				}
				s.vars["paths"] = kernelFiles
			},
			program: `
for path in V['paths']:
    if not path.startswith('/proc/sys/'):
        attempt('read ' + path, lambda: expect('something', os.listdir(path) if os.path.isdir(path) else read(path, 64)))
    attempt('write ' + path, lambda: os.close(os.open(path, os.O_WRONLY)))
twin('read the version', lambda: read('/proc/version'))
`,
			blind: map[string]string{
				"read /proc/sysrq-trigger": "nothing can be read there", "read /proc/kmsg": "reading it takes messages from the host's log",
				"write /proc/kcore": "not writable", "write /proc/keys": "not writable", "write /proc/timer_list": "not writable",
				"write /proc/kallsyms": "not writable", "write /proc/interrupts": "not writable", "write /proc/cmdline": "not writable",
				"write /proc/kmsg": "not writable", "write /proc/vmallocinfo": "not writable", "write /sys/firmware": "a folder",
				"write /sys/kernel/debug": "a folder", "read /sys/kernel/debug": "empty where debugfs is not mounted",
				"read /proc/kcore": "it needs a capability that root may lack", "read /sys/kernel/uevent_helper": "empty on most hosts",
			},
			controls: []control{{what: "any boundary", root: true}},
		},
		traceRow(),
	}
}

var kernelFiles = []string{
	"/proc/sysrq-trigger", "/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/kallsyms", "/proc/interrupts",
	"/proc/cmdline", "/proc/kmsg", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/vmallocinfo", "/sys/firmware", "/sys/kernel/debug", "/sys/kernel/uevent_helper",
}

// plant puts the canary where users and services keep secrets, as far as this
// user may write there, and returns the paths by a word for each.
func (s *scene) plant() map[string]string {
	s.Helper()
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/"
	}
	paths := map[string]string{}
	for label, dir := range map[string]string{
		"folder": s.dir, "home": home, "var": "/var/tmp", "run": "/run", "shm": "/dev/shm", "etc": "/etc", "root": "/root",
	} {
		p := filepath.Join(dir, "tranca-secret-"+s.mark)
		if os.WriteFile(p, []byte(s.canary), 0o644) != nil {
			continue
		}
		s.Cleanup(func() { os.Remove(p) })
		paths[label] = p
	}
	return paths
}

// agentEnvironmentRow looks for what the launcher had in its environment; the
// agent and with it the namespace's init start with nothing of it.
func agentEnvironmentRow() row {
	return row{
		id: "FS-03", what: "read the environment of the first process",
		program: `
attempt('of init', lambda: expect('some', read('/proc/1/environ', 1 << 17)))
attempt('of the parent', lambda: expect('some', read('/proc/%d/environ' % os.getppid(), 1 << 17)))
twin('of oneself', lambda: read('/proc/self/environ'))
`,
		check: func(s *scene, _ *hostiletest.Report) {
			sb := s.open(nil)
			defer closeBox(s, sb)
			for _, pid := range children(s, os.Getpid()) {
				env, err := os.ReadFile("/proc/" + pid + "/environ")
				if err == nil && len(env) > 0 && string(env) != "GOMAXPROCS=1\x00GOMEMLIMIT=44MiB\x00" {
					s.Errorf("process %s has an environment: %q", pid, env)
				}
			}
		},
		blind:    map[string]string{"of init": "there is none on the bare host; the agent's is looked at from outside"},
		controls: []control{{what: "any boundary", escapes: []string{"of the parent"}}},
	}
}

// processesRow looks at a process of the host, and at all of them.
func processesRow() row {
	return row{
		id: "FS-04", what: "look at processes of the host",
		scene: func(s *scene) {
			cmd := exec.Command("/usr/bin/python3", "-I", "-c", "import time; time.sleep(60)", s.canary)
			cmd.Env = []string{"SECRET=" + s.canary}
			cmd.Dir = s.TempDir()
			if err := cmd.Start(); err != nil {
				s.Fatal(err)
			}
			s.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
			s.vars["dir"] = filepath.Base(cmd.Dir)
			s.vars["pid"] = cmd.Process.Pid
		},
		program: `
def each(name, f):
    found = []
    for p in os.listdir('/proc'):
        if p.isdigit() and int(p) != os.getpid():
            try: found.append(f('/proc/%s/%s' % (p, name)))
            except OSError: pass
    return found
for name in ('cmdline', 'environ'):
    reads(name, lambda: [x[-200:] for x in each(name, lambda p: read(p, 1 << 16)) if b'canary-' in x[-200:]])
attempt('maps', lambda: [x for x in each('maps', lambda p: read(p)) if x][0])
attempt('cwd', lambda: [x for x in each('cwd', os.readlink)][0])
attempt('root', lambda: [x for x in each('root', os.readlink)][0])
attempt('more than init', lambda: [p for p in os.listdir('/proc') if p.isdigit() and int(p) not in (1, os.getpid())][0])
attempt('signal it', lambda: os.kill(V['pid'], 0))
twin('own command line', lambda: expect('mark', V['mark'].encode() in read('/proc/self/cmdline', 1 << 17)))
`,
		controls: []control{{what: "an own pid namespace"}},
	}
}

// traceRow looks for traces of the host in what the kernel tells everybody.
// What stays visible is in docs/SECURITY.md.
func traceRow() row {
	return row{
		id: "TEN-09", what: "find traces of the host: names, users, cgroups, folders",
		scene: func(s *scene) {
			host, err := os.Hostname()
			if err != nil {
				s.Fatal(err)
			}
			s.vars["host"] = host
			s.policy.Hostname = "box"
			if cgroups, err := os.ReadFile("/proc/self/cgroup"); err != nil || !strings.Contains(strings.ReplaceAll(string(cgroups), ":/\n", ""), "/") {
				s.blind["cgroup path"] = "the host's own path is the root"
			}
		},
		program: `
attempt('host name', lambda: expect('it', V['host'] in (os.uname().nodename, socket.gethostname(), read('/proc/sys/kernel/hostname', 99).decode().strip())))
attempt('cgroup path', lambda: expect('a path', [l for l in open('/proc/self/cgroup') if not l.endswith(':/\n')]))
attempt('the word tranca', lambda: expect('it', any('tranca' in open('/proc/self/' + f).read() for f in ('cgroup', 'mountinfo', 'status', 'maps')) or 'tranca' in str(dict(os.environ))))
attempt('first process', lambda: expect('not init', read('/proc/1/cmdline', 1 << 16).strip(b'\0') != b'init' and V['bare']))
attempt('interfaces', lambda: expect('more', len(open('/proc/net/dev').readlines()) > 3))
attempt('unix sockets', lambda: expect('some', len(open('/proc/net/unix').readlines()) > 1))
attempt('mounts of the host', lambda: expect('some', any(l.split()[4] in ('/', '/sys', '/run', '/home', '/var') and l.split()[3] == '/' and ' - tmpfs none' not in l for l in open('/proc/self/mountinfo'))))
attempt('audit user', lambda: expect('one', int(read('/proc/self/loginuid')) not in (0xffffffff,)))
twin('own name', lambda: expect('box', V['bare'] or os.uname().nodename == 'box'))
`,
		blind: map[string]string{
			"the word tranca": "it is in no path of a host without tranca", "audit user": "set by a login only",
			"first process": "a container's may be called init", "unix sockets": "a bare host may have none",
		},
		controls: []control{{what: "any boundary"}},
	}
}
