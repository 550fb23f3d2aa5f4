package process

import (
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/guest/bootspec"
	"tranca/internal/hostiletest"
)

// bound is one program that goes beyond a limit. Its control is the same
// program under a limit that is large enough: then it ends by itself and says
// "done", so that the limit is what ended or refused it before.
type bound struct {
	id, what string
	needs    []string
	limits   func(*tranca.Limits)
	program  string
	// want is the end, hits what was refused without ending it, says a part
	// of the output.
	want tranca.Reason
	hits []tranca.LimitHit
	says string
	// free are the limits of the control. Where the program is right to end by
	// itself, breaks is what makes it fail instead.
	free   func(*tranca.Limits)
	breaks weakening
	// shown says what is its control instead.
	shown string
	check func(*scene, hostiletest.Outcome)
}

// TestHostileLimits goes beyond each limit of CPU time, memory, processes,
// descriptors and disk. What ends a run and what merely refuses is told apart.
func TestHostileLimits(t *testing.T) {
	b := newBackend(t)
	for _, w := range slices.Concat(cpuBounds(), memoryBounds(), processBounds(), diskBounds()) {
		t.Run(w.id+" "+w.what, func(t *testing.T) {
			for _, part := range w.needs {
				b.needs(t, part)
			}
			w.run(t, b)
			if w.shown == "" {
				t.Run("control", func(t *testing.T) { w.control(t, b) })
			}
		})
	}
}

func (w *bound) run(t *testing.T, b *Backend) {
	s := (&row{}).newScene(t, b, false)
	w.limits(&s.policy.Limits)
	got := s.whole(w.program, nil)
	if got.Exit.Reason != w.want {
		t.Errorf("ended with %s, want %s\n%s%s", got.Exit, w.want, got.Stdout, got.Stderr)
	}
	hits := w.hits
	if !b.host.Support.PIDs.Held {
		// RLIMIT_NPROC refuses too, and counts nothing.
		hits = slices.DeleteFunc(slices.Clone(hits), func(h tranca.LimitHit) bool { return h == tranca.HitPIDs })
	}
	if !slices.Equal(got.Usage.Hit, hits) {
		t.Errorf("hit %v, want %v\n%s", got.Usage.Hit, hits, got.Stdout)
	}
	if !strings.Contains(got.Stdout, w.says) {
		t.Errorf("no %q in %q %q", w.says, got.Stdout, got.Stderr)
	}
	if w.check != nil {
		w.check(s, got)
	}
	if left := s.marked(); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}

func (w *bound) control(t *testing.T, b *Backend) {
	s := (&row{}).newScene(t, b, false)
	w.limits(&s.policy.Limits)
	if w.free != nil {
		w.free(&s.policy.Limits)
	}
	got := s.whole(w.program, w.breaks)
	if w.breaks != nil {
		if got.Exit.Success() {
			t.Errorf("the control ended well too:\n%s", got.Stdout)
		}
		return
	}
	if !got.Exit.Success() || !strings.Contains(got.Stdout, "done") || len(got.Usage.Hit) > 0 {
		t.Errorf("under a larger limit it ended with %s, hit %v\n%s%s", got.Exit, got.Usage.Hit, got.Stdout, got.Stderr)
	}
}

// whole runs a program in a sandbox of its own.
func (s *scene) whole(program string, weaken weakening) hostiletest.Outcome {
	s.Helper()
	sb := s.open(weaken)
	defer closeBox(s, sb)
	return s.runIn(sb, s.argv(program)...)
}

func cpuBounds() []bound {
	return []bound{
		{
			id: "CPU-01", what: "busy loop", needs: []string{"cpu time limit"},
			limits: func(l *tranca.Limits) { l.CPUTime = 300 * time.Millisecond },
			program: `
end = time.process_time() + 0.7
while time.process_time() < end: pass
print('done')`,
			want: tranca.EndCPU,
			free: func(l *tranca.Limits) { l.CPUTime = 30 * time.Second },
		},
		{
			id: "CPU-05", what: "child burns, parent waits", needs: []string{"cpu time limit"},
			limits: func(l *tranca.Limits) { l.CPUTime = 400 * time.Millisecond },
			program: `
for _ in range(4):
    if os.fork() == 0:
        end = time.process_time() + 0.25
        while time.process_time() < end: pass
        os._exit(0)
    os.wait()
print('done')`,
			want: tranca.EndCPU,
			free: func(l *tranca.Limits) { l.CPUTime = 30 * time.Second },
		},
		{
			id: "CPU-02", what: "more threads than the share of CPUs", needs: []string{"cpu limit", "cpu time limit"},
			limits: func(l *tranca.Limits) { l.MilliCPUs = 200 },
			program: `
start = time.monotonic()
for _ in range(4):
    if os.fork() == 0:
        while time.monotonic() < start + 1: pass
        os._exit(0)
for _ in range(4): os.wait()
print('took %d ms' % ((time.monotonic() - start) * 1000))
print('done')`,
			want: tranca.EndExited, says: "done",
			check: func(s *scene, o hostiletest.Outcome) {
				var took int64
				for line := range strings.Lines(o.Stdout) {
					if rest, ok := strings.CutPrefix(line, "took "); ok {
						took = atoi(s, strings.TrimSuffix(strings.TrimSpace(rest), " ms"))
					}
				}
				// Starting the interpreter is in the count too, before the clock.
				if most := time.Duration(took)*time.Millisecond/5 + 150*time.Millisecond; o.Usage.CPU > most {
					s.Errorf("used %s of CPU in %d ms at a fifth of a CPU", o.Usage.CPU, took)
				}
			},
			free: func(l *tranca.Limits) { l.MilliCPUs = 2000 },
		},
	}
}

