package mcp_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// peer is the SDK's client at the end of two pipes, behind which this test
// binary is the command as it is shipped.
type peer struct {
	t       *testing.T
	session *mcp.ClientSession
	server  *exec.Cmd

	mu       sync.Mutex
	progress []*mcp.ProgressNotificationParams
}

// dial starts `tranca mcp` with a policy file, or with that of home.
func dial(t *testing.T, policyText string) *peer {
	t.Helper()
	needProcess(t)
	home := home(t)
	args := []string{"mcp"}
	if policyText != "" {
		path := filepath.Join(home, "policy.yaml")
		if err := os.WriteFile(path, []byte(policyText), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--policy", path)
	}
	p := &peer{t: t, server: exec.Command(self(t), args...)}
	p.server.Env = append(os.Environ(), serveVariable+"=1", "HOME="+home, "XDG_CONFIG_HOME=")
	var log strings.Builder
	p.server.Stderr = &log
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.progress = append(p.progress, r.Params)
		},
	})
	var err error
	p.session, err = client.Connect(t.Context(), &mcp.CommandTransport{Command: p.server}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.session.Close(); err != nil {
			t.Errorf("the server's end: %v\n%s", err, log.String())
		}
	})
	return p
}

// notes are the progress notifications so far.
func (p *peer) notes() []*mcp.ProgressNotificationParams {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]*mcp.ProgressNotificationParams(nil), p.progress...)
}

type args map[string]any

func (p *peer) call(tool string, a args) *mcp.CallToolResult {
	p.t.Helper()
	res, err := p.session.CallTool(p.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: a})
	if err != nil {
		p.t.Fatalf("%s(%v): %v", tool, a, err)
	}
	return res
}

// ok calls a tool that must succeed, and returns its text.
func (p *peer) ok(tool string, a args) string {
	p.t.Helper()
	res := p.call(tool, a)
	if res.IsError {
		p.t.Fatalf("%s(%v): %s", tool, a, words(res))
	}
	return words(res)
}

// refused calls a tool that must fail with these words.
func (p *peer) refused(tool string, a args, want string) {
	p.t.Helper()
	res := p.call(tool, a)
	if !res.IsError || !strings.Contains(words(res), want) {
		p.t.Errorf("%s(%v): error %v: %s; want %q", tool, a, res.IsError, words(res), want)
	}
	for _, word := range []string{"secret", "namespace", "cgroup", "backend", "seccomp", "errno", "/proc", "iaaa"} {
		if strings.Contains(words(res), word) {
			p.t.Errorf("%s(%v) tells %q: %s", tool, a, word, words(res))
		}
	}
}

// create makes a session.
func (p *peer) create() string {
	p.t.Helper()
	var out struct{ Session string }
	decode(p.t, p.call("create_session", args{}), &out)
	return out.Session
}

func decode(t *testing.T, res *mcp.CallToolResult, out any) {
	t.Helper()
	text, err := json.Marshal(res.StructuredContent)
	if err == nil {
		err = json.Unmarshal(text, out)
	}
	if err != nil || res.IsError {
		t.Fatalf("error %v, %v: %s", res.IsError, err, words(res))
	}
}

// words are the text blocks of a result.
func words(res *mcp.CallToolResult) string {
	var all []string
	for _, c := range res.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			all = append(all, text.Text)
		}
	}
	return strings.Join(all, "\n")
}

func images(res *mcp.CallToolResult) []*mcp.ImageContent {
	var all []*mcp.ImageContent
	for _, c := range res.Content {
		if image, ok := c.(*mcp.ImageContent); ok {
			all = append(all, image)
		}
	}
	return all
}

func TestSessionsOverStdio(t *testing.T) {
	p := dial(t, "")
	if text := p.ok("list_sessions", nil); text != "There is no session." {
		t.Error(text)
	}
	a, b := p.create(), p.create()
	if a != "s1" || b != "s2" {
		t.Errorf("they are called %q and %q", a, b)
	}
	p.ok("run_python", args{"code": "open('kept', 'w').write('x')", "session": a})
	if text := p.ok("run_command", args{"command": []string{"cat", "kept"}, "session": a}); text != "x" {
		t.Errorf("a file of the session: %q", text)
	}
	for _, elsewhere := range []args{{"command": []string{"ls"}}, {"command": []string{"ls"}, "session": b}} {
		if text := p.ok("run_command", elsewhere); text != "out\n" {
			t.Errorf("%v shows %q", elsewhere, text)
		}
	}
	var listed struct {
		Sessions []struct {
			Session string
			Busy    bool
		}
	}
	decode(t, p.call("list_sessions", nil), &listed)
	if len(listed.Sessions) != 2 || listed.Sessions[0].Session != a || listed.Sessions[1].Busy {
		t.Errorf("listed %+v", listed)
	}
	p.ok("close_session", args{"session": a})
	p.refused("run_python", args{"code": "1", "session": a}, "s1 has ended")
	p.refused("close_session", args{"session": a}, "s1 has ended")
	p.refused("run_python", args{"code": "1", "session": "s3"}, "no session")
	p.refused("read_file", args{"path": "kept"}, "session")
	if c := p.create(); c != "s3" {
		t.Errorf("the next is called %q", c)
	}
}

