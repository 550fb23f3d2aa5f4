package process

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"tranca/internal/guest/bootspec"
	"tranca/internal/hostiletest"
)

// TestHostileFiles tries the walls of the root: devices, mounts, handles,
// sockets, cgroups.
func TestHostileFiles(t *testing.T) { runRows(t, fileRows()) }

func fileRows() []row {
	return []row{
		socketRow(), runtimeRow(), deviceRow(), mountRow(), chrootRow(), cgroupRow(), handleRow(), writableRow(), ttyRow(),
	}
}

// socketRow tries to reach services of the host by their sockets: in a folder
// that was left visible by mistake, and by abstract names.
func socketRow() row {
	return row{
		id: "FS-05", what: "connect to the host's sockets by path and by abstract name",
		scene: func(s *scene) {
			path, abstract := &hostiletest.Listener{}, &hostiletest.Listener{}
			path.Serve(s, "unix", filepath.Join(s.dir, "docker.sock"))
			abstract.Serve(s, "unix", "@"+s.mark)
			s.vars["path"] = filepath.Join(s.dir, "docker.sock")
			s.effect["by path"] = path.Hit
			s.effect["abstract"] = abstract.Hit
		},
		program: hostiletest.UnixSockets + `
attempt('by path', first, V['path'], '/mnt/docker.sock')
attempt('abstract', connect, '\0' + V['mark'])
attempt('known services', first, '/var/run/docker.sock', '/run/containerd/containerd.sock', '/run/podman/podman.sock', '/run/dbus/system_bus_socket', '/run/systemd/private')
`,
		blind: map[string]string{"known services": "a host may have none of them; the first attempt is one"},
		controls: []control{
			{what: "the bounds of the root", weaken: func(s *scene, pl *plan) {
				pl.Boot.Binds = append(pl.Boot.Binds, bootspec.Bind{Source: s.dir, Target: "mnt"})
			}, escapes: []string{"by path"}},
			{what: "any boundary"},
		},
	}
}

// runtimeRow tries to change the program that the next sandbox starts from.
func runtimeRow() row {
	digest := func(s *scene) string {
		sum := sha256.New()
		if _, err := io.Copy(sum, io.NewSectionReader(s.b.image, 0, 1<<30)); err != nil {
			s.Fatal(err)
		}
		return hex.EncodeToString(sum.Sum(nil))
	}
	return row{
		id: "FS-09", what: "open the runtime's own program for writing",
		scene: func(s *scene) {
			s.vars["target"] = "/proc/1/exe"
			before := digest(s)
			s.effect["its bytes changed"] = func() bool { return digest(s) != before }
		},
		program: `
def hold():
    pid = os.fork()
    if pid == 0:
        time.sleep(60)
        os._exit(0)
    try: return os.open(V['target'] or '/proc/%d/exe' % pid, os.O_RDONLY)
    finally: os.kill(pid, 9); os.waitpid(pid, 0)
attempt('hold it open', hold)
attempt('open it for writing', lambda: os.open(V['target'], os.O_WRONLY))
attempt('its bytes changed', lambda: os.write(os.open('/proc/self/fd/%d' % hold(), os.O_WRONLY), b'#!/bin/sh\n'))
attempt('own interpreter', lambda: os.open('/proc/self/exe', os.O_RDWR))
twin('read own interpreter', lambda: read('/proc/self/exe', 4))
`,
		controls: []control{{what: "init as its target", vars: map[string]any{"target": ""}, escapes: []string{"hold it open"}}},
		blind: map[string]string{
			"open it for writing": "the kernel refuses to write to a running program", "own interpreter": "the same",
			"its bytes changed": "the file is sealed, which the check below tries with a control of its own",
		},
		check: func(s *scene, _ *hostiletest.Report) {
			if _, err := s.b.image.WriteAt([]byte("#!"), 0); err == nil {
				s.Error("the agent's image can be written to by the supervisor itself")
			}
			fd, err := unix.MemfdCreate("unsealed", 0)
			if err != nil {
				s.Fatal(err)
			}
			defer unix.Close(fd)
			if _, err := unix.Write(fd, []byte("x")); err != nil {
				s.Errorf("control: an unsealed file can't be written to: %v", err)
			}
		},
	}
}

