package host

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"tranca"
	"tranca/internal/require"
)

// listen listens on a port of a family and gives each connection to serve. The
// fake machine's agent shares this process's loopback.
func listen(t *testing.T, network, addr string, serve func(*net.TCPConn)) int {
	t.Helper()
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				serve(c.(*net.TCPConn))
			})
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return l.Addr().(*net.TCPAddr).Port
}

func dialPort(t *testing.T, sb *sandbox, port int) tranca.PortConn {
	t.Helper()
	c, err := sb.Dial(within(t), port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func echoes(c *net.TCPConn) { _, _ = io.Copy(c, c); _ = c.CloseWrite() }

// Bytes go both ways in order, however many, and each direction ends by itself.
func TestDial(t *testing.T) {
	sb, _, _ := newSandbox(t, nil)
	port := listen(t, "tcp4", "127.0.0.1:0", echoes)
	for name, size := range map[string]int64{"nothing": 0, "a byte": 1, "a line": 80, "64 MiB": 64 << 20} {
		t.Run(name, func(t *testing.T) {
			c := dialPort(t, sb, port)
			sent, got := sha256.New(), sha256.New()
			wrote := make(chan error, 1)
			go func() {
				src := rand.NewChaCha8([32]byte{7})
				_, err := io.Copy(io.MultiWriter(c, sent), io.LimitReader(src, size))
				wrote <- errors.Join(err, c.CloseWrite())
			}()
			n, err := io.Copy(got, c)
			if werr := <-wrote; err != nil || werr != nil || n != size {
				t.Fatalf("%d bytes came back: %v %v", n, err, werr)
			}
			if !bytes.Equal(sent.Sum(nil), got.Sum(nil)) {
				t.Error("what came back is not what was sent")
			}
		})
	}
}

func TestDialIPv6(t *testing.T) {
	l, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		require.Part(t, "IPv6")
		t.Fatal(err)
	}
	l.Close()
	sb, _, _ := newSandbox(t, nil)
	c := dialPort(t, sb, listen(t, "tcp6", "[::1]:0", echoes))
	if _, err := c.Write([]byte("six")); err != nil {
		t.Fatal(err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(c); err != nil || string(b) != "six" {
		t.Errorf("%q %v", b, err)
	}
}

func TestDialRefusals(t *testing.T) {
	sb, _, _ := newSandbox(t, nil)
	for _, port := range []int{-1, 0, 65536, 1 << 40} {
		if _, err := sb.Dial(within(t), port); !errors.Is(err, tranca.ErrInvalid) {
			t.Errorf("port %d: %v", port, err)
		}
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	if _, err := sb.Dial(within(t), port); !errors.Is(err, tranca.ErrNotFound) || !strings.Contains(err.Error(), itoa(port)) {
		t.Errorf("a port where nothing listens: %v", err)
	}
}

// As many connections as are let, and room again after one is closed.
func TestDialBound(t *testing.T) {
	sb, _, _ := newSandbox(t, nil)
	port := listen(t, "tcp4", "127.0.0.1:0", echoes)
	var open []tranca.PortConn
	var err error
	for len(open) < 1000 {
		var c tranca.PortConn
		if c, err = sb.Dial(within(t), port); err != nil {
			break
		}
		t.Cleanup(func() { c.Close() })
		open = append(open, c)
	}
	if !errors.Is(err, tranca.ErrBusy) || len(open) != 64 {
		t.Fatalf("after %d: %v", len(open), err)
	}
	if got := runProgram(t, sb, tranca.Command{Args: []string{"echo", "beside"}}); got.stdout != "beside\n" {
		t.Errorf("a program beside them: %+v", got)
	}
	open[0].Close()
	for {
		c, err := sb.Dial(within(t), port)
		if err == nil {
			c.Close()
			return
		}
		if !errors.Is(err, tranca.ErrBusy) {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
}

// The peer ends its direction, and goes on reading.
func TestDialHalfClose(t *testing.T) {
	sb, _, _ := newSandbox(t, nil)
	got := make(chan string, 1)
	port := listen(t, "tcp4", "127.0.0.1:0", func(c *net.TCPConn) {
		_, _ = io.WriteString(c, "bye")
		_ = c.CloseWrite()
		b, _ := io.ReadAll(c)
		got <- string(b)
	})
	c := dialPort(t, sb, port)
	if b, err := io.ReadAll(c); err != nil || string(b) != "bye" {
		t.Fatalf("%q %v", b, err)
	}
	if _, err := io.WriteString(c, "still here"); err != nil {
		t.Fatal(err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if b := <-got; b != "still here" {
		t.Errorf("the peer got %q", b)
	}
	if _, err := c.Write([]byte("x")); !errors.Is(err, tranca.ErrClosed) {
		t.Errorf("writing after CloseWrite: %v", err)
	}
}

// Whatever a peer does, the host neither hangs nor holds more than the windows.
func TestDialHostilePeers(t *testing.T) {
	sb, _, _ := newSandbox(t, nil)
	t.Run("never reads", func(t *testing.T) {
		hold := make(chan struct{})
		port := listen(t, "tcp4", "127.0.0.1:0", func(*net.TCPConn) { <-hold })
		defer close(hold)
		c := dialPort(t, sb, port)
		stuck := make(chan error, 1)
		go func() {
			_, err := io.Copy(c, zeros{})
			stuck <- err
		}()
		// Everything else goes on beside it.
		if got := runProgram(t, sb, tranca.Command{Args: []string{"echo", "free"}}); got.stdout != "free\n" {
			t.Errorf("%+v", got)
		}
		select {
		case err := <-stuck:
			t.Fatalf("writing to what never reads came to an end: %v", err)
		case <-time.After(100 * time.Millisecond):
		}
		c.Close()
		if err := <-stuck; !errors.Is(err, tranca.ErrClosed) {
			t.Errorf("the write that was under way: %v", err)
		}
	})
	t.Run("floods who never reads", func(t *testing.T) {
		ended := make(chan struct{})
		port := listen(t, "tcp4", "127.0.0.1:0", func(c *net.TCPConn) {
			_, _ = io.Copy(c, zeros{})
			close(ended)
		})
		c := dialPort(t, sb, port)
		if got := runProgram(t, sb, tranca.Command{Args: []string{"echo", "free"}}); got.stdout != "free\n" {
			t.Errorf("%+v", got)
		}
		select {
		case <-ended:
			t.Error("somebody took all of an endless flood")
		case <-time.After(100 * time.Millisecond):
		}
		c.Close()
		<-ended // its connection is gone
	})
	t.Run("resets", func(t *testing.T) {
		port := listen(t, "tcp4", "127.0.0.1:0", func(c *net.TCPConn) {
			_, _ = c.Read(make([]byte, 1))
			_ = c.SetLinger(0)
		})
		c := dialPort(t, sb, port)
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(c); !errors.Is(err, tranca.ErrGone) {
			t.Errorf("reading: %v", err)
		}
		for {
			if _, err := c.Write([]byte("x")); err != nil {
				if !errors.Is(err, tranca.ErrGone) {
					t.Errorf("writing: %v", err)
				}
				return
			}
		}
	})
	t.Run("answers and goes without reading", func(t *testing.T) {
		port := listen(t, "tcp4", "127.0.0.1:0", func(c *net.TCPConn) { _, _ = io.WriteString(c, "413 too large") })
		c := dialPort(t, sb, port)
		b := make([]byte, 13)
		if _, err := io.ReadFull(c, b); err != nil || string(b) != "413 too large" {
			t.Errorf("%q %v", b, err)
		}
	})
}

// A connection that its owner drops is one that the peer sees end.
func TestDialClose(t *testing.T) {
	sb, _, _ := newSandbox(t, nil)
	ended := make(chan error, 8)
	port := listen(t, "tcp4", "127.0.0.1:0", func(c *net.TCPConn) {
		_, err := io.Copy(io.Discard, c)
		ended <- err
	})
	for range 8 {
		c := dialPort(t, sb, port)
		reading := make(chan error, 1)
		go func() { _, err := c.Read(make([]byte, 1)); reading <- err }()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := <-reading; !errors.Is(err, tranca.ErrClosed) {
			t.Errorf("the read that was under way: %v", err)
		}
		<-ended
	}
}

// A dial whose caller gives up leaves nothing.
func TestDialGivenUp(t *testing.T) {
	sb, _, _ := newSandbox(t, nil)
	port := listen(t, "tcp4", "127.0.0.1:0", echoes)
	for range 20 {
		ctx, cancel := context.WithCancel(context.Background())
		go cancel()
		if c, err := sb.Dial(ctx, port); err == nil {
			c.Close()
		} else if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
}

// slowly lets a flood get ahead of its reader.
type slowly struct{}

func (slowly) Write(p []byte) (int, error) { time.Sleep(5 * time.Millisecond); return len(p), nil }

// What the guest says on a connection is judged as all that it says.
func TestDialHostileGuests(t *testing.T) {
	for name, after := range map[string]string{
		"an end before the answer": end(1),
		"an answer that is none":   msg(1, "\xff"),
		"bytes that are none":      msg(1, "") + msg(1, "\xff"),
		"more than the window":     msg(1, "") + strings.Repeat(msg(1, string(make([]byte, 256<<10))), 5),
		"bytes after the end":      msg(1, "") + end(1) + msg(1, ""),
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := socketPair(t)
			g := newGuest(t, theirs)
			sb := open(t, &fakeMachine{stream: ours, limit: make(chan tranca.Reason, 1)})
			defer sb.Close(within(t))
			go func() { <-g.opened; g.write(hello + after) }()
			c, err := sb.Dial(within(t), 80)
			if err == nil {
				_, err = io.Copy(slowly{}, c)
				c.Close()
			}
			if err == nil { // a fault after the end, which no reader sees
				<-sb.sess.Done()
				err = sb.Ping(within(t))
			}
			if !errors.Is(err, tranca.ErrProtocol) {
				t.Errorf("got %v", err)
			}
		})
	}
}
