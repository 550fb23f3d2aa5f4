package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/confine"
	"tranca/internal/hostiletest"
	"tranca/internal/require"
)

// TestHostileShares tries what one sandbox could take from others or leave to
// them beside files and network: priorities, locked memory, keys, leases.
func TestHostileShares(t *testing.T) {
	runRows(t, []row{
		{
			id: "CPU-13", what: "real time, negative nice, other priorities",
			program: `
attempt('SCHED_FIFO', lambda: forked(lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))))
attempt('SCHED_RR', lambda: forked(lambda: os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))))
attempt('nice -5', lambda: forked(lambda: os.setpriority(os.PRIO_PROCESS, 0, -5)))
attempt('disk priority', lambda: forked(lambda: call('ioprio_set', 1, 0, 1 << 13)))
twin('nice 5', lambda: forked(lambda: os.nice(5)))
twin('SCHED_IDLE', lambda: forked(lambda: os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))))
`,
			holds:    []control{{what: "the filter", weaken: unfiltered}},
			controls: []control{{what: "any boundary", root: true}},
		},
		{
			id: "MEM-05", what: "lock memory, take huge pages",
			program: `
def lock(n):
    buf = ctypes.create_string_buffer(n)
    if libc.mlock(buf, n): raise OSError(ctypes.get_errno(), 'mlock')
attempt('mlock', lambda: forked(lock, 1 << 20))
attempt('mlockall', lambda: forked(lambda: (call('mlockall', 2), bytearray(4 << 20))[0]))
import mmap
attempt('MAP_HUGETLB', lambda: mmap.mmap(-1, 2 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40000))
attempt('MFD_HUGETLB', lambda: call('memfd_create', b'x', 4))
twin('lock a page', lambda: forked(lock, 4096))
`,
			blind: map[string]string{
				"MAP_HUGETLB": "only where the host has huge pages; " + ownRule, "mlockall": "what was mapped before counts too: see mlock",
				"MFD_HUGETLB": "only in kernels with hugetlbfs; " + ownRule,
			},
			controls: []control{{what: "RLIMIT_MEMLOCK", weaken: func(_ *scene, pl *plan) {
				for i := range pl.Boot.Rlimits {
					if r := &pl.Boot.Rlimits[i]; r.Resource == unix.RLIMIT_MEMLOCK {
						r.Soft, r.Hard = confine.HardLimit(r.Resource), confine.HardLimit(r.Resource)
					}
				}
			}}},
		},
		{
			id: "MEM-08", what: "use up the quota of keys", // a few: the control must not
			program: `
def fill():
    for i in range(5): call('add_key', b'user', b'tranca%d' % i, b'x' * 100, 100, -2)
attempt('fill', fill)
twin('ordinary memory', lambda: bytearray(1 << 20))
`,
			controls: []control{{what: "the filter", weaken: unfiltered}},
		},
		{
			id: "TEN-06", what: "leases and notices on shared files",
			program: `
signal.signal(signal.SIGIO, signal.SIG_IGN)
fd = os.open(os.getcwd() + '/leased', os.O_CREAT | os.O_RDONLY, 0o644)
attempt('lease', lambda: fcntl.fcntl(fd, 1024, fcntl.F_RDLCK))
attempt('directory notice', lambda: fcntl.fcntl(os.open('/usr/bin', os.O_RDONLY), 1026, 1))
twin('lock an own file', lambda: fcntl.flock(fd, fcntl.LOCK_EX))
`,
			controls: []control{{what: "the filter", weaken: unfiltered}},
		},
	})
}

// meeting is two programs in two sandboxes at a time.
type meeting struct {
	id, what      string
	first, second string
	// host: the control is one process on the host; otherwise it is one sandbox
	// for both programs, one after the other.
	host bool
}

