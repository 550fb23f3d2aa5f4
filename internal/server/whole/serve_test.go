package whole

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tranca"
	"tranca/internal/require"
)

// TestServe drives real programs through the command, and sees that nothing is
// left after a signal.
func TestServe(t *testing.T) {
	s := serve(t, folder(t))
	if !strings.Contains(s.places, "unix://"+s.socket) || !strings.Contains(s.places, "tranca create") {
		t.Errorf("it printed %q", s.places)
	}
	c := s.client()
	res, err := c.Run(t.Context(), tranca.Request{Code: "import sys; print(sys.stdin.read() * 2)", Stdin: strings.NewReader("ab")})
	if err != nil || string(res.Stdout) != "abab\n" || res.Backend != "process" {
		t.Fatalf("%+v, %v", res, err)
	}
	box, err := c.Create(t.Context(), tranca.CreateRequest{TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	big := bytes.Repeat([]byte("0123456789abcdef"), 1<<18)
	if n, err := box.Files().Write(t.Context(), "/work/big", bytes.NewReader(big), 0o644); err != nil || n != int64(len(big)) {
		t.Fatalf("%d, %v", n, err)
	}
	r, err := box.Files().Read(t.Context(), "/work/big", 5)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	r.Close()
	if err != nil || !bytes.Equal(got, big[5:]) {
		t.Errorf("%d bytes came back, %v", len(got), err)
	}
	res, err = box.Run(t.Context(), tranca.Request{Command: []string{"/bin/sh", "-c", "wc -c </work/big"}})
	if err != nil || strings.TrimSpace(string(res.Stdout)) != "4194304" {
		t.Errorf("%+v, %v", res, err)
	}
	if err := s.stop(syscall.SIGTERM); err != nil {
		t.Errorf("it ended with %v: %s", err, s.log.String())
	}
	for _, words := range []string{`"call":"run"`, string(box.ID())} {
		if !strings.Contains(s.log.String(), words) {
			t.Errorf("the log lacks %s", words)
		}
	}
	if _, err := os.Lstat(s.socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
	childless(t)
}

// TestKilled kills the server in the middle of a stream: the client is told, no
// process is left, and the next server takes the socket over and knows nothing
// of the sandbox.
func TestKilled(t *testing.T) {
	dir := folder(t)
	s := serve(t, dir)
	box, err := s.client().Create(t.Context(), tranca.CreateRequest{})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://tranca/v1/sandboxes/"+string(box.ID())+"/run",
		strings.NewReader(`{"command":["/bin/sh","-c","echo begun; sleep 20"]}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/x-ndjson")
	resp, err := httpClient(s.socket).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	for line := ""; !strings.Contains(line, "begun"); {
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.stop(syscall.SIGKILL); err == nil {
		t.Error("it ended well")
	}
	if rest, err := io.ReadAll(lines); err == nil {
		t.Errorf("a stream that broke looks whole: %q", rest)
	}
	childless(t)
	next := serve(t, dir)
	if _, err := next.client().Sandbox(t.Context(), box.ID()); !errors.Is(err, tranca.ErrGone) {
		t.Errorf("the sandbox of a dead server: %v", err)
	}
	if err := next.stop(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
}

// TestSecondServer shows that a second server at one socket says so and leaves
// the first one alone.
func TestSecondServer(t *testing.T) {
	dir := folder(t)
	first := serve(t, dir)
	second := begin(t, dir)
	err := <-second.ended
	var exit *exec.ExitError
	if !errors.As(err, &exit) || second.places != "" || !strings.Contains(second.log.String(), "listens at "+first.socket+" already") {
		t.Errorf("%v: %s%s", err, second.places, second.log.String())
	}
	if _, err := first.client().Info(t.Context()); err != nil {
		t.Error(err)
	}
}

// withKey starts a server with TCP, and returns its URL and key.
func withKey(t *testing.T, args ...string) (s *server, url, key string) {
	t.Helper()
	dir := folder(t)
	key = strings.Repeat("0123456789", 4)
	file := filepath.Join(dir, "key")
	if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s = serve(t, dir, append([]string{"--listen", "127.0.0.1:0", "--key-file", file}, args...)...)
	_, rest, _ := strings.Cut(s.places, " and ")
	url, _, _ = strings.Cut(rest, ";")
	return s, url, key
}

func TestTCP(t *testing.T) {
	s, url, key := withKey(t)
	for _, tc := range []struct {
		key    string
		status int
	}{{key, 200}, {"", 401}, {key[1:], 401}} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/v1/info", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+tc.key)
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != tc.status {
			t.Errorf("key %q: %s", tc.key, resp.Status)
		}
	}
	if strings.Contains(s.log.String(), key) {
		t.Error("the key is in the log")
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	if err := s.stop(syscall.SIGINT); err != nil {
		t.Error(err)
	}
}

// TestSchemathesis lets a foreign program look for requests that the server
// answers otherwise than its OpenAPI document says. The two calls that stream
// until they are told to stop are left out.
func TestSchemathesis(t *testing.T) {
	program, err := filepath.Abs("../../../.cache/schemathesis/venv/bin/schemathesis")
	if err != nil {
		t.Fatal(err)
	}
	_, missing := os.Stat(program)
	require.Check(t, "schemathesis", missing == nil, "scripts/schemathesis.sh installs it")
	s, url, key := withKey(t, "--max-sandboxes", "500", "--max-ttl", "20s", "--default-ttl", "20s")
	config, err := filepath.Abs("testdata/schemathesis.toml")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "--config-file", config, "run", url+"/v1/openapi.json",
		"--header", "Authorization: Bearer "+key, "--checks", "all", "--phases", "coverage,fuzzing,stateful",
		"--max-examples", "10", "--request-timeout", "40", "--suppress-health-check", "all", "--no-color",
		"--exclude-operation-id", "watchFolder", "--exclude-operation-id", "followOutput")
	// It writes what it remembers to where it runs.
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "HOME="+cmd.Dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
	if strings.Contains(s.log.String(), `"level":"ERROR"`) {
		t.Errorf("the log holds errors: %s", s.log.String())
	}
	if err := s.stop(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	childless(t)
}
