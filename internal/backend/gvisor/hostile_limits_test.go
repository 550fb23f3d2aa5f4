package gvisor

import (
	"slices"
	"strings"
	"testing"
	"time"

	"tranca"
	"tranca/internal/hostiletest"
	"tranca/internal/require"
)

// bound is one program that goes beyond a limit. Its control is the same
// program under a limit that is large enough: then it ends by itself and says
// "done", so that the limit is what ended or refused it before.
type bound struct {
	id, what string
	needs    tranca.Item
	limits   func(*tranca.Limits)
	program  string
	// want is the end, hits what was refused without ending it, says a part of
	// the output.
	want tranca.Reason
	hits []tranca.LimitHit
	says string
	// free are the limits of the control. A row without is one's own control.
	free func(*tranca.Limits)
}

// TestHostileLimits goes beyond each limit. What ends a run and what merely
// refuses is told apart, and a Sentry that dies with its program has the
// program's reason.
func TestHostileLimits(t *testing.T) {
	b := newBackend(t)
	for _, w := range slices.Concat(cpuBounds(), memoryBounds(), processBounds(), spaceBounds()) {
		t.Run(w.id+" "+w.what, func(t *testing.T) {
			if w.needs != "" {
				require.Check(t, "cgroup", b.report.Holds(w.needs), b.report.Find(w.needs).Missing)
			}
			got := w.play(t, b, nil)
			if got.Exit.Reason != w.want || !slices.Equal(got.Usage.Hit, w.hits) || !strings.Contains(got.Stdout, w.says) {
				t.Errorf("ended with %s (%v), hit %v, want %s, %v and %q\n%s%s", got.Exit, got.Err, got.Usage.Hit, w.want, w.hits, w.says, got.Stdout, got.Stderr)
			}
			if w.free == nil {
				return
			}
			t.Run("control", func(t *testing.T) {
				got := w.play(t, b, w.free)
				if !got.Exit.Success() || !strings.Contains(got.Stdout, "done") || len(got.Usage.Hit) > 0 {
					t.Errorf("under a larger limit it ended with %s (%v), hit %v\n%s%s", got.Exit, got.Err, got.Usage.Hit, got.Stdout, got.Stderr)
				}
			})
		})
	}
}

func (w *bound) play(t *testing.T, b *Backend, free func(*tranca.Limits)) hostiletest.Outcome {
	s := (&row{}).newScene(t, b, false)
	w.limits(&s.policy.Limits)
	if free != nil {
		free(&s.policy.Limits)
	}
	sb := s.open(nil)
	defer closeBox(t, sb)
	return s.runIn(sb, s.argv(w.program)...)
}

func cpuBounds() []bound {
	return []bound{
		{
			id: "CPU-01", what: "busy loop", needs: tranca.ItemCPUTime,
			limits: func(l *tranca.Limits) { l.CPUTime = time.Second },
			program: `
end = time.process_time() + 2
while time.process_time() < end: pass
print('done')`,
			want: tranca.EndCPU,
			free: func(l *tranca.Limits) { l.CPUTime = time.Minute },
		},
		{
			id: "CPU-05", what: "child burns, parent waits", needs: tranca.ItemCPUTime,
			limits: func(l *tranca.Limits) { l.CPUTime = time.Second },
			program: `
for _ in range(4):
    if os.fork() == 0:
        end = time.process_time() + 0.5
        while time.process_time() < end: pass
        os._exit(0)
    os.wait()
print('done')`,
			want: tranca.EndCPU,
			free: func(l *tranca.Limits) { l.CPUTime = time.Minute },
		},
		{
			id: "CPU-01", what: "work that the file server does", needs: tranca.ItemCPUTime,
			limits: func(l *tranca.Limits) { l.CPUTime = 1500 * time.Millisecond },
			program: `
for i in range(6000):
    open('/work/f%d' % (i % 50), 'w').close()
    os.unlink('/work/f%d' % (i % 50))
print('done')`,
			want: tranca.EndCPU,
			free: func(l *tranca.Limits) { l.CPUTime = time.Minute },
		},
	}
}

const touch = `
x = bytearray(300 << 20)
for i in range(0, len(x), 4096): x[i] = 1
print('done')`

