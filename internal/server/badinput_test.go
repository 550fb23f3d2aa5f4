package server

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"tranca"
	"tranca/internal/api"
)

// TestMalformed sends what is no HTTP, or no request.
func TestMalformed(t *testing.T) {
	w := start(t)
	for name, tc := range map[string]struct {
		text   string
		status int
	}{
		"noise":           {"\x00\x01\x02\r\n\r\n", 400},
		"TLS":             {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400},
		"no version":      {"GET /v1/info\r\n\r\n", 400},
		"no host":         {"GET /v1/info HTTP/1.1\r\n\r\n", 400},
		"HTTP/2":          {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 0},
		"HTTP/3":          {"GET / HTTP/3.0\r\nHost: t\r\n\r\n", 505},
		"folded header":   {"GET /v1/info HTTP/1.1\r\nHost: t\r\nX : y\r\n\r\n", 400},
		"two lengths":     {"POST /v1/run HTTP/1.1\r\nHost: t\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400},
		"bad length":      {"POST /v1/run HTTP/1.1\r\nHost: t\r\nContent-Length: -1\r\n\r\n", 400},
		"length and code": {"POST /v1/run HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: gzip\r\n\r\n{}", 501},
		"huge header":     {"GET /v1/info HTTP/1.1\r\nHost: t\r\nX: " + strings.Repeat("x", 128<<10) + "\r\n\r\n", 431},
		"many headers":    {"GET /v1/info HTTP/1.1\r\nHost: t\r\n" + strings.Repeat("X: y\r\n", 20000) + "\r\n", 431},
		"huge address":    {"GET /v1/info?" + strings.Repeat("x", 128<<10) + " HTTP/1.1\r\nHost: t\r\n\r\n", 431},
		"bad chunk":       {"POST /v1/run HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
		"huge chunk":      {"POST /v1/run HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", 400},
		"asterisk":        {"OPTIONS * HTTP/1.1\r\nHost: t\r\n\r\n", 404},
		"connect":         {"CONNECT t:80 HTTP/1.1\r\nHost: t:80\r\n\r\n", 404},
		"expectation":     {"POST /v1/run HTTP/1.1\r\nHost: t\r\nExpect: 200-ok\r\nContent-Length: 2\r\n\r\n", 417},
	} {
		t.Run(name, func(t *testing.T) {
			c := w.dial()
			// The server may close while it is still being written to.
			_, _ = io.WriteString(c, tc.text)
			resp, err := http.ReadResponse(c.r, nil)
			if tc.status == 0 {
				return
			}
			if err != nil || resp.StatusCode != tc.status {
				t.Errorf("%+v, %v; want %d", resp, err, tc.status)
			}
		})
	}
	w.want(200, "GET", "/v1/info", nil)
}

// TestPipelined shows that requests that were sent ahead are answered in order.
func TestPipelined(t *testing.T) {
	w := start(t)
	c := w.dial()
	one := `{"command":["print","1"]}`
	c.write(fmt.Sprintf("POST /v1/run HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(one), one) +
		"GET /healthz HTTP/1.1\r\nHost: t\r\n\r\nGET /v9 HTTP/1.1\r\nHost: t\r\n\r\nGET /v1/info HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n")
	for i, status := range []int{200, 200, 404, 200} {
		if r := c.answer(); r.StatusCode != status {
			t.Errorf("answer %d: %d %s", i, r.StatusCode, r.body)
		}
	}
	c.closed()
}

// TestSlow shows that a client that sends too slowly is let go, and told so
// where it can be told.
func TestSlow(t *testing.T) {
	w := start(t, func(s *settings) { s.server.Stall = 100 * time.Millisecond })
	for name, text := range map[string]string{
		"body":           "POST /v1/run HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
		"chunks":         "POST /v1/run HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
		"request frame":  "POST /v1/run HTTP/1.1\r\nHost: t\r\nContent-Type: " + api.TypeFrames + "\r\nContent-Length: 100\r\n\r\nj\x00",
		"unwanted body":  "POST /v9 HTTP/1.1\r\nHost: t\r\nContent-Length: 100\r\n\r\n{",
		"body of upload": "PUT " + at(w.create(), "/content", "/work/a") + " HTTP/1.1\r\nHost: t\r\nContent-Length: 100\r\n\r\n{",
	} {
		t.Run(name, func(t *testing.T) {
			c := w.dial()
			c.write(text)
			r := c.answer()
			if want := map[bool]int{true: 404, false: 408}[name == "unwanted body"]; r.StatusCode != want {
				t.Errorf("%d: %s", r.StatusCode, r.body)
			}
			c.closed()
		})
	}
}

// TestHalfClosed shows that a client that closes its sending side has gone, and
// that a body that is cut is no body.
func TestHalfClosed(t *testing.T) {
	w := start(t)
	c := w.dial()
	c.write("POST /v1/run HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
	if err := c.Conn.(*net.UnixConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if r := c.answer(); r.StatusCode != 400 || r.problem(t).Code != api.CodeInvalid {
		t.Errorf("%d: %s", r.StatusCode, r.body)
	}
	c = w.dial()
	body := `{"command":["sleep","3600"]}`
	c.write(fmt.Sprintf("POST /v1/run HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
	eventually(t, "it runs", func() bool { return w.fake.Live() == 1 })
	if err := c.Conn.(*net.UnixConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if r := into[tranca.Result](t, c.answer()); r.Exit.Reason != tranca.EndClosed {
		t.Errorf("%+v", r.Exit)
	}
}

// TestNeverReads shows that a client that reads nothing holds up nobody, and is
// let go.
func TestNeverReads(t *testing.T) {
	w := start(t, func(s *settings) {
		s.server.Stall = 200 * time.Millisecond
		s.engine.Policy.Limits.Output.Size = 16 << 20
		s.engine.StreamGrace = 50 * time.Millisecond
	})
	box := w.create()
	w.want(200, "PUT", at(box, "/content", "/work/a"), bytes.NewReader(make([]byte, 8<<20)))
	flood := `{"command":["flood","10000000"]}`
	process := w.launch(box, api.StartRequest{Args: []string{"flood", "10000000"}})
	for _, text := range []string{
		fmt.Sprintf("POST /v1/run HTTP/1.1\r\nHost: t\r\nAccept: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", api.TypeFrames, len(flood), flood),
		fmt.Sprintf("POST /v1/run HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(flood), flood),
		"GET " + at(box, "/content", "/work/a") + " HTTP/1.1\r\nHost: t\r\n\r\n",
		"GET " + process + "/output HTTP/1.1\r\nHost: t\r\n\r\n",
	} {
		w.dial().write(text)
	}
	eventually(t, "all four are let go", func() bool {
		text := w.log.String()
		return strings.Count(text, `"call":"run"`) == 2 && strings.Count(text, `"call":"readFile"`) == 1 && strings.Count(text, `"call":"followOutput"`) == 1
	})
	w.want(200, "GET", process, nil)
}

// TestTooLarge shows that nobody reads a body that is too large, however its
// length is told.
func TestTooLarge(t *testing.T) {
	w := start(t)
	large := `{"metadata":{"a":"` + strings.Repeat("x", 2<<20) + `"}}`
	for _, body := range []io.Reader{strings.NewReader(large), struct{ io.Reader }{strings.NewReader(large)}} {
		r := w.want(413, "POST", "/v1/sandboxes", body, "Content-Type", api.TypeJSON)
		if p := r.problem(t); p.Code != api.CodeTooLarge {
			t.Errorf("%+v", p)
		}
	}
	c := w.dial()
	c.write("POST /v1/run HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n")
	if r := c.answer(); r.StatusCode != 413 {
		t.Errorf("%d: %s", r.StatusCode, r.body)
	}
}

// TestBodiesAreBounded shows that all bodies together have a bound, and that
// nothing of it is lost.
func TestBodiesAreBounded(t *testing.T) {
	w := start(t, func(s *settings) { s.server.MaxBodies = 1 << 20 })
	hold := w.dial()
	hold.write("POST /v1/run HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nContent-Length: 2000000\r\n\r\n{\"code\":\"" + strings.Repeat("x", 700_000))
	eventually(t, "it is counted", func() bool { w.bodies.mu.Lock(); defer w.bodies.mu.Unlock(); return w.bodies.used > 700_000 })
	code := script(strings.Repeat("#", 500_000))
	if p := w.want(429, "POST", "/v1/run", code).problem(t); p.Code != api.CodeBusy {
		t.Errorf("%+v", p)
	}
	hold.Close()
	eventually(t, "it is given back", func() bool { return w.do("POST", "/v1/run", script(strings.Repeat("#", 100_000))).StatusCode == 200 })
}

// TestReconnects shows that connections that come and go leave nothing.
func TestReconnects(t *testing.T) {
	w := start(t)
	w.want(200, "GET", "/v1/info", nil) // its connection is kept, and counted from here
	before := descriptors(t)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 250 {
				c, err := net.Dial("unix", w.socket)
				if err != nil {
					t.Error(err)
					return
				}
				if i%2 == 0 {
					_, _ = io.WriteString(c, "GET /v1/in")
				}
				c.Close()
			}
		})
	}
	all.Wait()
	w.want(200, "GET", "/v1/info", nil)
	eventually(t, "no connection is left", func() bool { return descriptors(t) <= before })
}

func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// TestConnectionCap shows that no more connections are open at once than the
// bound says, and that those who wait get their turn.
func TestConnectionCap(t *testing.T) {
	w := start(t, func(s *settings) { s.server.MaxConnections = 2 })
	first, second, third := w.dial(), w.dial(), w.dial()
	for _, c := range []*rawConn{first, second, third} {
		c.write("GET /healthz HTTP/1.1\r\nHost: t\r\n\r\n")
	}
	for _, c := range []*rawConn{first, second} {
		if r := c.answer(); r.StatusCode != 200 {
			t.Errorf("%d", r.StatusCode)
		}
	}
	if err := third.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := third.r.Peek(1); err == nil {
		t.Fatal("a third connection is served")
	}
	first.Close()
	if err := third.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if r := third.answer(); r.StatusCode != 200 {
		t.Errorf("%d", r.StatusCode)
	}
}

// TestPanic shows that a call that breaks is told as such, with its id, and
// takes nobody along.
func TestPanic(t *testing.T) {
	w := start(t)
	w.mux().HandleFunc("/broken", func(http.ResponseWriter, *http.Request) { panic("secret") })
	w.mux().HandleFunc("/broken/late", func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(rw, strings.Repeat("x", 10_000))
		panic("secret")
	})
	p := w.want(500, "GET", "/broken", nil).problem(t)
	if p.Code != api.CodeInternal || p.RequestID == "" || strings.Contains(p.Detail, "secret") || !strings.Contains(w.log.String(), p.RequestID) {
		t.Errorf("%+v", p)
	}
	resp := w.send("GET", "/broken/late", nil)
	defer resp.Body.Close()
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("an answer that broke looks whole")
	}
	w.want(200, "GET", "/healthz", nil)
}

// TestStop shows that what only follows ends at once when the server stops, and
// that calls may end.
func TestStop(t *testing.T) {
	w := start(t)
	path := w.launch(w.create(), api.StartRequest{Args: []string{"sleep", "3600"}})
	follow := make(chan []byte, 1)
	go func() { follow <- w.do("GET", path+"/output", nil).body }()
	run := make(chan *reply, 1)
	go func() { run <- w.do("POST", "/v1/run", script("sleep 0.5", "print done")) }()
	eventually(t, "it runs", func() bool { return w.fake.Live() == 2 })
	started := time.Now()
	if err := w.stop(); err != nil {
		t.Error(err)
	}
	if r := into[tranca.Result](t, <-run); string(r.Stdout) != "done" {
		t.Errorf("%+v", r)
	}
	all := events(t, <-follow)
	if last := all[len(all)-1]; last.Type != api.EventError || last.Error.Code != api.CodeUnavailable {
		t.Errorf("%+v", last)
	}
	if took := time.Since(started); took > 4*time.Second {
		t.Errorf("it took %s: as long as it may", took)
	}
}

// TestStopBreaksOff shows that calls that don't end in time are broken off.
func TestStopBreaksOff(t *testing.T) {
	w := start(t, func(s *settings) { s.grace = 50 * time.Millisecond })
	run := make(chan error, 1)
	c := w.dial()
	body := `{"command":["sleep","3600"]}`
	c.write(fmt.Sprintf("POST /v1/run HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
	go func() { _, err := http.ReadResponse(c.r, nil); run <- err }()
	eventually(t, "it runs", func() bool { return w.fake.Live() == 1 })
	if err := w.stop(); err != nil {
		t.Error(err)
	}
	<-run
	eventually(t, "nothing runs", func() bool { return w.fake.Live() == 0 })
}

// TestReplacedSocket shows that a server whose socket somebody replaced ends,
// and leaves the other one alone.
func TestReplacedSocket(t *testing.T) {
	defer func(d time.Duration) { checkEvery = d }(checkEvery)
	checkEvery = 10 * time.Millisecond
	w := start(t)
	w.want(200, "GET", "/healthz", nil)
	if err := os.Remove(w.socket); err != nil {
		t.Fatal(err)
	}
	other, err := net.Listen("unix", w.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	eventually(t, "the server notices", func() bool { return strings.Contains(w.log.String(), "replaced the socket") })
	eventually(t, "the server stops", func() bool { return w.stopping.Err() != nil })
	if err := w.stop(); err == nil || !strings.Contains(err.Error(), "replaced the socket") {
		t.Errorf("it ended with %v", err)
	}
	w.stop = func() error { return nil }
	if _, err := os.Lstat(w.socket); err != nil {
		t.Errorf("the other one's socket: %v", err)
	}
}
