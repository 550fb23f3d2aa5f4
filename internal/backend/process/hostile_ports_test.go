package process

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"tranca"
)

// TestHostilePorts tries the way that the host has into the sandbox's ports:
// NET-01 is that no program inside gets out by it.
func TestHostilePorts(t *testing.T) {
	b := newBackend(t)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	p := testPolicy(b)
	p.Limits.Disk.Size = 1 << 20 // which the agent's memory grows with
	p.Limits.Processes = 128
	sb, err := b.Create(ctx, tranca.Spec{ID: tranca.NewID(), Policy: p})
	if err != nil {
		t.Fatal(err)
	}
	defer closeBox(t, sb)
	ports, ok := tranca.As[tranca.PortDialer](sb)
	if !ok {
		t.Fatal("no PortDialer")
	}
	t.Run("the host's own listeners are not inside", func(t *testing.T) {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		port := l.Addr().(*net.TCPAddr).Port
		if c, err := net.Dial("tcp4", l.Addr().String()); err != nil {
			t.Fatalf("control: the listener can't be reached: %v", err)
		} else {
			c.Close()
		}
		if _, err := ports.Dial(ctx, port); !errors.Is(err, tranca.ErrNotFound) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("listeners that take everybody and read nothing", func(t *testing.T) { deafListener(ctx, t, sb, ports) })
}

// deafListener has a program accept every connection and read none, while the
// host sends on all of them what the windows take. The agent must live.
func deafListener(ctx context.Context, t *testing.T, sb tranca.Sandbox, ports tranca.PortDialer) {
	t.Helper()
	out := &ready{said: make(chan struct{})}
	p, err := sb.Start(ctx, tranca.Command{Stdout: out, Args: []string{"/usr/bin/python3", "-I", "-c", `
import socket, time
l = socket.create_server(('127.0.0.1', 9000), backlog=128)
print('ready', flush=True)
held = []
while True: held.append(l.accept())
`}})
	if err != nil {
		t.Fatal(err)
	}
	<-out.said
	var open []tranca.PortConn
	for {
		c, err := ports.Dial(ctx, 9000)
		if errors.Is(err, tranca.ErrBusy) {
			break
		}
		if err != nil {
			t.Fatalf("connection %d: %v", len(open), err)
		}
		open = append(open, c)
		go func() { _, _ = io.Copy(c, endless{}) }()
	}
	if len(open) < 16 {
		t.Errorf("%d connections at once", len(open))
	}
	// As many programs as there may be, but for the one below, read no input.
	for {
		_, err := sb.Start(ctx, tranca.Command{Args: []string{"/bin/sleep", "300"}, Stdin: endless{}})
		if errors.Is(err, tranca.ErrBusy) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(time.Second) // until the windows are full
	extra, err := sb.Files().Stat(ctx, ".")
	if err != nil || extra.Type != tranca.FileDirectory {
		t.Errorf("beside all of them the agent says %+v, %v", extra, err)
	}
	if err := sb.Kill(ctx); err != nil {
		t.Fatal(err)
	}
	if got := answerOf(ctx, t, sb); got != "alive" {
		t.Errorf("beside %d connections that nobody reads, a program says %q", len(open), got)
	}
	for _, c := range open {
		c.Close()
	}
	if exit, err := p.Wait(ctx); err != nil || exit.Reason != tranca.EndClosed {
		t.Errorf("%v %v", exit, err)
	}
}

func answerOf(ctx context.Context, t *testing.T, sb tranca.Sandbox) string {
	t.Helper()
	var out strings.Builder
	p, err := sb.Start(ctx, tranca.Command{Args: []string{"/bin/sh", "-c", "printf alive"}, Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	if exit, err := p.Wait(ctx); err != nil || !exit.Success() {
		t.Fatal(exit, err)
	}
	return out.String()
}

// ready is output whose first byte is waited for.
type ready struct{ said chan struct{} }

func (r *ready) Write(p []byte) (int, error) {
	select {
	case <-r.said:
	default:
		close(r.said)
	}
	return len(p), nil
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
