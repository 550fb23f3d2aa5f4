//go:build tranca_weaken

package hostiletest

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
)

// Alive ends a program of a Loss: an allowed act, which works both times.
const Alive = "\ntwin('ordinary work', lambda: write('own'))\n"

// Losses are those that are shown the same way of every backend that has the
// guarantee at all. What goes beyond a limit is small all the same, since
// nothing else bounds it then.
func Losses() []Loss {
	return append(lostTree(), lostLimits()...)
}

func lostTree() []Loss {
	return []Loss{
		{
			Item: tranca.ItemFiles,
			Scene: func(s *Stage) {
				s.Open()
				s.Effect["destroy"] = func() bool { return !s.Exists("victim")() }
			},
			Program: `
reads('read', read, V['dir'] + '/secret')
attempt('destroy', lambda: os.unlink(V['dir'] + '/victim'))` + Alive,
		},
		{
			Item: tranca.ItemMounts,
			Scene: func(s *Stage) {
				s.Open()
				s.Policy.Mounts = []tranca.Mount{{Source: s.Dir, Target: "/ro", Deny: []string{"denied"}}}
				s.Effect["write"] = s.Exists("ro")
			},
			Program: `
attempt('write', lambda: write('/ro/ro'))
reads('what is denied', read, '/ro/denied/secret')` + Alive,
		},
		{
			Item: tranca.ItemMountDisk,
			Scene: func(s *Stage) {
				s.Policy.Mounts = []tranca.Mount{{Source: s.Dir, Target: "/ro"}}
				s.Effect["fill"] = s.Exists("big")
			},
			Program: "\nattempt('fill', lambda: write('/ro/big', bytes(1 << 20)))" + Alive,
		},
		{
			Item: tranca.ItemProtect,
			Scene: func(s *Stage) {
				hook := filepath.Join(s.Dir, ".git/hooks/pre-commit")
				if err := os.MkdirAll(filepath.Dir(hook), 0o755); err != nil {
					s.Fatal(err)
				}
				if err := os.WriteFile(hook, []byte("own"), 0o644); err != nil {
					s.Fatal(err)
				}
				s.Policy.Mounts = []tranca.Mount{{
					Source: s.Dir, Target: "/p", Writable: true, DiskUnbounded: true, Protect: []string{".git/hooks"},
				}}
				s.Effect["plant"] = func() bool {
					got, err := os.ReadFile(hook)
					return err == nil && string(got) == "evil"
				}
			},
			Program: "\nattempt('plant', lambda: os.write(os.open('/p/.git/hooks/pre-commit', os.O_WRONLY | os.O_TRUNC), b'evil'))" + Alive,
		},
		{
			Item:    tranca.ItemSyscalls,
			Program: "\nattempt('netlink', lambda: socket.socket(16, socket.SOCK_RAW, 0))" + Alive,
		},
		{
			Item:    tranca.ItemEnvironment,
			Scene:   func(s *Stage) { s.TB.(*testing.T).Setenv("TRANCA_TEST_SECRET", s.Canary) },
			Program: "\nreads('a variable of the host', lambda: os.environ['TRANCA_TEST_SECRET'])" + Alive,
		},
		{
			Item:    tranca.ItemHostname,
			Scene:   (*Stage).Hostname,
			Program: "\nattempt('its name', lambda: expect('it', os.uname().nodename == V['host']))" + Alive,
		},
	}
}

// CopyLoss is that of backends that always have mounts of mode cow.
func CopyLoss() Loss {
	return Loss{
		Item: tranca.ItemMounts,
		Scene: func(s *Stage) {
			s.Policy.Mounts = []tranca.Mount{{Source: s.Dir, Target: "/cow", Cow: true}}
			s.Effect["write through a copy"] = s.Exists("new")
		},
		Program: "\nattempt('write through a copy', lambda: write('/cow/new'))" + Alive,
	}
}

