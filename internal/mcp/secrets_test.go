package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tranca"
	"tranca/internal/policy"
)

var update = flag.Bool("update", false, "write the golden files anew")

// failing is a session in which nothing works.
type failing struct{ err, closing error }

func (f failing) Run(context.Context, tranca.Request) (*tranca.Result, error) { return nil, f.err }
func (f failing) Files() tranca.Files                                         { return failingFiles{f.err} }
func (f failing) Start(context.Context, []string) (Process, error)            { return nil, f.err }
func (f failing) Process(string) (Process, error)                             { return nil, f.err }
func (f failing) Close(context.Context) error                                 { return f.closing }

type failingFiles struct{ err error }

func (f failingFiles) Read(context.Context, string, int64) (io.ReadCloser, error) {
	return nil, f.err
}

func (f failingFiles) Write(context.Context, string, io.Reader, fs.FileMode) (int64, error) {
	return 0, f.err
}

func (f failingFiles) Stat(context.Context, string) (tranca.FileInfo, error) {
	return tranca.FileInfo{}, f.err
}

func (f failingFiles) List(context.Context, string, int) ([]tranca.FileInfo, error) {
	return nil, f.err
}

func (f failingFiles) MakeDir(context.Context, string) (tranca.FileInfo, error) {
	return tranca.FileInfo{}, f.err
}

func (f failingFiles) Move(context.Context, string, string) (tranca.FileInfo, error) {
	return tranca.FileInfo{}, f.err
}

func (f failingFiles) Remove(context.Context, string) error { return f.err }

// everyTool has arguments for each tool that works in a session.
func everyTool(session string) map[string]map[string]any {
	return map[string]map[string]any{
		"run_python":     {"code": "x", "session": session},
		"run_command":    {"command": []string{"x"}, "session": session},
		"read_file":      {"path": "x", "session": session},
		"write_file":     {"path": "x", "content": "", "session": session},
		"edit_file":      {"path": "x", "old_text": "a", "new_text": "b", "session": session},
		"list_files":     {"path": "x", "session": session},
		"start_process":  {"command": []string{"x"}, "session": session},
		"process_output": {"program": "p1", "session": session},
		"stop_process":   {"program": "p1", "session": session},
		"close_session":  {"session": session},
	}
}

var hidden = []string{"alice", "secret", "cgroup", "limits.memory", "isolation", "backend", "namespace", "seccomp", "sha256", "iaaaa"}

// TestNoToolTellsWhyItFailed has every call fail by every class of error: the
// agent gets words that it can act on, and nothing of the error's own.
func TestNoToolTellsWhyItFailed(t *testing.T) {
	const secret = "/home/alice/secret by cgroup of iaaaaaaaaaaaaaaaaaaaa"
	classes := []error{
		tranca.ErrInvalid, tranca.ErrRefused, tranca.ErrUnavailable, tranca.ErrNotFound, tranca.ErrExists, tranca.ErrGone,
		tranca.ErrBusy, tranca.ErrClosed, tranca.ErrUnsupported, tranca.ErrProtocol, tranca.ErrNoSpace, errors.New("other"),
		&tranca.RefusalError{Backend: secret, Problems: []tranca.Problem{{Item: tranca.ItemMemory, Missing: secret}}},
	}
	for _, class := range classes {
		err := fmt.Errorf("%w: %s", class, secret)
		for tool := range everyTool("") {
			opened := false
			h := connect(t, Config{Policy: policy.Default(), OpenSession: func(context.Context) (Session, error) {
				if opened {
					return nil, err
				}
				opened = true
				if tool == "close_session" {
					return failing{err, err}, nil
				}
				return failing{err, nil}, nil
			}})
			if res := h.call(t, "create_session", nil); res.IsError {
				t.Fatalf("create_session: %q", blocks(res))
			}
			res := h.call(t, tool, everyTool("s1")[tool])
			checkHidden(t, fmt.Sprintf("%s by %v", tool, class), res)
			if text := strings.Join(blocks(res), "\n"); !res.IsError || len(text) < 10 || !strings.HasSuffix(text, ".") {
				t.Errorf("%s by %v: error %v, told %q", tool, class, res.IsError, text)
			}
			checkHidden(t, "create_session", h.call(t, "create_session", nil))
		}
	}
}

func checkHidden(t *testing.T, what string, v any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range hidden {
		if strings.Contains(string(text), word) {
			t.Errorf("%s tells %q: %s", what, word, text)
		}
	}
}

// TestWhatTheAgentIsTold compares all that an agent reads before its first call
// with what was reviewed; -update writes it anew.
func TestWhatTheAgentIsTold(t *testing.T) {
	kept := keeping()
	kept.Mounts = []tranca.Mount{{Source: "/srv/secretsource", Target: "/data", Writable: true, Protect: []string{".git/hooks"}}}
	for name, p := range map[string]tranca.Policy{"default": policy.Default(), "kept": kept} {
		t.Run(name, func(t *testing.T) {
			h := connect(t, Config{Policy: p})
			tools, err := h.client.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			fmt.Fprintf(&b, "%s\n", h.client.InitializeResult().Instructions)
			for _, tool := range tools.Tools {
				schema, err := json.MarshalIndent(tool.InputSchema, "", "  ")
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&b, "\n## %s\n\n%s\n\n%s\n", tool.Name, tool.Description, schema)
			}
			checkHidden(t, name, tools)
			path := filepath.Join("testdata", "tools-"+name+".golden")
			if *update {
				if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil || string(want) != b.String() {
				t.Errorf("%v; the agent is told:\n%s", err, b.String())
			}
		})
	}
}