func TestNoMoreSessionsThanTheBound(t *testing.T) {
	p := dial(t, "")
	var creating sync.WaitGroup
	var mu sync.Mutex
	made := map[string]bool{}
	for range 10 {
		creating.Go(func() {
			res, err := p.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "create_session", Arguments: args{}})
			if err != nil {
				t.Error(err)
			} else if !res.IsError {
				mu.Lock()
				defer mu.Unlock()
				made[words(res)] = true
			}
		})
	}
	creating.Wait()
	if len(made) != 8 {
		t.Errorf("%d were made: %v", len(made), made)
	}
	p.refused("create_session", nil, "8 sessions already")
	p.ok("close_session", args{"session": "s4"})
	p.create()
}

func TestFilesOverStdio(t *testing.T) {
	p := dial(t, "")
	s := p.create()
	p.ok("write_file", args{"path": "a/b/c.txt", "content": "one\ntwo\nthree\n", "session": s})
	if text := p.ok("read_file", args{"path": "/work/a/b/c.txt", "session": s}); text != "one\ntwo\nthree\n" {
		t.Errorf("read %q", text)
	}
	if text := p.ok("edit_file", args{"path": "a/b/c.txt", "old_text": "two", "new_text": "2", "session": s}); !strings.HasSuffix(text, "@@ line 2\n one\n-two\n+2\n three") {
		t.Errorf("the edit says %q", text)
	}
	if text := p.ok("run_command", args{"command": []string{"cat", "a/b/c.txt"}, "session": s}); text != "one\n2\nthree\n" {
		t.Errorf("a program reads %q", text)
	}
	if text := p.ok("read_file", args{"path": "a/b/c.txt", "offset": 4, "limit": 2, "session": s}); text != "Bytes 4 to 6 of 12; go on with offset 6.\n2\n" {
		t.Errorf("a part: %q", text)
	}
	p.ok("run_command", args{"command": []string{"ln", "-s", "a/b", "link"}, "session": s})
	if text := p.ok("list_files", args{"session": s, "depth": 3}); text != "folder /work/a\nfolder /work/a/b\nfile   /work/a/b/c.txt (12 bytes)\nlink   /work/link -> a/b\nfolder /work/out" {
		t.Errorf("listed %q", text)
	}
	p.refused("read_file", args{"path": "missing", "session": s}, `no "missing"`)
	p.refused("read_file", args{"path": "a", "session": s}, "is a folder")
	p.refused("read_file", args{"path": "/dev/zero", "session": s}, "another kind")
	p.refused("write_file", args{"path": "/usr/bin/x", "content": "", "session": s}, "No permission")
	p.refused("write_file", args{"path": "a", "content": "", "session": s}, "another kind")
	p.refused("edit_file", args{"path": "a/b/c.txt", "old_text": "e", "new_text": "E", "session": s}, "3 times")
	p.refused("list_files", args{"path": "a/b/c.txt", "session": s}, "another kind")
	p.refused("read_file", args{"path": "a\x00", "session": s}, "NUL")
	p.refused("read_file", args{"path": "a", "session": s, "user": "root"}, "user")
}

