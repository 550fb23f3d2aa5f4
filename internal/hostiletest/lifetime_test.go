package hostiletest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/local"
)

// grace is how long after its limit a run may take to be over, on a host that
// is busy with other things.
const grace = 10 * time.Second

// stubborn is a tree that heeds no signal.
const stubborn = `
import os, signal, time
for s in range(1, 65):
    try: signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError): pass
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True: time.sleep(0.01)
        while True: time.sleep(1)
`

// TestHostileWall runs past the wall clock. Each control is the same program
// with time enough.
func TestHostileWall(t *testing.T) {
	for _, c := range []struct{ id, program string }{
		{"CPU-03 sleep", "import time\ntime.sleep(1.5)\nprint('done')"},
		{"CPU-04 ignore every signal", stubborn + "time.sleep(1.5)\nprint('done', flush=True)\nos._exit(0)"},
	} {
		t.Run(c.id, func(t *testing.T) {
			w := newWorld(t, func(_ *world, p *tranca.Policy) { p.Limits.Wall = 500 * time.Millisecond })
			start := time.Now()
			res := w.run(c.program)
			ended(t, res, tranca.EndWall)
			if took := time.Since(start); took > 500*time.Millisecond+grace {
				t.Errorf("it took %s", took)
			}
		})
		t.Run(c.id+" control", func(t *testing.T) {
			w := newWorld(t, nil)
			res := w.run(c.program)
			ended(t, res, tranca.EndExited)
			if string(res.Stdout) != "done\n" {
				t.Errorf("%q", res.Stdout)
			}
		})
	}
}

// open opens a session that is closed with the test.
func (w *world) open() local.Session {
	w.Helper()
	s, err := w.Open(w.Context(), tranca.Narrowing{})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			w.Errorf("close: %v", err)
		}
	})
	return s
}

// next runs code in a session.
func (w *world) next(s local.Session, code string) *tranca.Result {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	res, err := s.Run(ctx, tranca.Request{Code: code, Args: []string{w.mark}})
	if err != nil {
		w.Fatal(err)
	}
	return res
}

// TestHostileTimedOutCall: when a call in a session times out its tree dies,
// and only that: CPU-10, TEN-03.
func TestHostileTimedOutCall(t *testing.T) {
	w := newWorld(t, func(_ *world, p *tranca.Policy) { p.Limits.Wall = 2 * time.Second })
	s := w.open()
	w.next(s, "open('kept', 'w').write('x')")
	ended(t, w.next(s, stubborn+"time.sleep(60)"), tranca.EndWall)
	if left := w.left(); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
	res := w.next(s, `
import os
print(os.path.exists('kept'), [p for p in os.listdir('/proc') if p.isdigit() and int(p) not in (1, os.getpid())])`)
	if string(res.Stdout) != "True []\n" {
		t.Errorf("the next call finds %q %q", res.Stdout, res.Stderr)
	}
}

// TestHostileLeftInSession: what a call leaves running is dead before the next
// call begins: TEN-03. Its control is that the process ran while the call did.
func TestHostileLeftInSession(t *testing.T) {
	w := newWorld(t, nil)
	s := w.open()
	res := w.next(s, stubborn+"time.sleep(0.2)\nprint(len([p for p in os.listdir('/proc') if p.isdigit()]) > 6, flush=True)\nos._exit(0)")
	if string(res.Stdout) != "True\n" {
		t.Errorf("control: %q", res.Stdout)
	}
	if left := w.left(); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}

// TestHostileOOMInSession: after an OOM kill the next call finds the same
// sandbox with its files, or is told that it is gone; never a fresh one in
// silence: MEM-12.
func TestHostileOOMInSession(t *testing.T) {
	w := newWorld(t, func(_ *world, p *tranca.Policy) {
		p.Limits.Memory, p.Limits.Disk.Size = 64<<20, 16<<20
	})
	w.holds(tranca.ItemMemory)
	s := w.open()
	res := w.next(s, `
open('before', 'w').write('x')
x = bytearray(150 << 20)
for i in range(0, len(x), 4096): x[i] = 1`)
	ended(t, res, tranca.EndMemory)
	res, err := s.Run(t.Context(), tranca.Request{Code: "import os\nprint(os.path.exists('before'))"})
	switch {
	case errors.Is(err, tranca.ErrGone):
	case err != nil:
		t.Error(err)
	case string(res.Stdout) != "True\n":
		t.Errorf("the next call finds another sandbox: %q %q", res.Stdout, res.Stderr)
	}
}

// TestHostileAgent ends, stops and wakes the guest agent from outside while a
// program runs: the run comes to an end with a reason, and nothing is left.
func TestHostileAgent(t *testing.T) {
	for _, c := range []struct {
		what string
		sig  unix.Signal
		want []tranca.Reason
	}{
		{"killed", unix.SIGKILL, []tranca.Reason{tranca.EndError, tranca.EndSignaled}},
		{"stopped", unix.SIGSTOP, []tranca.Reason{tranca.EndWall, tranca.EndError}},
		{"left alone", 0, []tranca.Reason{tranca.EndExited}},
	} {
		t.Run(c.what, func(t *testing.T) {
			w := newWorld(t, func(_ *world, p *tranca.Policy) { p.Limits.Wall = 4 * time.Second })
			done := make(chan *tranca.Result, 1)
			go func() {
				done <- w.run(stubborn + "time.sleep(2)\nos._exit(0)")
			}()
			Eventually(t, "the tree runs", func() bool { return len(w.left()) >= 5 })
			if c.sig != 0 {
				for _, pid := range agents(t) {
					if err := unix.Kill(pid, c.sig); err != nil {
						t.Fatal(err)
					}
				}
			}
			select {
			case res := <-done:
				if !contains(c.want, res.Exit.Reason) {
					t.Errorf("ended with %s, want one of %v: %q", res.Exit, c.want, res.Notes)
				}
			case <-time.After(time.Minute):
				t.Fatal("the run does not end")
			}
			if left := w.left(); len(left) > 0 {
				t.Errorf("processes %v are left", left)
			}
		})
	}
}

func contains(all []tranca.Reason, r tranca.Reason) bool {
	for _, a := range all {
		if a == r {
			return true
		}
	}
	return false
}

// agents returns the guest agents that are children of this process.
func agents(t testing.TB) []int {
	t.Helper()
	var pids []int
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		stat, err := os.ReadFile(d + "/stat")
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		args, err := os.ReadFile(d + "/cmdline")
		f := strings.Fields(rest)
		if err != nil || len(f) < 2 || f[1] != strconv.Itoa(os.Getpid()) || strings.Trim(string(args), "\x00") != "init" {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(d))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	if len(pids) == 0 {
		t.Fatal("no agent is found")
	}
	return pids
}
