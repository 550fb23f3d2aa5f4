package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair returns a session that opens and one that answers with handler.
func pair(t testing.TB, handler func(*Call), host, guest Config) (*Session, *Session) {
	t.Helper()
	a, b := net.Pipe()
	guest.Handler = handler
	opens, answers := New(a, host), New(b, guest)
	var runs sync.WaitGroup
	runs.Go(func() { _ = opens.Run() })
	runs.Go(func() { _ = answers.Run() })
	t.Cleanup(func() {
		opens.Fail(io.EOF)
		answers.Fail(io.EOF)
		runs.Wait()
	})
	return opens, answers
}

func ctx(t testing.TB) context.Context {
	c, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return c
}

func recv(t testing.TB, st *Stream) string {
	t.Helper()
	b, err := st.Recv(ctx(t))
	if err != nil {
		t.Fatalf("receiving: %v", err)
	}
	defer b.Free()
	return string(b.Bytes())
}

// open counts the streams that a session still knows.
func open(s *Session) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.streams)
}

// eventually waits for what another goroutine is about to do.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for range 6000 {
		if f() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("never: %s", what)
}

func TestEcho(t *testing.T) {
	opens, answers := pair(t, func(c *Call) {
		for {
			b, err := c.Recv(context.Background())
			if err != nil {
				_ = c.CloseSend()
				return
			}
			_ = c.Send(context.Background(), append([]byte(c.Method+" "), b.Bytes()...), false)
			b.Free()
		}
	}, Config{MaxMessage: 4 << 20}, Config{MaxMessage: 4 << 20})
	for _, size := range []int{0, 1, smallBuf, smallBuf + 1, MaxPayload - 1, MaxPayload, MaxPayload + 1, 3 << 20} {
		msg := bytes.Repeat([]byte{byte(size)}, size)
		c, err := opens.Open(ctx(t), "/a/B", 0, msg, false)
		if err != nil {
			t.Fatal(err)
		}
		if got := recv(t, c.Stream); got != "/a/B "+string(msg) {
			t.Errorf("%d bytes: got %d", size, len(got))
		}
		if err := c.Send(ctx(t), []byte("more"), true); err != nil {
			t.Fatal(err)
		}
		if got := recv(t, c.Stream); got != "/a/B more" {
			t.Errorf("got %q", got)
		}
		if _, err := c.Recv(ctx(t)); err != io.EOF {
			t.Errorf("at the end: %v", err)
		}
		if err := c.Send(ctx(t), nil, false); err != ErrClosed {
			t.Errorf("after the end: %v", err)
		}
		c.Close()
	}
	eventually(t, "all streams are forgotten", func() bool { return open(opens) == 0 && open(answers) == 0 })
}