func memoryBounds() []bound {
	memory := []string{"memory limit"}
	small := func(l *tranca.Limits) { l.Memory, l.Disk.Size = 64<<20, 16<<20 }
	large := func(l *tranca.Limits) { l.Memory = 512 << 20 }
	const alone = `
x = bytearray(150 << 20)
for i in range(0, len(x), 4096): x[i] = 1
print('done')`
	return []bound{
		{
			id: "MEM-01", what: "touch more than the limit", needs: memory,
			limits: small, program: alone, want: tranca.EndMemory, free: large,
		},
		{
			id: "MEM-02", what: "six children, each below the limit", needs: memory, limits: small,
			program: `
r, w = os.pipe()
for _ in range(6):
    if os.fork() == 0:
        x = bytearray(20 << 20)
        for i in range(0, len(x), 4096): x[i] = 1
        os.write(w, b'x')
        time.sleep(20)
for _ in range(6): os.read(r, 1)
print('done', flush=True)
os.killpg(0, 9) if False else [os.kill(int(p), 9) for p in os.listdir('/proc') if p.isdigit() and int(p) not in (1, os.getpid())]`,
			want: tranca.EndMemory, free: large,
		},
		{
			id: "MEM-03", what: "fill every tmpfs", needs: memory,
			limits:  func(l *tranca.Limits) { l.Memory, l.Disk.Size, l.FileSize = 256<<20, 32<<20, 64<<20 },
			program: fillEvery, want: tranca.EndExited, hits: []tranca.LimitHit{tranca.HitDisk}, says: "wrote 3",
			free: func(l *tranca.Limits) { l.Memory, l.Disk.Size = 512<<20, 200<<20 },
		},
		{
			id: "MEM-03", what: "a tmpfs counts as memory", needs: memory,
			limits:  func(l *tranca.Limits) { l.Memory, l.Disk.Size, l.FileSize = 64<<20, 200<<20, 200<<20 },
			program: fillEvery, want: tranca.EndMemory,
			free: func(l *tranca.Limits) { l.Memory = 512 << 20 },
		},
		{
			id: "MEM-06", what: "kernel memory by full pipes", needs: memory,
			limits: func(l *tranca.Limits) { l.Memory, l.Disk.Size = 32<<20, 8<<20 },
			program: `
held = []
for _ in range(60):
    r, w = os.pipe()
    os.set_blocking(w, False)
    try: fcntl.fcntl(w, 1031, 1 << 20)
    except OSError: pass
    try:
        while True: os.write(w, b'x' * 65536)
    except BlockingIOError: pass
    held += [r, w]
print('done')`,
			want: tranca.EndMemory, free: large,
		},
		{
			id: "MEM-10", what: "1 TiB of memory untouched", needs: memory, limits: small,
			program: hostiletest.Reserve, want: tranca.EndExited, says: "done", breaks: addressSpace,
		},
		{
			id: "MEM-11", what: "lower one's own OOM score, then run out", needs: memory, limits: small,
			program: `
for v in ('-1000', '-500', '-1', '500'):
    try:
        open('/proc/self/oom_score_adj', 'w').write(v)
        print('changed')
    except OSError: pass
` + alone,
			want: tranca.EndMemory, free: large,
			check: func(s *scene, o hostiletest.Outcome) {
				if strings.Contains(o.Stdout, "changed") {
					s.Error("it changed its OOM score")
				}
			},
		},
	}
}

const fillEvery = `
wrote = 0
for d in ('/work', '/tmp', '/dev/shm'):
    for i in range(40):
        try:
            with open('%s/f%d' % (d, i), 'wb', buffering=0) as f:
                wrote += f.write(b'x' * (1 << 20))
        except OSError as e:
            break
    st = os.statvfs(d)
print('wrote %d MiB' % (wrote >> 20))
print('done' if wrote >= 100 << 20 else 'full')`

