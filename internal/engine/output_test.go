package engine

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// gate is a writer that takes nothing until it is opened.
type gate struct {
	open chan struct{}
	mu   sync.Mutex
	b    bytes.Buffer
	late atomic.Bool // it was written to after this was set
	done atomic.Bool
}

func (g *gate) Write(p []byte) (int, error) {
	if g.done.Load() {
		g.late.Store(true)
	}
	<-g.open
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.b.Write(p)
}

func TestCaptureKeepsTheFirst(t *testing.T) {
	calls := 0
	c := newCapture(5, nil, func() { calls++ })
	for _, part := range []string{"ab", "cde", "", "f", strings.Repeat("x", 1<<20)} {
		if n, err := c.Write([]byte(part)); n != len(part) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	c.finish(time.Second)
	if got, cut := c.bytes(); string(got) != "abcde" || !cut || calls != 1 || cap(got) > 64 {
		t.Errorf("%q, %t, %d calls, room for %d", got, cut, calls, cap(got))
	}
	if n, err := c.Write([]byte("late")); n != 4 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if got, _ := c.bytes(); string(got) != "abcde" {
		t.Errorf("%q", got)
	}
}

func TestCaptureExactFit(t *testing.T) {
	c := newCapture(3, nil, func() { t.Error("it exceeds nothing") })
	_, _ = c.Write([]byte("abc"))
	c.finish(time.Second)
	if got, cut := c.bytes(); string(got) != "abc" || cut {
		t.Errorf("%q, %t", got, cut)
	}
}

func TestLiveCopyIsWhole(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	close(g.open)
	c := newCapture(1<<20, g, nil)
	want := strings.Repeat("0123456789", 30_000)
	for i := 0; i < len(want); i += 1000 {
		_, _ = c.Write([]byte(want[i : i+1000]))
	}
	if missed := c.finish(30 * time.Second); missed != 0 || g.b.String() != want {
		t.Errorf("missed %d, %d bytes came", missed, g.b.Len())
	}
}

// TestSlowReaderLosesNothing: the reader hangs while the program runs, and
// wakes up before the end.
func TestSlowReaderLosesNothing(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	c := newCapture(1<<20, g, nil)
	want := strings.Repeat("x", 500_000)
	_, _ = c.Write([]byte(want[:1000]))
	_, _ = c.Write([]byte(want[1000:]))
	time.AfterFunc(20*time.Millisecond, func() { close(g.open) })
	if missed := c.finish(30 * time.Second); missed != 0 || g.b.String() != want {
		t.Errorf("missed %d, %d bytes came", missed, g.b.Len())
	}
}

func TestReaderThatNeverReads(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	c := newCapture(1<<20, g, nil)
	_, _ = c.Write(make([]byte, 200_000))
	if missed := c.finish(10 * time.Millisecond); missed != 200_000 {
		t.Errorf("missed %d", missed)
	}
	g.done.Store(true)
	close(g.open)
	<-c.idle
	if g.late.Load() {
		t.Error("it was written to after finish had returned")
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("gone") }

func TestReaderThatGoesAway(t *testing.T) {
	c := newCapture(100, broken{}, nil)
	_, _ = c.Write([]byte("text"))
	c.finish(30 * time.Second)
	if got, cut := c.bytes(); string(got) != "text" || cut {
		t.Errorf("%q, %t", got, cut)
	}
}
