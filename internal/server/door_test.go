package server

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tranca/internal/api"
	"tranca/internal/require"
)

// byTCP sends a request by TCP.
func (w *world) byTCP(method, path string, header http.Header) *reply {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, "http://"+w.tcp+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if header != nil {
		req.Header = header
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	b := make([]byte, 4096)
	n, _ := resp.Body.Read(b)
	r := &reply{resp, b[:n]}
	return r
}

func TestKeys(t *testing.T) {
	w := start(t)
	bearer := func(keys ...string) http.Header {
		h := http.Header{}
		for _, k := range keys {
			h.Add("Authorization", k)
		}
		return h
	}
	if r := w.byTCP("GET", "/v1/info", bearer("Bearer "+testKey)); r.StatusCode != 200 {
		t.Fatalf("the right key: %s", r.body)
	}
	if r := w.byTCP("GET", "/healthz", nil); r.StatusCode != 200 {
		t.Errorf("health needs a key: %s", r.body)
	}
	for name, tc := range map[string]struct {
		path   string
		header http.Header
		words  string
	}{
		"none":            {"/v1/info", nil, "no header"},
		"metrics":         {"/metrics", nil, "no header"},
		"no such path":    {"/v9", nil, "no header"},
		"empty":           {"/v1/info", bearer(""), ""},
		"empty bearer":    {"/v1/info", bearer("Bearer "), ""},
		"wrong":           {"/v1/info", bearer("Bearer " + strings.Repeat("x", 32)), "wrong"},
		"cut":             {"/v1/info", bearer("Bearer " + testKey[:31]), "wrong"},
		"longer":          {"/v1/info", bearer("Bearer " + testKey + "0"), "wrong"},
		"basic":           {"/v1/info", bearer("Basic " + testKey), "Bearer"},
		"two":             {"/v1/info", bearer("Bearer "+testKey, "Bearer "+testKey), "2 headers"},
		"in the address":  {"/v1/info?key=" + testKey, nil, "address"},
		"as api_key":      {"/v1/info?api_key=x", nil, "address"},
		"by another name": {"/v1/info?q=" + testKey, bearer("Bearer " + testKey), "address"},
		"escaped":         {"/v1/info?q=%30" + testKey[1:], bearer("Bearer " + testKey), "address"},
		"escaped name":    {"/v1/info?%6bey=x", nil, "address"},
		"both":            {"/v1/info?access_token=" + testKey, bearer("Bearer " + testKey), "address"},
	} {
		r := w.byTCP("GET", tc.path, tc.header)
		p := r.problem(t)
		if r.StatusCode != 401 || p.Code != api.CodeUnauthorized || !strings.Contains(p.Detail, tc.words) || r.Header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s: %d %s", name, r.StatusCode, r.body)
		}
	}
	if strings.Contains(w.log.String(), testKey) {
		t.Error("the key is in the log")
	}
}

// TestNoKey shows that a server without a key lets nobody in by TCP.
func TestNoKey(t *testing.T) {
	w := start(t, func(s *settings) { s.server.Key = "" })
	for _, key := range []string{"Bearer ", "Bearer", "Bearer " + testKey} {
		if r := w.byTCP("GET", "/v1/info", http.Header{"Authorization": {key}}); r.StatusCode != 401 {
			t.Errorf("%q: %d", key, r.StatusCode)
		}
	}
}

// TestStranger shows that the kernel is asked who connects: the modes of
// folder and socket are one lock, this is another.
func TestStranger(t *testing.T) {
	require.Root(t)
	w := start(t)
	for path, mode := range map[string]os.FileMode{filepath.Dir(w.socket): 0o755, w.socket: 0o666} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	self := filepath.Join(filepath.Dir(w.socket), "stranger")
	b, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(self, b, 0o755); err != nil {
		t.Fatal(err)
	}
	for uid, want := range map[uint32]string{65534: "403 ", 0: "200 "} {
		cmd := exec.Command(self, strangerRole, w.socket)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), want) {
			t.Errorf("user %d: %s (%v)", uid, out, err)
		}
	}
	if err := os.Chmod(w.socket, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestLogTellsNothing shows that what code, client and metadata say is not
// logged, unless it was asked for.
func TestLogTellsNothing(t *testing.T) {
	for _, asked := range []bool{false, true} {
		w := start(t, func(s *settings) { s.server.LogCode = asked })
		box := w.create(api.CreateRequest{Metadata: map[string]string{"m": "secret-metadata"}})
		for _, path := range []string{"/v1/run", box + "/run"} {
			w.want(200, "POST", path, api.RunRequest{
				Language: "sh", Code: "print secret-output\n# secret-code", Stdin: "secret-stdin",
				Narrow: api.Narrowing{Env: map[string]string{"V": "secret-env"}},
			}, "Authorization", "Bearer secret-header")
		}
		w.launch(box, api.StartRequest{Args: []string{"print", "secret-args"}})
		w.want(404, "GET", at(box, "/stat", "/work/secret-path"), nil)
		w.want(400, "GET", "/v1/info?secret-query=1", nil)
		eventually(t, "all is logged", func() bool { return strings.Count(w.log.String(), `"request"`) >= 6 })
		text := w.log.String()
		for _, word := range []string{"output", "stdin", "env", "metadata", "header", "path", "query"} {
			if strings.Contains(text, "secret-"+word) && !(asked && word == "output") {
				t.Errorf("asked %t: the log holds secret-%s: %s", asked, word, text)
			}
		}
		for _, word := range []string{"code", "args"} {
			if strings.Contains(text, "secret-"+word) != asked {
				t.Errorf("asked %t: secret-%s in the log: %s", asked, word, text)
			}
		}
		if !strings.Contains(text, strings.TrimPrefix(box, "/v1/sandboxes/")) || !strings.Contains(text, `"request_id":"r`) {
			t.Errorf("no ids: %s", text)
		}
	}
}