func deviceRow() row {
	return row{
		id: "FS-12", what: "find and make devices",
		program: `
ALLOWED = {'null', 'zero', 'full', 'random', 'urandom', 'tty', 'shm', 'fd', 'stdin', 'stdout', 'stderr', 'pts', 'ptmx'}
def listed():
    more = set(os.listdir('/dev')) - ALLOWED
    expect('more', more)
    return more
attempt('more devices', listed)
for name in ('mem', 'kmsg', 'kvm', 'fuse', 'net/tun', 'vda', 'sda', 'loop0'):
    attempt('open ' + name, lambda: os.open('/dev/' + name, os.O_RDONLY | os.O_NONBLOCK))
home = os.getcwd()
attempt('mknod', lambda: os.mknod(home + '/null', 0o666 | stat.S_IFCHR, os.makedev(1, 3)))
attempt('mknod whiteout', lambda: os.mknod(home + '/white', 0o666 | stat.S_IFCHR, 0))
attempt('mknod block', lambda: os.mknod(home + '/disk', 0o666 | stat.S_IFBLK, os.makedev(7, 0)))
twin('use a device', lambda: expect('zero', read('/dev/zero', 2) == b'\0\0' and write('/dev/null') == 1))
twin('make a FIFO', lambda: os.mkfifo(home + '/fifo'))
`,
		blind: map[string]string{
			"open mem": "not on every host", "open kmsg": "not on every host", "open kvm": "not on every host",
			"open fuse": "not on every host", "open net/tun": "not on every host", "open vda": "not on every host",
			"open sda": "not on every host", "open loop0": "not on every host",
			"mknod": onlyRoot, "mknod block": onlyRoot,
		},
		controls: []control{
			{what: "the filter", weaken: unfiltered, escapes: []string{}},
			{what: "any boundary", root: true, escapes: []string{"mknod", "mknod block", "mknod whiteout", "more devices"}},
			{what: "any boundary", escapes: []string{"more devices"}},
		},
	}
}

// mountRow changes the tree. What an attacker does first is to become root in
// a user namespace of its own; the control lets it.
func mountRow() row {
	return row{
		id: "FS-13", what: "mount, unmount, remount, pivot",
		program: `
def inside(f):
    "In new namespaces, where the filter allows them."
    def g():
        try: call('unshare', 0x10000000 | 0x20000)
        except OSError: pass
        return f()
    return forked(g)
home = os.getcwd()
os.mkdir(home + '/new')
def mounted():
    call('mount', b'none', (home + '/new').encode(), b'tmpfs', 0, 0)
    expect('seen', 'tmpfs' in [l.split(' - ')[1].split()[0] for l in open('/proc/self/mountinfo') if l.split()[4] == home + '/new'])
def pivoted():
    mounted()
    os.chdir(home + '/new')
    call('pivot_root', b'.', b'.')
def made():
    fs = call('fsopen', b'tmpfs', 0)
    call('fsconfig', fs, 6, 0, 0, 0)
    m = call('fsmount', fs, 0, 0)
    call('move_mount', m, b'', -100, (home + '/new').encode(), 4)
def cloned():
    t = call('open_tree', -100, b'/usr', 1 | 0x8000)
    call('move_mount', t, b'', -100, (home + '/new').encode(), 4)
def unmasked():
    for p in (b'/proc/keys', b'/proc/kallsyms', b'/proc'):
        call('umount2', p, 2)
def writable():
    call('mount', b'none', b'/usr', 0, 32 | 4096, 0)
attempt('mount', inside, mounted)
attempt('pivot_root', inside, pivoted)
attempt('fsopen', inside, made)
attempt('open_tree', inside, cloned)
attempt('umount', inside, unmasked)
attempt('remount', inside, writable)
attempt('the table changed', lambda: expect('it', any(l.split()[4].endswith('/new') for l in open('/proc/self/mountinfo'))))
twin('make a folder', lambda: os.mkdir(home + '/other'))
`,
		holds: []control{{what: "the filter", weaken: unfiltered}, {what: "Landlock", weaken: unlocked}},
		blind: map[string]string{
			"umount":            "the kernel locks what came with the sandbox, also against a new namespace's root",
			"remount":           "the kernel locks the read-only flag too",
			"the table changed": "the control's own changes are in a namespace that has ended",
		},
		controls: []control{{what: "filter and Landlock", weaken: all(unfiltered, unlocked)}},
	}
}

