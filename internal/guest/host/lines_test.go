package host

import (
	"bytes"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

func itoa(n int) string { return strconv.Itoa(n) }

// lines is output that a test can wait for.
type lines struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	more chan struct{}
}

func newLines() *lines { return &lines{more: make(chan struct{}, 1)} }

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// await returns when the output holds a text.
func (l *lines) await(t testing.TB, text string) {
	t.Helper()
	deadline := time.After(time.Minute)
	for !strings.Contains(l.String(), text) {
		select {
		case <-l.more:
		case <-deadline:
			t.Fatalf("no %q in %q", text, l)
		}
	}
}
