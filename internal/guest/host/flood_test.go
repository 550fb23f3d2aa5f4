package host

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash"
	"testing"

	"tranca"
)

// TestFloodKeepsOrder shows that output which comes by the megabyte is what the
// program wrote, on both streams.
func TestFloodKeepsOrder(t *testing.T) {
	sb, _, _ := newSandbox(t, nil)
	const last = 4_000_000
	want := sha256.New()
	for i := range last {
		fmt.Fprintln(want, i+1)
	}
	var got [2]hash.Hash
	got[0], got[1] = sha256.New(), sha256.New()
	script := fmt.Sprintf("seq 1 %d & seq 1 %d >&2; wait", last, last)
	p, err := sb.Start(within(t), tranca.Command{Args: []string{"sh", "-c", script}, Stdout: got[0], Stderr: got[1]})
	if err != nil {
		t.Fatal(err)
	}
	if exit := wait(t, p); exit != exited(0) {
		t.Error(exit)
	}
	for i, h := range got {
		if !bytes.Equal(h.Sum(nil), want.Sum(nil)) {
			t.Errorf("stream %d is not what was written", i+1)
		}
	}
}

// TestThiefOfOutput shows that a program which reads its own output has only
// itself robbed: what it leaves comes, and the agent goes on.
func TestThiefOfOutput(t *testing.T) {
	sb, _, _ := newSandbox(t, nil)
	const stolen, block = 3_000_000, 8_000_000
	script := fmt.Sprintf(`exec 3</proc/self/fd/1
head -c %d <&3 >/dev/null &
while kill -0 $! 2>/dev/null; do head -c %d /dev/zero; done`, stolen, block)
	var h heapWatch
	p, err := sb.Start(within(t), tranca.Command{Args: []string{"sh", "-c", script}, Stdout: &h})
	if err != nil {
		t.Fatal(err)
	}
	if exit := wait(t, p); exit != exited(0) || (h.n+stolen)%block != 0 {
		t.Errorf("%v after %d bytes", exit, h.n)
	}
	if got := runProgram(t, sb, tranca.Command{Args: []string{"echo", "alive"}}); got.stdout != "alive\n" {
		t.Errorf("%+v", got)
	}
}