// TestHostileFiles has code make names and contents that break what is not
// careful.
func TestHostileFiles(t *testing.T) {
	p := dial(t, "")
	s := p.create()
	p.ok("run_python", args{"session": s, "code": `
import os
open(b"bad\xff\nfile   passwd (3 bytes)", "wb").close()
open("latin", "wb").write(b"caf\xe9 and more")
open("binary", "wb").write(bytes(range(256)))
open("large", "wb").write(b"\0" * (1 << 20))
open("half.png", "wb").write(b"\x89PNG\r\n\x1a\n" + b"x" * 100)
os.mkfifo("pipe")
open("escapes", "w").write("\x1b]0;title\x07\u2028\u202e")
`})
	text := p.ok("list_files", args{"session": s})
	if strings.Count(text, "\n") != 7 || !strings.Contains(text, `"/work/bad\xff\nfile   passwd (3 bytes)"`) {
		t.Errorf("listed\n%s", text)
	}
	if text := p.ok("read_file", args{"session": s, "path": "latin"}); !strings.Contains(text, "no UTF-8") || !strings.HasSuffix(text, "caf\uFFFD and more") {
		t.Errorf("read %q", text)
	}
	if text := p.ok("read_file", args{"session": s, "path": "binary"}); !strings.Contains(text, "In base64:\nAAECAw") {
		t.Errorf("read %q", text)
	}
	if text := p.ok("read_file", args{"session": s, "path": "escapes"}); text != "\x1b]0;title\x07\u2028\u202e" {
		t.Errorf("read %q", text)
	}
	p.refused("read_file", args{"session": s, "path": "large"}, "neither text nor an image")
	p.refused("read_file", args{"session": s, "path": "half.png"}, "broken or not whole")
	p.refused("read_file", args{"session": s, "path": "pipe"}, "another kind")
}

func TestKeptFilesNeedNoSession(t *testing.T) {
	p := dial(t, "version: 1\nsession: {keep_files: true}\n")
	p.ok("write_file", args{"path": "x", "content": "kept"})
	if text := p.ok("run_python", args{"code": "print(open('x').read())"}); text != "kept\n" {
		t.Errorf("a program reads %q", text)
	}
	s := p.create()
	p.refused("read_file", args{"path": "x", "session": s}, "There is no")
	if text := p.ok("read_file", args{"path": "x"}); text != "kept" {
		t.Errorf("read %q", text)
	}
}

func TestProcessesOverStdio(t *testing.T) {
	p := dial(t, "")
	s := p.create()
	var started struct{ Program string }
	decode(t, p.call("start_process", args{"session": s, "command": []string{"python3", "-c", `
import http.server, sys
print("ready", flush=True)
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"hello")
http.server.HTTPServer(("127.0.0.1", 8000), H).serve_forever()
`}}), &started)
	var out struct {
		Running, Missed bool
		Stdout, Stderr  string
		Next            int64 `json:"stdout_offset"`
	}
	decode(t, p.call("process_output", args{"session": s, "program": started.Program, "wait_seconds": 20}), &out)
	if !out.Running || out.Stdout != "ready\n" || out.Next != 6 || out.Missed {
		t.Errorf("output %+v", out)
	}
	fetch := args{"session": s, "code": "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:8000/').read())"}
	for range 2 {
		// What one run leaves is ended; what was started is not.
		if text := p.ok("run_python", fetch); text != "b'hello'\n" {
			t.Errorf("it answers %q", text)
		}
	}
	decode(t, p.call("process_output", args{"session": s, "program": started.Program, "stdout_offset": 6}), &out)
	if out.Stdout != "" || !strings.Contains(out.Stderr, "GET /") {
		t.Errorf("output %+v", out)
	}
	if text := p.ok("stop_process", args{"session": s, "program": started.Program}); !strings.Contains(text, "SIGTERM") {
		t.Errorf("the stop says %q", text)
	}
	decode(t, p.call("process_output", args{"session": s, "program": started.Program}), &out)
	if out.Running || out.Stdout != "ready\n" {
		t.Errorf("output %+v", out)
	}
	p.refused("process_output", args{"session": s, "program": "p9"}, "no program p9")
	p.refused("process_output", args{"session": s, "program": "tag=x"}, "no program")
	p.refused("start_process", args{"session": s, "command": []string{"no-such-program"}}, "no program")
	p.ok("close_session", args{"session": s})
	p.refused("process_output", args{"session": s, "program": started.Program}, "has ended")
}

func TestStopMeansStop(t *testing.T) {
	p := dial(t, "")
	s := p.create()
	var started struct{ Program string }
	decode(t, p.call("start_process", args{"session": s, "command": []string{"sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 1; done"}}), &started)
	p.ok("process_output", args{"session": s, "program": started.Program, "wait_seconds": 20})
	began := time.Now()
	if text := p.ok("stop_process", args{"session": s, "program": started.Program}); !strings.Contains(text, "SIGKILL") {
		t.Errorf("the stop says %q after %s", text, time.Since(began))
	}
}