func memoryBounds() []bound {
	small := func(l *tranca.Limits) { l.Memory, l.Disk.Size = 64<<20, 16<<20 }
	large := func(l *tranca.Limits) { l.Memory = 1 << 30 }
	return []bound{
		{
			id: "MEM-01", what: "touch more than the limit", needs: tranca.ItemMemory,
			limits: small, program: touch, want: tranca.EndMemory, free: large,
		},
		{
			id: "MEM-02", what: "six children, each below the limit", needs: tranca.ItemMemory, limits: small,
			program: `
r, w = os.pipe()
kids = []
for _ in range(6):
    pid = os.fork()
    if pid == 0:
        x = bytearray(50 << 20)
        for i in range(0, len(x), 4096): x[i] = 1
        os.write(w, b'x')
        time.sleep(20)
    kids.append(pid)
for _ in range(6): os.read(r, 1)
print('done', flush=True)
for k in kids: os.kill(k, 9)`,
			want: tranca.EndMemory, free: large,
		},
		{
			id: "MEM-03", what: "a file in memory counts as memory", needs: tranca.ItemMemory,
			limits: func(l *tranca.Limits) { l.Memory, l.Disk.Size, l.FileSize = 64<<20, 400<<20, 400<<20 },
			program: `
f = open('/dev/shm/f', 'wb', buffering=0)
for _ in range(300): f.write(b'x' * (1 << 20))
print('done')`,
			want: tranca.EndMemory, free: large,
		},
		{
			id: "MEM-06", what: "what the Sentry keeps for full pipes", needs: tranca.ItemMemory, limits: small,
			program: `
held = []
for _ in range(100):
    r, w = os.pipe()
    os.set_blocking(w, False)
    try: fcntl.fcntl(w, 1031, 1 << 20)
    except OSError: pass
    try:
        while True: os.write(w, b'x' * 65536)
    except BlockingIOError: pass
    held += [r, w]
    x = bytearray(3 << 20)
    for i in range(0, len(x), 4096): x[i] = 1
    held.append(x)
print('done')`,
			want: tranca.EndMemory, free: large,
		},
		{
			id: "MEM-10", what: "1 TiB of memory untouched", needs: tranca.ItemMemory, limits: small,
			program: hostiletest.Reserve,
			want:    tranca.EndExited, says: "done",
		},
		{
			id: "MEM-11", what: "lower one's own OOM score, then run out", needs: tranca.ItemMemory, limits: small,
			program: `
for v in ('-1000', '-500', '500'):
    try: open('/proc/self/oom_score_adj', 'w').write(v)
    except OSError: pass
` + touch,
			want: tranca.EndMemory, free: large,
		},
	}
}

func processBounds() []bound {
	few := func(l *tranca.Limits) { l.Processes, l.Memory = 48, 512<<20 }
	many := func(l *tranca.Limits) { l.Processes, l.Memory = 400, 1<<30 }
	pids := []tranca.LimitHit{tranca.HitPIDs}
	return []bound{
		{
			id: "PRC-01", what: "fork bomb", limits: few,
			program: `
kids = []
for _ in range(120):
    try:
        pid = os.fork()
        if pid == 0:
            time.sleep(30)
            os._exit(0)
        kids.append(pid)
    except BlockingIOError: break
print('done' if len(kids) == 120 else 'forked %d' % len(kids), flush=True)
for k in kids: os.kill(k, 9)`,
			want: tranca.EndExited, hits: pids, says: "forked 4", free: many,
		},
		{
			id: "PRC-01", what: "fork bomb that goes on", limits: func(l *tranca.Limits) { l.Processes, l.CPUTime = 48, 3*time.Second },
			needs: tranca.ItemCPUTime,
			program: `
while True:
    try: os.fork()
    except OSError: pass`,
			want: tranca.EndCPU, hits: pids,
		},
		{
			id: "PRC-02", what: "thread bomb", needs: tranca.ItemMemory, limits: few,
			program: `
n = 0
try:
    for _ in range(120):
        threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
        n += 1
except RuntimeError: pass
print('done' if n == 120 else 'started %d' % n, flush=True)
os._exit(0)`,
			want: tranca.EndExited, hits: pids, says: "started 4", free: many,
		},
		{
			// gVisor doesn't count those that have ended; what it keeps of them
			// is memory, which is bounded.
			id: "PRC-03", what: "zombies that nobody waits for", limits: few,
			program: `
for _ in range(300):
    if os.fork() == 0: os._exit(0)
print('done')`,
			want: tranca.EndExited, says: "done",
		},
		{
			id: "PRC-03", what: "orphans are reaped", limits: few,
			program: `
for _ in range(100):
    if os.fork() == 0:
        if os.fork() == 0: os._exit(0)
        os._exit(0)
    os.wait()
    time.sleep(0.002)
print('done')`,
			want: tranca.EndExited, says: "done",
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

func spaceBounds() []bound {
	disk := func(l *tranca.Limits) { l.Disk.Size, l.Disk.Inodes, l.FileSize = 16<<20, 100, 256<<20 }
	return []bound{
		{
			id: "DSK-01 MEM-03", what: "one big file in each folder", limits: disk,
			program: `
n = 0
for d in ('/work', '/tmp', '/dev/shm'):
    with open(d + '/big', 'wb', buffering=0) as f:
        try:
            for _ in range(20): n += f.write(b'x' * (1 << 20))
        except OSError as e: expect(e, e.errno == errno.ENOSPC)
print('done' if n == 60 << 20 else 'wrote %d MiB' % (n >> 20))
time.sleep(0.3)`,
			want: tranca.EndExited, hits: []tranca.LimitHit{tranca.HitDisk}, says: "wrote 1",
			free: func(l *tranca.Limits) { l.Disk.Size, l.Memory = 100<<20, 512<<20 },
		},
		{
			id: "DSK-02", what: "many empty files", limits: disk,
			program: `
n = 0
try:
    for i in range(200):
        open('/work/f%d' % i, 'w').close()
        n += 1
except OSError as e: expect(e, e.errno == errno.ENOSPC)
print('done' if n == 200 else 'made %d' % n)
time.sleep(0.3)`,
			want: tranca.EndExited, hits: []tranca.LimitHit{tranca.HitInodes}, says: "made",
			free: func(l *tranca.Limits) { l.Disk.Inodes = 1000 },
		},
	}
}
