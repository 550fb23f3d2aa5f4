package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tranca"
)

// serve plays an engine.
func serve(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "engine.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close() })
	c := New(path)
	t.Cleanup(c.Close)
	return c
}

func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestPing(t *testing.T) {
	for server, want := range map[string]Engine{
		"Docker/20.10.24+dfsg1 (linux)": {Name: "Docker", Version: "20.10.24+dfsg1", APIVersion: "1.41"},
		"Libpod/4.3.1 (linux)":          {Name: "Podman", Version: "4.3.1", APIVersion: "1.41"},
		"nginx/1.2":                     {},
		"":                              {},
		"Docker":                        {},
	} {
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/_ping" {
				t.Errorf("path %s", r.URL.Path)
			}
			w.Header().Set("Server", server)
			w.Header().Set("Api-Version", "1.41")
		})
		got, err := c.Ping(t.Context())
		if want.Name == "" {
			if !errors.Is(err, ErrGarbage) {
				t.Errorf("%q: %v, %v", server, got, err)
			}
			continue
		}
		if err != nil || got != want || c.version != "/v1.41" {
			t.Errorf("%q: %v, %v, %s", server, got, err, c.version)
		}
	}
}

func TestANewerEngineIsSpokenToInItsOwnVersion(t *testing.T) {
	for api, want := range map[string]string{"1.43": "/v1.41", "1.44": "/v1.44", "1.52": "/v1.44"} {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Server", "Docker/29.0 (linux)")
			w.Header().Set("Api-Version", api)
		})
		if _, err := c.Ping(t.Context()); err != nil || c.version != want {
			t.Errorf("%s: %s, %v", api, c.version, err)
		}
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	long := strings.Repeat("x", maxAnswer+1)
	for name, c := range map[string]struct {
		h    http.HandlerFunc
		want string
		is   error
	}{
		"500":                    {answer(500, `{"message":"it broke"}`), "status 500: it broke", nil},
		"500 without words":      {answer(500, ""), "status 500", nil},
		"long words":             {answer(500, long), "…", nil},
		"not found":              {answer(404, `{"message":"no such container"}`), "no such container", tranca.ErrNotFound},
		"garbage":                {answer(200, "<html>"), "not of the Docker Engine API", ErrGarbage},
		"nothing":                {answer(200, ""), "not of the Docker Engine API", ErrGarbage},
		"too much":               {answer(200, long), "more than", ErrGarbage},
		"another kind":           {answer(200, `{"State":"running"}`), "not of the Docker Engine API", ErrGarbage},
		"a container of nothing": {answer(200, `{}`), "not of the Docker Engine API", ErrGarbage},
		"hangs up": {func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				c.Close()
			}
		}, "EOF", nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := serve(t, c.h).Inspect(t.Context(), "abc")
			if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 2*maxMessage {
				t.Errorf("%v, want %q", err, c.want)
			}
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%v is no %v", err, c.is)
			}
		})
	}
}

func TestAnEngineThatHangsEndsWithTheContext(t *testing.T) {
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Inspect(ctx, "abc"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("inspect: %v", err)
	}
	if _, err := c.Attach(ctx, "abc"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("attach: %v", err)
	}
}

func TestCreateTakesNoIDThatChangesAPath(t *testing.T) {
	for _, id := range []string{"", "short", "../../images/x/json0", strings.Repeat("a", 200), "ABCDEFABCDEF", "abcdef/abcdef"} {
		c := serve(t, answer(201, fmt.Sprintf(`{"Id":%q}`, id)))
		if _, err := c.Create(t.Context(), "n", &Config{}); !errors.Is(err, ErrGarbage) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestAttach(t *testing.T) {
	for _, status := range []string{"101 UPGRADED", "200 OK"} {
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Upgrade") != "tcp" || r.URL.Query().Get("stdin") != "1" {
				t.Errorf("%v %v", r.Header, r.URL)
			}
			conn, rw, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			fmt.Fprintf(conn, "HTTP/1.1 %s\r\nContent-Type: application/vnd.docker.raw-stream\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n", status)
			_, _ = conn.Write(frame(2, "warning"))
			line, _ := rw.ReadString('\n')
			_, _ = conn.Write(frame(1, "you said "+line))
		})
		s, err := c.Attach(t.Context(), "abc")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Write([]byte("hello\n")); err != nil {
			t.Fatal(err)
		}
		out, err := io.ReadAll(s)
		if err != nil || string(out) != "you said hello\n" || s.Said() != "warning" {
			t.Errorf("%s: %q %q %v", status, out, s.Said(), err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := serve(t, answer(409, `{"message":"not running"}`)).Attach(t.Context(), "abc"); err == nil || !strings.Contains(err.Error(), "not running") {
		t.Errorf("refused: %v", err)
	}
}

func TestLoadImage(t *testing.T) {
	for body, want := range map[string]string{
		`{"stream":"Loaded image: tranca:1\n"}`:                     "tranca:1",
		`{"stream":"x"}{"stream":"Loaded image ID: sha256:abc\n"}`:  "sha256:abc",
		`{"stream":"Loaded image: localhost/a:1, localhost/b:2\n"}`: "localhost/a:1",
	} {
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if text, _ := io.ReadAll(r.Body); string(text) != "archive" {
				t.Errorf("it got %q", text)
			}
			_, _ = io.WriteString(w, body)
		})
		got, err := c.LoadImage(t.Context(), strings.NewReader("archive"))
		if err != nil || got != want {
			t.Errorf("%s: %q, %v", body, got, err)
		}
	}
	for _, body := range []string{``, `{}`, `{"error":"no space left on device"}`, `nonsense`, `{"stream":"Loaded`} {
		if got, err := serve(t, answer(200, body)).LoadImage(t.Context(), strings.NewReader("")); err == nil {
			t.Errorf("%q: %q", body, got)
		}
	}
}

func TestStats(t *testing.T) {
	c := serve(t, answer(200, `{"cpu_stats":{"cpu_usage":{"total_usage":1500000}},"memory_stats":{"usage":4096},"pids_stats":{"current":7}}`))
	s, err := c.Stats(t.Context(), "abc")
	if err != nil || s.CPUTime() != 1500*time.Microsecond || s.Memory.Usage != 4096 || s.Tasks.Current != 7 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestOlder(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"20.10", "20.10.24+dfsg1", true}, {"20.10.24+dfsg1", "20.10", false}, {"19.03.15", "20.10", true},
		{"4.0.0-rc1", "4.0", false}, {"3.4.4", "4.0", true}, {"", "1.0", true}, {"1.9", "1.41", true},
		{"x.y", "0", false}, {"99999999999999999999", "1", false},
	} {
		if got := Older(c.a, c.b); got != c.want {
			t.Errorf("%s before %s: %v", c.a, c.b, got)
		}
	}
}

func FuzzInspect(f *testing.F) {
	f.Add([]byte(`{"Id":"abc","State":{"Pid":1,"OOMKilled":true},"Config":{"Entrypoint":["x"]},"HostConfig":{"Ulimits":null,"PidsLimit":null}}`))
	f.Add([]byte(`{"Config":{},"HostConfig":{},"NetworkSettings":{"Networks":{"a":null}},"Mounts":[{}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var c Container
		if json.Unmarshal(text, &c) != nil {
			return
		}
		if again, err := json.Marshal(c); err != nil || len(again) == 0 {
			t.Errorf("%s: %v", text, err)
		}
	})
}