// chrootRow walks out of a root by a descriptor from before. The control's
// jail is a chroot and nothing more.
func chrootRow() row {
	return row{
		id: "FS-14", what: "walk out of the root by chroot and fchdir",
		scene: func(s *scene) {
			s.vars["canary"] = s.plant()["folder"]
			s.vars["dir"] = s.dir
		},
		program: `
def walk():
    if V['bare']:
        os.mkdir(V['dir'] + '/jail')
        os.mkdir(V['dir'] + '/jail/sub')
        os.chroot(V['dir'] + '/jail')
        os.chdir('/')
    else:
        try: call('unshare', 0x10000000)
        except OSError: pass
        os.chdir('/work')
        os.mkdir('sub')
    fd = os.open('.', os.O_RDONLY)
    try: os.chroot('sub')
    except OSError: pass
    os.fchdir(fd)
    for _ in range(64): os.chdir('..')
    try: os.chroot('.')
    except OSError: pass
    return read('/' + V['canary'])
reads('walk out', lambda: forked(walk))
twin('fchdir', lambda: os.fchdir(os.open('.', os.O_RDONLY)))
`,
		holds:    []control{{what: "filter and Landlock", weaken: all(unfiltered, unlocked)}},
		controls: []control{{what: "an own mount namespace", root: true}},
	}
}

func cgroupRow() row {
	return row{
		id: "FS-15", what: "see and change cgroups",
		program: `
def found():
    for d in ('/sys/fs/cgroup', '/mnt'):
        more = glob.glob(d + '/*/cgroup.procs') + glob.glob(d + '/cgroup.procs')
        if more: return more[0]
    raise OSError('none')
attempt('see', found)
attempt('open one for writing', lambda: os.open(found(), os.O_WRONLY))
attempt('make one', lambda: (os.mkdir(os.path.dirname(found()) + '/hostile-' + V['mark']), os.rmdir(os.path.dirname(found()) + '/hostile-' + V['mark'])))
attempt('a mount of one', lambda: [l for l in open('/proc/self/mountinfo') if ' - cgroup' in l][0])
def mounted():
    # Where it works, which is in the control, the host's own mounts stay as they are.
    try:
        call('unshare', 0x20000)
        call('mount', b'none', b'/', 0, 0x44000, 0)
    except OSError: pass
    call('mount', b'none', b'/tmp', b'cgroup2', 0, 0)
attempt('mount one', lambda: forked(mounted))
def descriptor():
    for fd in os.listdir('/proc/self/fd'):
        try: target = os.readlink('/proc/self/fd/' + fd)
        except OSError: continue
        if 'cgroup' in target or 'tasks' in target: return target
    raise OSError('none')
attempt('a descriptor of one', descriptor)
attempt('release_agent', lambda: os.open(glob.glob('/sys/fs/cgroup/*/release_agent')[0], os.O_WRONLY))
twin('own membership', lambda: read('/proc/self/cgroup'))
`,
		blind: map[string]string{
			"open one for writing": onlyRoot, "make one": onlyRoot, "release_agent": onlyRoot + ", and only under version 1",
			"mount one": onlyRoot, "a descriptor of one": "package forkexec tests that no descriptor survives its exec",
			"a mount of one": "a container may have none",
		},
		controls: []control{
			{what: "the bounds of the root", weaken: func(_ *scene, pl *plan) {
				pl.Boot.Binds = append(pl.Boot.Binds, bootspec.Bind{Source: "/sys/fs/cgroup", Target: "mnt"})
			}, escapes: []string{"see"}},
			{what: "any boundary", root: true, escapes: []string{"see", "open one for writing"}},
		},
	}
}

// handleRow opens a file of the host by its handle, which passes every path.
// The handle is a right one, so that nothing has to be guessed.
func handleRow() row {
	return row{
		id: "FS-20", what: "open a host file by handle",
		scene: func(s *scene) {
			secret := s.plant()["folder"]
			h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, secret, 0)
			if err != nil {
				s.Fatal(err)
			}
			s.vars["type"], s.vars["handle"] = h.Type(), hex.EncodeToString(h.Bytes())
		},
		program: `
def opened(at):
    h = bytes.fromhex(V['handle'])
    fd = call('open_by_handle_at', os.open(at, os.O_RDONLY), ctypes.create_string_buffer(struct.pack('Ii', len(h), V['type']) + h), 0)
    return os.read(fd, 100)
for at in ('/usr', '/etc', '/tmp'):
    reads('at ' + at, opened, at)
attempt('make a handle', lambda: call('name_to_handle_at', -100, b'/usr', ctypes.create_string_buffer(struct.pack('Ii', 128, 0).ljust(136, b'\0')), ctypes.create_string_buffer(8), 0))
twin('open by path', lambda: os.open('/usr', os.O_RDONLY))
`,
		blind: map[string]string{
			"at /usr": onlyRoot, "at /etc": onlyRoot, "at /tmp": onlyRoot,
		},
		controls: []control{
			{what: "the filter", weaken: unfiltered, escapes: []string{"make a handle"}},
			{what: "any boundary", root: true, escapes: []string{"at /tmp"}},
		},
	}
}

