package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tranca"
	"tranca/internal/api"
	"tranca/internal/backend"
	"tranca/internal/backend/fake"
	"tranca/internal/engine"
	"tranca/internal/policy"
	"tranca/internal/server/listen"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == strangerRole {
		stranger(os.Args[2])
		return
	}
	goleak.VerifyTestMain(m)
}

const testKey = "0123456789abcdef0123456789abcdef"

// world is a server over a fake backend, reached by a real socket and by TCP.
type world struct {
	*Server
	t      *testing.T
	fake   *fake.Backend
	socket string
	tcp    string
	client *http.Client
	log    *syncBuffer
	doc    *openDoc
	// stop ends the server and waits for it.
	stop func() error
}

// settings of a test's server.
type settings struct {
	server Config
	engine engine.Config
	fake   fake.Options
	grace  time.Duration
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// start makes a server; each change adjusts what it is made from.
func start(t *testing.T, changes ...func(*settings)) *world {
	t.Helper()
	set := settings{grace: 5 * time.Second}
	log := &syncBuffer{}
	set.server = Config{
		Version: "test", Key: testKey, Stall: 20 * time.Second, LogCode: false,
		Logger: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	set.engine = engine.Config{Policy: policy.Default(), CloseTimeout: 5 * time.Second}
	for _, c := range changes {
		c(&set)
	}
	w := &world{t: t, fake: fake.New(set.fake), log: log, doc: loadDocument(t)}
	registry, err := backend.NewRegistry(w.fake)
	if err != nil {
		t.Fatal(err)
	}
	set.engine.Backends = registry
	e, err := engine.New(set.engine)
	if err != nil {
		t.Fatal(err)
	}
	set.server.Engine = e
	if w.Server, err = New(set.server); err != nil {
		t.Fatal(err)
	}
	w.listen(set.grace, e)
	return w
}

func (w *world) listen(grace time.Duration, e *engine.Engine) {
	t, log := w.t, w.log
	t.Helper()
	dir, err := os.MkdirTemp("", "tranca-server-")
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
	go func() { served <- w.Serve(ctx, grace, socket, tcp) }()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", w.socket)
	}}
	w.client = &http.Client{Transport: transport}
	w.stop = sync.OnceValue(func() error {
		cancel()
		transport.CloseIdleConnections()
		return <-served
	})
	t.Cleanup(func() {
		if err := w.stop(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if n := w.fake.Live(); n != 0 {
			t.Errorf("%d sandboxes are left", n)
		}
		if _, panicked, found := strings.Cut(log.String(), "panic serving"); found {
			t.Errorf("net/http panicked: %.500s", panicked)
		}
		w.bodies.mu.Lock()
		defer w.bodies.mu.Unlock()
		if w.bodies.used != 0 {
			t.Errorf("%d bytes of bodies are still counted", w.bodies.used)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
}

// reply is an answer that was read whole.
type reply struct {
	*http.Response
	body []byte
}

// problem returns the problem that the answer is.
func (r *reply) problem(t *testing.T) api.Problem {
	t.Helper()
	var p api.Problem
	if r.Header.Get("Content-Type") != api.TypeProblem || json.Unmarshal(r.body, &p) != nil {
		t.Fatalf("status %d with %s, no problem: %.300s", r.StatusCode, r.Header.Get("Content-Type"), r.body)
	}
	return p
}

// send sends a request by the socket. header holds names and values in turn.
func (w *world) send(method, path string, body any, header ...string) *http.Response {
	w.t.Helper()
	var r io.Reader
	media := ""
	switch b := body.(type) {
	case nil:
	case io.Reader:
		r = b
	case string:
		r, media = strings.NewReader(b), api.TypeJSON
	default:
		text, err := json.Marshal(b)
		if err != nil {
			w.t.Fatal(err)
		}
		r, media = bytes.NewReader(text), api.TypeJSON
	}
	req, err := http.NewRequestWithContext(w.t.Context(), method, "http://tranca"+path, r)
	if err != nil {
		w.t.Fatal(err)
	}
	if media != "" {
		req.Header.Set("Content-Type", media)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := w.client.Do(req)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
	return resp
}

// do sends a request, reads the answer, and holds it against the OpenAPI
// document.
func (w *world) do(method, path string, body any, header ...string) *reply {
	w.t.Helper()
	resp := w.send(method, path, body, header...)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
	r := &reply{resp, b}
	w.doc.check(w.t, method, path, r)
	return r
}

// want does the request and expects a status.
func (w *world) want(status int, method, path string, body any, header ...string) *reply {
	w.t.Helper()
	r := w.do(method, path, body, header...)
	if r.StatusCode != status {
		w.t.Fatalf("%s %s: status %d, want %d: %.400s", method, path, r.StatusCode, status, r.body)
	}
	return r
}

// into decodes an answer.
func into[T any](t *testing.T, r *reply) (v T) {
	t.Helper()
	if err := json.Unmarshal(r.body, &v); err != nil {
		t.Fatalf("%v: %.300s", err, r.body)
	}
	return v
}

// create makes a sandbox and returns its path.
func (w *world) create(body ...any) string {
	w.t.Helper()
	var in any
	if len(body) > 0 {
		in = body[0]
	}
	return "/v1/sandboxes/" + string(into[tranca.SandboxInfo](w.t, w.want(201, "POST", "/v1/sandboxes", in)).ID)
}

// launch starts a program and returns its path.
func (w *world) launch(sandbox string, r api.StartRequest) string {
	w.t.Helper()
	return sandbox + "/processes/" + string(into[tranca.ProcessInfo](w.t, w.want(201, "POST", sandbox+"/processes", r)).ID)
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if f() {
			return
		}
	}
	t.Fatalf("it never came to be that %s", what)
}