// TestHostileMeetings lets one sandbox leave something and another look for it.
func TestHostileMeetings(t *testing.T) {
	b := newBackend(t)
	for _, m := range []meeting{
		{
			id: "TEN-01", what: "a token in the places that are written to",
			first: `
for d in ('/tmp', '/work', '/dev/shm', os.environ['HOME']): write(d + '/' + V['mark'], b'left')
for d in ('/var/tmp', '/usr/tmp', '/etc', '/run'):
    try: write(d + '/' + V['mark'], b'left')
    except OSError: pass`,
			second: `
for d in ('/tmp', '/work', '/dev/shm', '/var/tmp', '/run'):
    if d[1:4] not in ('var', 'run'): attempt('in ' + d, lambda: read(d + '/' + V['mark']))
twin('look', lambda: os.listdir('/tmp'))`,
		},
		{
			id: "TEN-03", what: "a process that was left running",
			first: `
if os.fork() == 0:
    os.setsid()
    os.closerange(0, 10)
    time.sleep(30)
os._exit(0)`,
			second: `
attempt('see it', lambda: [p for p in os.listdir('/proc') if p.isdigit() and int(p) not in (1, os.getpid()) and V['mark'].encode() in read('/proc/%s/cmdline' % p, 1 << 17)][0])
twin('see oneself', lambda: expect('own', V['mark'].encode() in read('/proc/self/cmdline', 1 << 17)))`,
		},
		{
			id: "TEN-04", what: "SysV and POSIX objects",
			first: `
call('shmget', V['key'], 4096, 0o1666)
call('msgget', V['key'], 0o1666)
try: call('mq_open', V['mark'].encode(), os.O_CREAT | os.O_RDWR, 0o666, ctypes.create_string_buffer(struct.pack('8q', 0, 2, 100, 0, 0, 0, 0, 0)))
except PermissionError: expect('by Landlock', not V['bare']) # no folder that is allowed holds them`,
			second: `
attempt('shared memory', lambda: call('shmctl', call('shmget', V['key'], 4096, 0o666), 0, 0))
attempt('message queue', lambda: call('msgctl', call('msgget', V['key'], 0o666), 0, 0))
attempt('POSIX queue', lambda: call('mq_unlink', V['mark'].encode()))
twin('an own one', lambda: call('shmctl', call('shmget', V['key'] + 1, 4096, 0o1666), 0, 0))`,
			host: true, // objects of another sandbox's user would be closed anyway
		},
	} {
		t.Run(m.id+" "+m.what, func(t *testing.T) { m.meet(t, b, false) })
		t.Run(m.id+" control", func(t *testing.T) {
			if m.host {
				m.bare(t, b)
			} else {
				m.meet(t, b, true)
			}
		})
	}
}

func (m *meeting) scene(t *testing.T, b *Backend, bare bool) *scene {
	s := (&row{}).newScene(t, b, bare)
	s.vars["key"] = int(s.mark[5])<<16 | int(s.mark[6])<<8 | int(s.mark[7])
	return s
}

func (m *meeting) meet(t *testing.T, b *Backend, same bool) {
	s := m.scene(t, b, false)
	one := s.open(nil)
	defer closeBox(t, one)
	if got := s.runIn(one, s.argv(m.first)...); !got.Exit.Success() {
		t.Fatalf("%s %s", got.Exit, got.Stderr)
	}
	two := one
	if !same {
		two = s.open(nil)
		defer closeBox(t, two)
	}
	got := &hostiletest.Report{}
	s.playIn(two, m.second, got)
	got.All(t, "in the second", same)
}

func (m *meeting) bare(t *testing.T, b *Backend) {
	s := m.scene(t, b, true)
	got := &hostiletest.Report{}
	s.playBare(m.first+m.second, got)
	got.All(t, "on the host", true)
}

