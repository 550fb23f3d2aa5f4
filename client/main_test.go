package client

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tranca"
	"tranca/internal/app/direct"
	"tranca/internal/backend"
	"tranca/internal/backend/fake"
	"tranca/internal/engine"
	"tranca/internal/policy"
	"tranca/internal/server"
	"tranca/internal/server/listen"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testKey = "0123456789abcdef0123456789abcdef"

// world is a server over a fake backend, reached by a real socket, by TCP and
// within the process.
type world struct {
	t      *testing.T
	fake   *fake.Backend
	engine *engine.Engine
	server *server.Server
	socket string
	tcp    string
}

// start makes a server, which ends with the test and leaves nothing.
func start(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, fake: fake.New(fake.Options{})}
	registry, err := backend.NewRegistry(w.fake)
	if err != nil {
		t.Fatal(err)
	}
	strict := policy.Default()
	strict.Limits.Wall = 200 * time.Millisecond
	if w.engine, err = engine.New(engine.Config{Backends: registry, Profiles: []engine.Profile{
		{Name: "default", Policy: policy.Default()}, {Name: "strict", Policy: strict},
	}}); err != nil {
		t.Fatal(err)
	}
	if w.server, err = server.New(server.Config{Engine: w.engine, Version: "test", Key: testKey, KeepAlive: 100 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	w.listen()
	return w
}

func (w *world) listen() {
	t := w.t
	t.Helper()
	dir, err := os.MkdirTemp("", "tranca-client-") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	w.socket = filepath.Join(dir, "s.sock")
	socket, err := listen.Unix(w.socket)
	if err != nil {
		t.Fatal(err)
	}
	tcp, err := listen.TCP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.tcp = tcp.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- w.server.Serve(ctx, time.Second, socket, tcp) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("the server ended with %v", err)
		}
		if err := w.engine.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if n := w.fake.Live(); n != 0 {
			t.Errorf("%d sandboxes are left", n)
		}
		os.RemoveAll(dir)
	})
}

// client returns a client, by the socket where no option says otherwise.
func (w *world) client(opts ...Option) *Client {
	w.t.Helper()
	if len(opts) == 0 {
		opts = []Option{WithSocket(w.socket)}
	}
	c, err := New(opts...)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { c.Close() })
	return c
}

// each runs a test over every way to the server.
func (w *world) each(test func(t *testing.T, c *Client)) {
	for name, opt := range map[string]func() Option{
		"socket":    func() Option { return WithSocket(w.socket) },
		"url":       func() Option { return WithServer("unix://"+w.socket, "") },
		"tcp":       func() Option { return WithServer("http://"+w.tcp+"/", testKey) },
		"in itself": func() Option { return WithTransport(direct.New(w.server.Local())) },
	} {
		w.t.Run(name, func(t *testing.T) {
			c, err := New(opt())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			test(t, c)
		})
	}
}

// create makes a sandbox that is destroyed with the test.
func create(t *testing.T, c *Client) *Sandbox {
	t.Helper()
	s, err := c.Create(t.Context(), tranca.CreateRequest{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// weak is a way to a server whose connections break: each after so many bytes
// of answers, or of requests, until none is left.
type weak struct {
	t      *testing.T
	target string
	l      net.Listener

	mu    sync.Mutex
	cuts  []cut
	conns []net.Conn
	all   sync.WaitGroup
}

// cut says after how many bytes a connection breaks; 0 is never.
type cut struct{ answers, requests int64 }

// breaking returns a client whose first connections break.
func (w *world) breaking(cuts ...cut) *Client {
	t := w.t
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(filepath.Dir(w.socket), "w"+newKey()[:6]))
	if err != nil {
		t.Fatal(err)
	}
	p := &weak{t: t, target: w.socket, l: l, cuts: cuts}
	p.all.Go(p.accept)
	c := w.client(WithSocket(l.Addr().String()))
	t.Cleanup(func() {
		c.Close()
		l.Close()
		p.mu.Lock()
		for _, conn := range p.conns {
			conn.Close()
		}
		left := len(p.cuts)
		p.mu.Unlock()
		p.all.Wait()
		if left > 0 {
			t.Errorf("%d connections did not break as they should", left)
		}
	})
	return c
}

func (p *weak) accept() {
	for {
		from, err := p.l.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("unix", p.target)
		if err != nil {
			p.t.Error(err)
			return
		}
		p.mu.Lock()
		var c cut
		if len(p.cuts) > 0 {
			c, p.cuts = p.cuts[0], p.cuts[1:]
		}
		p.conns = append(p.conns, from, to)
		p.mu.Unlock()
		p.all.Go(func() { carry(to, from, c.requests) })
		p.all.Go(func() { carry(from, to, c.answers) })
	}
}

// carry copies up to so many bytes and then breaks the connection.
func carry(to, from net.Conn, most int64) {
	if most == 0 {
		_, _ = io.Copy(to, from)
		if half, ok := to.(*net.UnixConn); ok {
			_ = half.CloseWrite()
			return
		}
	} else {
		_, _ = io.CopyN(to, from, most)
	}
	to.Close()
	from.Close()
}

// answering returns a client of a server that says what the handler says.
func answering(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	c, err := New(WithTransport(direct.New(h)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func wantExit(t *testing.T, got, want tranca.Exit) {
	t.Helper()
	if got != want {
		t.Errorf("it ended with %+v, want %+v", got, want)
	}
}
