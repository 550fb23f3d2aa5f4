package process

import (
	"testing"
	"time"

	"tranca"
)

// TestHostileLeftoverClock: a program that others were started by, and that
// outlived them, gets no fresh CPU time from each further start: CPU-06, in a
// sandbox that lives. The control is a sandbox in which it is not left.
func TestHostileLeftoverClock(t *testing.T) {
	b := newBackend(t)
	b.needs(t, "cpu time limit")
	const (
		leave = `
if os.fork() == 0:
    os.setsid()
    for fd in 0, 1, 2: os.close(fd)
    while True: pass`
		wait = `time.sleep(0.2)`
	)
	s := (&row{}).newScene(t, b, false)
	s.policy.Limits.CPUTime = time.Second
	sb := s.open(nil)
	defer closeBox(t, sb)
	starts := func() bool {
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
			if got := s.runIn(sb, s.argv(wait)...); got.Exit.Reason == tranca.EndCPU {
				return true
			}
			if len(s.marked()) == 0 {
				return true // it ended between two of them
			}
		}
		return false
	}
	if got := s.runIn(sb, s.argv(wait)...); got.Exit.Reason != tranca.EndExited {
		t.Fatalf("with nothing left it ended with %s", got.Exit)
	}
	if got := s.runIn(sb, s.argv(leave)...); got.Exit.Reason != tranca.EndExited {
		t.Fatalf("it ended with %s: %s", got.Exit, got.Stderr)
	}
	if !starts() {
		t.Error("after 20 s what was left has still not used up 1 s of CPU time")
	}
	if got := s.runIn(sb, s.argv(wait)...); got.Exit.Reason != tranca.EndExited {
		t.Errorf("when it is dead the next one ended with %s", got.Exit)
	}
}