// TestHostileStarvation has one sandbox at its limit of processes while another
// forks: PRC-07. The control is two processes of one user with a limit of that
// user.
func TestHostileStarvation(t *testing.T) {
	b := newBackend(t)
	s := (&row{}).newScene(t, b, false)
	s.policy.Limits.Processes = 40
	const hog = `
n = 0
try:
    while n < 200:
        if os.fork() == 0: signal.pause()
        n += 1
except BlockingIOError: pass
print('full', flush=True)
signal.pause()`
	const forks = `
for _ in range(20):
    if os.fork() == 0: time.sleep(0.5); os._exit(0)
print('forked')`
	one := s.open(nil)
	defer closeBox(t, one)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out := &hostiletest.Live{}
	if _, err := one.Start(ctx, tranca.Command{Args: s.argv(hog), Stdout: out}); err != nil {
		t.Fatal(err)
	}
	hostiletest.Eventually(t, "the first is at its limit", func() bool { return strings.Contains(out.String(), "full") })
	if got := s.whole(forks, nil); got.Stdout != "forked\n" {
		t.Errorf("the second: %s %q %q", got.Exit, got.Stdout, got.Stderr)
	}
	t.Run("control", func(t *testing.T) {
		require.Root(t)
		limited := func(program string) *exec.Cmd {
			argv := s.argv("resource.setrlimit(resource.RLIMIT_NPROC, (40, 40))\nos.setgid(60321)\nos.setuid(60321)\n" + program)
			cmd := exec.Command(argv[0], argv[1:]...)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
			return cmd
		}
		first, out := limited(hog), &hostiletest.Live{}
		first.Stdout = out
		if err := first.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unix.Kill(-first.Process.Pid, unix.SIGKILL); _ = first.Wait(); s.killMarked() }()
		hostiletest.Eventually(t, "the first is at its limit", func() bool { return strings.Contains(out.String(), "full") })
		if got, err := limited(forks).Output(); err == nil {
			t.Errorf("the second forks too: %q", got)
		}
	})
}

// TestHostileNoSwap looks from outside at what bounds swap: MEM-09. The control
// has no bound on memory.
func TestHostileNoSwap(t *testing.T) {
	b := newBackend(t)
	b.needs(t, "memory limit")
	for _, bounded := range []bool{true, false} {
		t.Run(fmt.Sprintf("bounded=%v", bounded), func(t *testing.T) {
			s := (&row{}).newScene(t, b, false)
			sb := s.open(func(_ *scene, pl *plan) {
				if !bounded {
					pl.Groups.Memory = 0
				}
			})
			defer closeBox(t, sb)
			out := &hostiletest.Live{}
			if _, err := sb.Start(t.Context(), tranca.Command{Args: s.argv("print('up', flush=True)\nsignal.pause()"), Stdout: out}); err != nil {
				t.Fatal(err)
			}
			hostiletest.Eventually(t, "it runs", func() bool { return out.String() != "" })
			swap, found := swapBeyond(t, s.marked()[0], s.policy.Limits.Memory)
			if found != bounded || (bounded && swap) {
				t.Errorf("a bound was found: %v; it can swap: %v", found, swap)
			}
		})
	}
}

// swapBeyond reports whether a process may swap beyond its memory limit, and
// whether there is a group with that limit at all.
func swapBeyond(t *testing.T, pid int, limit int64) (swaps, found bool) {
	t.Helper()
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		t.Fatal(err)
	}
	is := func(path, want string) (same, there bool) {
		got, err := os.ReadFile(path)
		return strings.TrimSpace(string(got)) == want, err == nil
	}
	text := fmt.Sprint(limit)
	for line := range strings.Lines(string(groups)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if f[1] == "memory" {
			dir := filepath.Join("/sys/fs/cgroup/memory", f[2])
			if same, _ := is(dir+"/memory.limit_in_bytes", text); same {
				found = true
				same, there := is(dir+"/memory.memsw.limit_in_bytes", text)
				swaps = there && !same
			}
		}
		if f[0] == "0" {
			dir := filepath.Join("/sys/fs/cgroup", f[2])
			if same, _ := is(dir+"/memory.max", text); same {
				found = true
				same, there := is(dir+"/memory.swap.max", "0")
				swaps = there && !same
			}
		}
	}
	return swaps, found
}
