package badinput

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tranca"
	"tranca/internal/guest/host"
	"tranca/internal/machine"
	"tranca/local"
)

// garbage is a backend whose guest agents are replaced by what a test sends:
// the host's side of the stream, the engine and all above are the real ones.
type garbage struct {
	tranca.Backend
	answer func(guest net.Conn)
}

func (g *garbage) Name() string                { return "garbage" }
func (g *garbage) Level() tranca.Level         { return tranca.LevelProcess }
func (g *garbage) Close(context.Context) error { return nil }
func (g *garbage) Probe(context.Context) (tranca.Report, error) {
	r := tranca.Report{Backend: "garbage", Level: tranca.LevelProcess}
	for _, item := range tranca.Items() {
		r.Guarantees = append(r.Guarantees, tranca.Guarantee{Item: item, Held: true, Mechanism: "none"})
	}
	return r, nil
}

func (g *garbage) Create(_ context.Context, spec tranca.Spec) (tranca.Sandbox, error) {
	ours, theirs := net.Pipe()
	m := &stub{stream: ours, limit: make(chan tranca.Reason, 1)}
	m.guest.Go(func() {
		defer theirs.Close()
		g.answer(theirs)
	})
	return host.New(m, spec)
}

// stub is a machine that holds nothing but the stream.
type stub struct {
	stream net.Conn
	limit  chan tranca.Reason
	guest  sync.WaitGroup
}

func (m *stub) Stream() io.ReadWriteCloser        { return m.stream }
func (m *stub) Begin(context.Context) error       { return nil }
func (m *stub) Limit() <-chan tranca.Reason       { return m.limit }
func (m *stub) Kill(context.Context) error        { return nil }
func (m *stub) Enforcement() []tranca.Enforcement { return nil }
func (m *stub) Observe(context.Context) (machine.Observation, error) {
	return machine.Observation{}, nil
}

func (m *stub) Close(context.Context) error {
	m.stream.Close()
	m.guest.Wait()
	return nil
}

// TestAgentAnswersGarbage: the run ends as an error or at its limit, and the
// sandbox can be closed, whatever comes from the guest.
func TestAgentAnswersGarbage(t *testing.T) {
	random := rand.NewChaCha8([32]byte{1})
	repeat := func(p []byte) func(net.Conn) {
		return func(c net.Conn) {
			go io.Copy(io.Discard, c)
			for {
				if _, err := c.Write(p); err != nil {
					return
				}
			}
		}
	}
	once := func(p []byte) func(net.Conn) {
		return func(c net.Conn) {
			go c.Write(p)
			io.Copy(io.Discard, c)
		}
	}
	noise := make([]byte, 1<<16)
	_, _ = random.Read(noise)
	for name, answer := range map[string]func(net.Conn){
		"nothing":       func(c net.Conn) { io.Copy(io.Discard, c) },
		"not even read": func(c net.Conn) { time.Sleep(2 * time.Second) },
		"end":           func(net.Conn) {},
		"end later":     func(c net.Conn) { _, _ = c.Read(make([]byte, 100)) },
		"zeros":         repeat(make([]byte, 4096)),
		"ones":          repeat(bytes.Repeat([]byte{0xff}, 4096)),
		"noise":         repeat(noise),
		"one byte":      once([]byte{1}),
		"length":        once([]byte{0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 1}),
		"HTTP":          once([]byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")),
		"text":          repeat([]byte("hello, I am not an agent\n")),
		"echo":          func(c net.Conn) { io.Copy(c, c) },
	} {
		t.Run(name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			p := local.DefaultPolicy()
			p.Floor = tranca.LevelProcess
			p.Limits.Wall = time.Second
			l, err := local.New(local.WithPolicy(p), local.WithBackend(&garbage{answer: answer}))
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			res, err := l.Run(t.Context(), "print(1)")
			switch {
			case err != nil && (classless(err) && !errors.Is(err, tranca.ErrProtocol)):
				t.Errorf("an error of no class: %v", err)
			case err == nil && res.Exit.Reason != tranca.EndError && res.Exit.Reason != tranca.EndWall:
				t.Errorf("%+v, %q", res.Exit, res.Stdout)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}