// MountedDeviceLoss is that of backends that are given a device in a mount: one
// that gVisor has none of its own for.
func MountedDeviceLoss() Loss {
	return Loss{
		Item: tranca.ItemDevices, Root: true,
		Scene: func(s *Stage) {
			var st unix.Stat_t
			err := unix.Stat("/dev/loop-control", &st)
			path := filepath.Join(s.Dir, "loop-control")
			if err == nil {
				err = unix.Mknod(path, unix.S_IFCHR, int(st.Rdev))
			}
			if err == nil {
				err = os.Chmod(path, 0o666)
			}
			if err != nil {
				s.Fatal(err)
			}
			s.Policy.Mounts = []tranca.Mount{{Source: s.Dir, Target: "/d"}}
		},
		Program: "\nattempt('open one in a mount', lambda: os.open('/d/loop-control', os.O_RDONLY))" + Alive,
	}
}

// fork makes 40 processes that live at the same time.
const fork = `
def many():
    made = []
    try:
        for _ in range(40):
            pid = os.fork()
            if pid == 0:
                time.sleep(60)
                os._exit(0)
            made.append(pid)
    finally:
        for pid in made: os.kill(pid, 9); os.waitpid(pid, 0)
attempt('40 processes', many)`

func lostLimits() []Loss {
	limit := func(set func(*tranca.Limits)) func(*Stage) {
		return func(s *Stage) { set(&s.Policy.Limits) }
	}
	return []Loss{
		{
			Item: tranca.ItemCPUTime, Lost: Done,
			Scene:   limit(func(l *tranca.Limits) { l.CPUTime = time.Second }),
			Program: "\nend = time.process_time() + 2\nwhile time.process_time() < end: pass\nprint('done')",
		},
		{
			Item:  tranca.ItemCPUs,
			Scene: limit(func(l *tranca.Limits) { l.MilliCPUs = 50 }),
			// Four, to be given some of a host that is busy with other things.
			Program: `
for _ in range(2): os.fork()
end = time.monotonic() + 3
while time.monotonic() < end: pass
time.sleep(0.5)
print('done')`,
			Lost: func(s *Stage, o Outcome) bool { return Done(s, o) && o.Usage.CPU > s.Took/10 },
		},
		{
			Item: tranca.ItemMemory, Lost: Done,
			Scene: limit(func(l *tranca.Limits) { l.Memory, l.Disk.Size, l.Processes = 64<<20, 1<<20, 16 }),
			Program: `
x = bytearray(300 << 20)
for i in range(0, len(x), 4096): x[i] = 1
print('done')`,
		},
		{
			Item: tranca.ItemPIDs, Program: fork + Alive,
			Scene: limit(func(l *tranca.Limits) { l.Processes = 16 }),
		},
		{
			Item:    tranca.ItemOpenFiles,
			Scene:   limit(func(l *tranca.Limits) { l.OpenFiles = 32 }),
			Program: "\nattempt('64 files', lambda: forked(lambda: [os.open('/dev/null', os.O_RDONLY) for _ in range(64)]))" + Alive,
		},
		{
			Item:    tranca.ItemFileSize,
			Scene:   limit(func(l *tranca.Limits) { l.FileSize = 1 << 20 }),
			Program: "\nattempt('2 MiB', lambda: os.truncate(os.open('big', os.O_CREAT | os.O_WRONLY), 2 << 20))" + Alive,
		},
		{
			Item:  tranca.ItemDisk,
			Scene: limit(func(l *tranca.Limits) { l.Disk.Size = 1 << 20 }),
			Program: `
def fill():
    with open('big', 'wb') as f:
        for _ in range(4): f.write(bytes(1 << 20))
attempt('4 MiB', fill)
os.unlink('big')` + Alive,
		},
		{
			Item:  tranca.ItemInodes,
			Scene: limit(func(l *tranca.Limits) { l.Disk.Inodes = 64 }),
			Program: `
def many():
    for i in range(200): write('/tmp/f%d' % i, b'')
attempt('200 files', many)
for f in glob.glob('/tmp/f*'): os.unlink(f)` + Alive,
		},
	}
}