func processBounds() []bound {
	pids := []string{"pids limit"}
	few := func(l *tranca.Limits) { l.Processes = 48 }
	many := func(l *tranca.Limits) { l.Processes, l.Memory = 400, 512<<20 }
	return []bound{
		{
			id: "PRC-01", what: "fork bomb", needs: pids, limits: few,
			program: `
n = 0
for _ in range(150):
    try:
        if os.fork() == 0:
            time.sleep(30)
            os._exit(0)
        n += 1
    except BlockingIOError: break
print('done' if n == 150 else 'forked %d' % n)`,
			want: tranca.EndExited, hits: []tranca.LimitHit{tranca.HitPIDs}, says: "forked 4", free: many,
		},
		{
			id: "PRC-02", what: "thread bomb", needs: []string{"pids limit", "memory limit"}, limits: few,
			program: `
n = 0
try:
    for _ in range(150):
        threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
        n += 1
except RuntimeError: pass
print('done' if n == 150 else 'started %d' % n, flush=True)
os._exit(0)`,
			want: tranca.EndExited, hits: []tranca.LimitHit{tranca.HitPIDs}, says: "started 4", free: many,
		},
		{
			id: "PRC-03", what: "zombies that nobody waits for", needs: pids, limits: few,
			program: `
n = 0
for _ in range(150):
    try:
        if os.fork() == 0: os._exit(0)
        n += 1
    except BlockingIOError: break
print('done' if n == 150 else 'forked %d' % n)`,
			want: tranca.EndExited, hits: []tranca.LimitHit{tranca.HitPIDs}, says: "forked 4", free: many,
		},
		{
			id: "PRC-03", what: "orphans are reaped", needs: pids, limits: few,
			program: `
n = 0
for _ in range(300):
    if os.fork() == 0:
        if os.fork() == 0: os._exit(0)
        os._exit(0)
    os.wait()
    n += 1
    time.sleep(0.001)
print('done', n)`,
			want: tranca.EndExited, says: "done 300",
			shown: "the row before, whose zombies stay",
		},
		{
			id: "PRC-05", what: "descriptors without end",
			limits:  func(l *tranca.Limits) { l.OpenFiles = 64 },
			program: hostiletest.OpenMany,
			want:    tranca.EndExited, says: "opened 6",
			free: func(l *tranca.Limits) { l.OpenFiles = 1000 },
		},
	}
}

func diskBounds() []bound {
	disk := func(l *tranca.Limits) { l.Disk.Size, l.Disk.Inodes, l.FileSize = 16<<20, 100, 256<<20 }
	return []bound{
		{
			id: "DSK-01", what: "one big file", limits: disk,
			program: `
f = open('/work/big', 'wb', buffering=0)
n = 0
try:
    while n < 40 << 20: n += f.write(b'x' * (1 << 20))
except OSError as e: expect(e, e.errno == errno.ENOSPC)
print('done' if n == 40 << 20 else 'wrote %d' % n)
time.sleep(0.3)`,
			want: tranca.EndExited, hits: []tranca.LimitHit{tranca.HitDisk}, says: "wrote 1",
			free: func(l *tranca.Limits) { l.Disk.Size = 100 << 20 },
		},
		{
			id: "DSK-01", what: "beyond one file's size", limits: func(l *tranca.Limits) { l.FileSize = 1 << 20 },
			program: `
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
open('/work/big', 'wb', buffering=0).write(b'x' * (1 << 20))
f = open('/work/big', 'ab', buffering=0)
f.write(b'x' * (2 << 20))
print('done')`,
			want: tranca.EndSignaled, hits: []tranca.LimitHit{tranca.HitFileSize},
			free: func(l *tranca.Limits) { l.FileSize = 64 << 20 },
		},
		{
			id: "DSK-02", what: "many empty files", limits: disk,
			program: `
n = 0
try:
    for n in range(200): os.close(os.open('/work/f%d' % n, os.O_CREAT | os.O_WRONLY))
    print('done')
except OSError as e: expect(e, e.errno == errno.ENOSPC)
print('made %d' % n)
time.sleep(0.3)`,
			want: tranca.EndExited, hits: []tranca.LimitHit{tranca.HitInodes}, says: "made 9",
			free: func(l *tranca.Limits) { l.Disk.Inodes = 1000 },
		},
		{
			id: "DSK-02", what: "files in memory that have no name", needs: []string{"memory limit"},
			limits: func(l *tranca.Limits) { l.Memory, l.Disk.Size = 64<<20, 16<<20 },
			program: `
fd = os.memfd_create('x')
for _ in range(100): os.write(fd, b'x' * (1 << 20)) if os.lseek(fd, 0, 1) < 60 << 20 else None
fd2 = os.memfd_create('y')
for _ in range(60): os.write(fd2, b'x' * (1 << 20))
print('done')`,
			want: tranca.EndMemory, free: func(l *tranca.Limits) { l.Memory = 512 << 20 },
		},
	}
}

// addressSpace bounds each process's address space, as a host without a limit
// for the tree does.
func addressSpace(_ *scene, pl *plan) {
	pl.Boot.Rlimits = append(pl.Boot.Rlimits, bootspec.Rlimit{Resource: unix.RLIMIT_AS, Soft: 1 << 30, Hard: 1 << 30})
}

func atoi(t testing.TB, text string) int64 {
	t.Helper()
	var n int64
	for _, c := range text {
		if c < '0' || c > '9' {
			t.Fatalf("%q is no number", text)
		}
		n = n*10 + int64(c-'0')
	}
	return n
}