func TestResets(t *testing.T) {
	seen := make(chan error, 1)
	opens, answers := pair(t, func(c *Call) {
		switch c.Method {
		case "/refuse":
			c.Reset(CodeNotFound, strings.Repeat("n", MaxReason+10))
		case "/wait":
			<-c.Reseted()
			_, err := c.Recv(context.Background())
			seen <- err
		}
	}, Config{}, Config{})
	c, err := opens.Open(ctx(t), "/refuse", 2, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	var told *Error
	if _, err := c.Recv(ctx(t)); !errors.As(err, &told) || told.Code != CodeNotFound || len(told.Message) != MaxReason {
		t.Errorf("got %v", err)
	}
	c.Close()

	if c, err = opens.Open(ctx(t), "/wait", 0, nil, true); err != nil {
		t.Fatal(err)
	}
	c.Reset(CodeCanceled, "tired")
	c.Reset(CodeCanceled, "again")
	if _, err := c.Recv(ctx(t)); err != ErrClosed {
		t.Errorf("after the own reset: %v", err)
	}
	// The message that was sent comes first; then the end of it.
	if err := <-seen; err != nil {
		t.Errorf("the answering side saw %v before what was sent", err)
	}
	eventually(t, "all streams are forgotten", func() bool { return open(opens) == 0 && open(answers) == 0 })
	if opens.Err() != nil || answers.Err() != nil {
		t.Errorf("the sessions: %v, %v", opens.Err(), answers.Err())
	}
}

// A sender may have a window under way and no more, whatever the sizes.
func TestFlowControl(t *testing.T) {
	for _, size := range []int{0, 1, 1000, 100_000, MaxPayload} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			var mu sync.Mutex
			sent := 0
			opens, _ := pair(t, func(c *Call) {
				for {
					if c.Send(context.Background(), make([]byte, size), false) != nil {
						return
					}
					mu.Lock()
					sent++
					mu.Unlock()
				}
			}, Config{}, Config{})
			count := func() int { mu.Lock(); defer mu.Unlock(); return sent }
			c, err := opens.Open(ctx(t), "/flood", 0, nil, true)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			fits := Window / cost(size)
			eventually(t, "the window is full", func() bool { return count() == fits })
			// Another call goes on meanwhile.
			other, err := opens.Open(ctx(t), "/flood", 0, nil, true)
			if err != nil {
				t.Fatal(err)
			}
			for range 2*fits + 5 {
				recv(t, other.Stream)
			}
			other.Close()
			for range 3*fits + 5 {
				recv(t, c.Stream)
			}
			if err := opens.Err(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestSidesAreOneWay(t *testing.T) {
	opens, _ := pair(t, func(c *Call) {
		for i, side := range c.Sides {
			if _, err := side.Recv(context.Background()); err != io.EOF {
				_ = side.Send(context.Background(), []byte("not ended"), true)
			}
			_ = side.Send(context.Background(), fmt.Append(nil, i), true)
		}
		_ = c.CloseSend()
	}, Config{}, Config{})
	c, err := opens.Open(ctx(t), "/x", MaxSides, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i := MaxSides - 1; i >= 0; i-- {
		if got := recv(t, c.Sides[i]); got != fmt.Sprint(i) {
			t.Errorf("side %d: %q", i, got)
		}
		if err := c.Sides[i].Send(ctx(t), nil, false); err != ErrClosed {
			t.Errorf("sending on a side stream: %v", err)
		}
	}
}

func TestTooManyStreams(t *testing.T) {
	opens, _ := pair(t, func(c *Call) { <-c.Reseted() }, Config{}, Config{})
	var calls []*Call
	for range MaxStreams / 4 {
		c, err := opens.Open(ctx(t), "/x", 3, nil, true)
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, c)
	}
	if _, err := opens.Open(ctx(t), "/x", 0, nil, true); err != ErrFull {
		t.Errorf("one more: %v", err)
	}
	for _, c := range calls {
		c.Close()
	}
	eventually(t, "the streams are free again", func() bool { return open(opens) == 0 })
	c, err := opens.Open(ctx(t), "/x", 0, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

func TestBadOpens(t *testing.T) {
	opens, _ := pair(t, func(*Call) {}, Config{}, Config{})
	for method, sides := range map[string]int{"": 0, strings.Repeat("m", MaxMethod+1): 0, "/x": MaxSides + 1} {
		if _, err := opens.Open(ctx(t), method, sides, nil, true); err == nil {
			t.Errorf("%.10q with %d side streams was opened", method, sides)
		}
	}
}

// A side that does not read ends the session instead of holding it for ever.
func TestWriteTimeout(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	s := New(a, Config{WriteTimeout: 50 * time.Millisecond})
	done := make(chan error)
	go func() { done <- s.Run() }()
	if _, err := s.Open(ctx(t), "/x", 0, nil, true); err == nil {
		t.Error("written to nobody")
	}
	if err := <-done; err != ErrStalled {
		t.Errorf("the session ended with %v", err)
	}
}

// What came before the end of the byte stream is still delivered.
func TestLastWords(t *testing.T) {
	opens, answers := pair(t, func(c *Call) {
		_ = c.Send(context.Background(), []byte("last"), false)
		_ = c.Send(context.Background(), []byte("words"), true)
	}, Config{}, Config{})
	c, err := opens.Open(ctx(t), "/x", 0, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	eventually(t, "the end came", c.Ended)
	answers.Fail(io.EOF)
	<-opens.Done()
	if a, b := recv(t, c.Stream), recv(t, c.Stream); a+b != "lastwords" {
		t.Errorf("got %q %q", a, b)
	}
	if _, err := c.Recv(ctx(t)); err != io.EOF {
		t.Errorf("then %v", err)
	}
	if _, err := opens.Open(ctx(t), "/x", 0, nil, true); !errors.Is(err, ErrEnded) {
		t.Errorf("a call afterwards: %v", err)
	}
}

func TestGiveUpWaiting(t *testing.T) {
	opens, _ := pair(t, func(c *Call) { <-c.Reseted() }, Config{}, Config{})
	c, err := opens.Open(ctx(t), "/x", 0, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	why := errors.New("why")
	over, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	if _, err := c.Recv(over); err != why {
		t.Errorf("receiving: %v", err)
	}
	for err == nil {
		err = c.Send(over, make([]byte, MaxPayload), false)
	}
	if err != why {
		t.Errorf("sending: %v", err)
	}
}
