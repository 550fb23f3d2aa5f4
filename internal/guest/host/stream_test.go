package host

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tranca"
)

// heapWatch counts what goes through it and looks at the heap now and then.
type heapWatch struct {
	n    int64
	next int64
	peak uint64
}

func (h *heapWatch) Write(p []byte) (int, error) {
	h.n += int64(len(p))
	if h.n >= h.next {
		h.next = h.n + 64<<20
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		h.peak = max(h.peak, m.HeapAlloc)
	}
	return len(p), nil
}

// maxHeap bounds host and agent together, which share this process.
const maxHeap = 32 << 20

func TestGigabyteInConstantMemory(t *testing.T) {
	sb, _, cfg := newSandbox(t, nil)
	t.Run("stdout", func(t *testing.T) {
		var h heapWatch
		p, err := sb.Start(within(t), tranca.Command{Args: []string{"head", "-c", "1G", "/dev/zero"}, Stdout: &h})
		if err != nil {
			t.Fatal(err)
		}
		if exit := wait(t, p); exit != exited(0) || h.n != gigabyte || h.peak > maxHeap {
			t.Errorf("%v, %d bytes, heap %d", exit, h.n, h.peak)
		}
	})
	t.Run("stdin", func(t *testing.T) {
		got := runProgram(t, sb, tranca.Command{Args: []string{"wc", "-c"}, Stdin: io.LimitReader(zeros{}, gigabyte)})
		if got.stdout != "1073741824\n" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("files", func(t *testing.T) {
		const size = 64 << 20
		h := heapWatch{}
		n, err := sb.Files().Write(within(t), "big", io.TeeReader(io.LimitReader(zeros{}, size), &h), 0o600)
		if err != nil || n != size || h.peak > maxHeap {
			t.Fatalf("%d %v, heap %d", n, err, h.peak)
		}
		r, err := sb.Files().Read(within(t), filepath.Join(cfg.Workdir, "big"), 0)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		h = heapWatch{}
		if _, err := io.Copy(struct{ io.Writer }{&h}, r); err != nil || h.n != size || h.peak > maxHeap {
			t.Errorf("%d %v, heap %d", h.n, err, h.peak)
		}
	})
}

// gate is a writer that blocks until it is opened.
type gate struct {
	open    chan struct{}
	blocked chan struct{} // closed by the first Write
	once    atomic.Bool
	n       atomic.Int64
}

func newGate() *gate { return &gate{open: make(chan struct{}), blocked: make(chan struct{})} }

func (g *gate) Write(p []byte) (int, error) {
	if g.once.CompareAndSwap(false, true) {
		close(g.blocked)
	}
	<-g.open
	g.n.Add(int64(len(p)))
	return len(p), nil
}

// A reader that stalls stops its own stream and nothing else.
func TestStalledReader(t *testing.T) {
	sb, _, _ := newSandbox(t, nil)
	stdout, stderr := newGate(), newLines()
	p, err := sb.Start(within(t), tranca.Command{
		Args: []string{"sh", "-c", `
head -c 16M /dev/zero &
sleep 0.2
i=0; while [ $i -lt 100 ]; do echo line $i >&2; i=$((i+1)); done
head -c 4M /dev/zero | tr '\0' x >&2; echo last >&2
wait`}, Stdout: stdout, Stderr: stderr,
	})
	if err != nil {
		t.Fatal(err)
	}
	<-stdout.blocked
	stderr.await(t, "last")
	if err := sb.Ping(within(t)); err != nil {
		t.Errorf("beside a stalled reader: %v", err)
	}
	content := strings.Repeat("z", 4<<20)
	if _, err := sb.Files().Write(within(t), "f", strings.NewReader(content), 0o600); err != nil {
		t.Errorf("beside a stalled reader: %v", err)
	}
	if got, err := readAll(t, sb.Files(), "f", 0); err != nil || got != content {
		t.Errorf("beside a stalled reader: %d %v", len(got), err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if exit, err := p.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Wait before the output was taken: %v %v", exit, err)
	}
	close(stdout.open)
	if exit := wait(t, p); exit != exited(0) || stdout.n.Load() != 16<<20 {
		t.Errorf("%v, %d bytes", exit, stdout.n.Load())
	}
}

func TestKillBehindStalledWriter(t *testing.T) {
	sb, _, _ := newSandbox(t, nil)
	stdout := newGate()
	p, err := sb.Start(within(t), tranca.Command{Args: []string{"yes"}, Stdout: stdout})
	if err != nil {
		t.Fatal(err)
	}
	<-stdout.blocked
	if err := sb.Kill(within(t)); err != nil {
		t.Fatal(err)
	}
	if exit := wait(t, p); exit.Reason != tranca.EndClosed {
		t.Errorf("exit %v", exit)
	}
	before := stdout.n.Load()
	if got := runProgram(t, sb, tranca.Command{Args: []string{"echo", "next"}}); got.stdout != "next\n" {
		t.Errorf("the next program: %+v", got)
	}
	close(stdout.open)
	// Only the Write that was under way may still end.
	time.Sleep(50 * time.Millisecond)
	if after := stdout.n.Load(); after-before > 256<<10 {
		t.Errorf("%d bytes were written after Wait had returned", after-before)
	}
}

type failing struct{ n int }

func (f *failing) Write([]byte) (int, error) { f.n++; return 0, errors.New("full") }

func TestFailedWriterDiscards(t *testing.T) {
	sb, _, _ := newSandbox(t, nil)
	w := new(failing)
	p, err := sb.Start(within(t), tranca.Command{Args: []string{"head", "-c", "64M", "/dev/zero"}, Stdout: w})
	if err != nil {
		t.Fatal(err)
	}
	if exit := wait(t, p); exit != exited(0) || w.n != 1 {
		t.Errorf("%v after %d writes", exit, w.n)
	}
}

// A Read of stdin that never returns does not keep anybody.
func TestAbandonedStdin(t *testing.T) {
	sb, _, _ := newSandbox(t, nil)
	r, w := io.Pipe()
	defer w.Close() // ends the Read that was abandoned
	got := runProgram(t, sb, tranca.Command{Args: []string{"sh", "-c", "exec <&-; exit 6"}, Stdin: r})
	if got.exit != exited(6) {
		t.Errorf("%+v", got)
	}
}

func TestInteractiveStdin(t *testing.T) {
	sb, _, _ := newSandbox(t, nil)
	r, w := io.Pipe()
	out := newLines()
	p, err := sb.Start(within(t), tranca.Command{
		Args: []string{"sh", "-c", "while read x; do echo got $x; done; echo end"}, Stdin: r, Stdout: out,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"one", "two"} {
		if _, err := io.WriteString(w, word+"\n"); err != nil {
			t.Fatal(err)
		}
		out.await(t, "got "+word)
	}
	w.Close()
	if exit := wait(t, p); exit != exited(0) || out.String() != "got one\ngot two\nend\n" {
		t.Errorf("%v %q", exit, out)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// The descriptors are those of host and agent together.
func TestManyStartsLeakNothing(t *testing.T) {
	sb, _, _ := newSandbox(t, nil)
	runProgram(t, sb, tranca.Command{Args: []string{"true"}})
	before := descriptors(t)
	for i := range 1000 {
		cmd := tranca.Command{Args: []string{"true"}}
		if i%2 == 0 {
			cmd.Stdin = strings.NewReader("x")
		}
		if got := runProgram(t, sb, cmd); got.exit != exited(0) {
			t.Fatalf("start %d: %+v", i, got)
		}
		if _, err := sb.Start(within(t), tranca.Command{Args: []string{"no-such"}}); !errors.Is(err, tranca.ErrNotFound) {
			t.Fatal(err)
		}
	}
	if after := descriptors(t); after > before+2 {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

func TestSandboxEnds(t *testing.T) {
	t.Run("the agent goes", func(t *testing.T) {
		ours, theirs := socketPair(t)
		g := newGuest(t, theirs)
		m := &fakeMachine{stream: ours, limit: make(chan tranca.Reason, 1)}
		sb := open(t, m)
		defer sb.Close(context.Background())
		g.answerStart(42)
		p, err := sb.Start(within(t), tranca.Command{Args: []string{"x"}})
		if err != nil {
			t.Fatal(err)
		}
		g.close()
		if exit, err := p.Wait(within(t)); !errors.Is(err, tranca.ErrGone) || exit.Reason != tranca.EndError {
			t.Errorf("%v %v", exit, err)
		}
		if _, err := sb.Start(within(t), tranca.Command{Args: []string{"x"}}); !errors.Is(err, tranca.ErrGone) {
			t.Errorf("a start afterwards: %v", err)
		}
	})
	t.Run("the agent goes by a limit", func(t *testing.T) {
		ours, theirs := socketPair(t)
		g := newGuest(t, theirs)
		m := &fakeMachine{stream: ours, limit: make(chan tranca.Reason, 1)}
		sb := open(t, m)
		defer sb.Close(context.Background())
		g.answerStart(42)
		p, err := sb.Start(within(t), tranca.Command{Args: []string{"x"}})
		if err != nil {
			t.Fatal(err)
		}
		m.set(machineCounts{limit: tranca.EndMemory})
		g.close()
		if exit := wait(t, p); exit.Reason != tranca.EndMemory {
			t.Errorf("%v", exit)
		}
	})
	t.Run("its owner closes it", func(t *testing.T) {
		sb, m, _ := newSandbox(t, nil)
		p, _ := start(t, sb, tranca.Command{Args: []string{"sh", "-c", "echo ready; exec sleep 300"}})
		for range 2 {
			if err := sb.Close(within(t)); err != nil {
				t.Fatal(err)
			}
		}
		if exit := wait(t, p); exit.Reason != tranca.EndClosed {
			t.Errorf("%v", exit)
		}
		if _, err := sb.Start(within(t), tranca.Command{Args: []string{"x"}}); !errors.Is(err, tranca.ErrClosed) {
			t.Errorf("a start afterwards: %v", err)
		}
		if _, _, closed := m.counts(); closed != 1 {
			t.Errorf("the machine was closed %d times", closed)
		}
	})
}