// writableRow tries to write everywhere.
func writableRow() row {
	return row{
		id: "DSK-04 DSK-05", what: "write outside of the declared places, hard links across them",
		program: `
OWN = ('/work', '/tmp', '/dev/shm')
def writable():
    for d, dirs, files in os.walk('/'):
        if d.startswith('/proc/') or d in OWN:
            dirs[:] = []
            continue
        if d.startswith('/usr/') and d.count('/') > 3: dirs[:] = []
        for f in files[:3]:
            try: os.close(os.open(os.path.join(d, f), os.O_WRONLY | os.O_NONBLOCK)); yield os.path.join(d, f)
            except OSError: pass
        try: write(d + '/hostile'); os.unlink(d + '/hostile'); yield d
        except OSError: pass
def beyond():
    more = [p for p in writable() if p not in ('/dev/null', '/dev/zero', '/dev/full', '/dev/random', '/dev/urandom', '/dev/tty', '/dev/stdin', '/dev/stdout', '/dev/stderr', '/dev/ptmx', '/dev/pts/ptmx')]
    expect('some', more)
    return more[:5]
if not V['bare']:
    attempt('write beyond', beyond)
attempt('hard link', lambda: os.link('/usr/bin/env', '/work/env'))
attempt('hard link by descriptor', lambda: call('linkat', -100, b'/proc/self/fd/%d' % os.open('/usr/bin/env', os.O_RDONLY), -100, b'/work/env2', 0x400))
def by_memory():
    import mmap
    m = mmap.mmap(os.open('/usr/bin/env', os.O_RDONLY), 4096, mmap.MAP_SHARED, mmap.PROT_READ)
    at = next(int(l.split('-')[0], 16) for l in open('/proc/self/maps') if l.rstrip().endswith('/usr/bin/env'))
    fd = os.open('/proc/self/mem', os.O_RDWR)
    os.pwrite(fd, b'evil', at)
attempt('by own memory', by_memory)
attempt('rename', lambda: os.rename('/usr/bin/env', '/usr/bin/env2'))
attempt('truncate', lambda: os.truncate('/usr/bin/env', 0))
attempt('chmod', lambda: os.chmod('/usr/bin/env', 0o777))
attempt('touch', lambda: os.utime('/usr/bin/env'))
for d in OWN:
    twin('write to ' + d, lambda: write(d + '/f'))
twin('hard link of an own file', lambda: os.link('/work/f', '/work/g'))
`,
		blind: map[string]string{
			"rename": "files of the image are root's: nobody else may anyway", "truncate": "the same", "chmod": "the same",
			"touch": "the same", "hard link": "the image is another file system; DSK-05 in a mount has a control",
			"hard link by descriptor": "the same", "by own memory": "the kernel refuses it for a shared mapping",
		},
		controls: []control{{what: "read-only mounts", escapes: []string{"write beyond"}, weaken: func(s *scene, pl *plan) {
			if err := os.Chmod(s.dir, 0o777); err != nil {
				s.Fatal(err)
			}
			pl.Boot.Binds = append(pl.Boot.Binds, bootspec.Bind{Source: s.dir, Target: "mnt", Writable: true})
		}}},
	}
}

// ttyRow tries to reach a terminal of the host and to type there.
func ttyRow() row {
	return row{
		id: "OUT-13", what: "open the terminal and type into it",
		scene: func(s *scene) {
			if s.bare {
				s.tty = terminal(s)
			}
		},
		program: `
attempt('open /dev/tty', lambda: os.open('/dev/tty', os.O_RDWR))
attempt('a session of the host', lambda: expect('a terminal', os.tcgetpgrp(0) > 0))
attempt('type', lambda: fcntl.ioctl(os.open('/dev/tty', os.O_RDWR), 0x5412, b'x'))
twin('standard input', lambda: V['bare'] or os.read(0, 1))
`,
		blind: map[string]string{
			"type": "dev.tty.legacy_tiocsti may refuse it; " + ownRule,
		},
		controls: []control{{what: "an own session"}},
	}
}

// terminal makes a terminal and returns the end that a program is given.
func terminal(s *scene) *os.File {
	s.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		s.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		s.Fatal(err)
	}
	slave, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { slave.Close() })
	return slave
}
