package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"tranca"
	"tranca/internal/policy"
)

// lying are files that say what they like.
type lying struct {
	failingFiles
	found   []tranca.FileInfo
	content func(path string) io.Reader
}

func (l lying) MakeDir(context.Context, string) (tranca.FileInfo, error) {
	return tranca.FileInfo{}, nil
}

func (l lying) List(context.Context, string, int) ([]tranca.FileInfo, error) { return l.found, nil }

func (l lying) Stat(_ context.Context, path string) (tranca.FileInfo, error) {
	return tranca.FileInfo{Path: path, Type: tranca.FileRegular, Size: 1}, nil
}

func (l lying) Read(_ context.Context, path string, _ int64) (io.ReadCloser, error) {
	return io.NopCloser(l.content(path)), nil
}

// endless reads a head and then the same byte for ever.
type endless struct{ head io.Reader }

func (e *endless) Read(p []byte) (int, error) {
	if n, err := e.head.Read(p); err == nil {
		return n, nil
	}
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

const pngMagic = "\x89PNG\r\n\x1a\n"

// TestAGuestThatLies has sizes, names and contents that are not what they are
// said to be.
func TestAGuestThatLies(t *testing.T) {
	small := pictures(t, 2, 2)["image/png"]
	file := func(path string, size int64) tranca.FileInfo {
		return tranca.FileInfo{Path: path, Type: tranca.FileRegular, Size: size}
	}
	var many []tranca.FileInfo
	for i := range 100_000 {
		many = append(many, file(fmt.Sprint(i), 100))
	}
	for name, c := range map[string]struct {
		files  lying
		images int
		told   string
	}{
		"a small size, no end": {lying{found: []tranca.FileInfo{file("a", 100)}, content: func(string) io.Reader {
			return &endless{strings.NewReader(pngMagic)}
		}}, 0, "more than 5 MiB"},
		"a negative size": {lying{found: []tranca.FileInfo{file("a", -1)}, content: func(string) io.Reader { return bytes.NewReader(small) }}, 0, "(no output)"},
		"a huge size":     {lying{found: []tranca.FileInfo{file("a", 1<<62)}, content: func(string) io.Reader { return bytes.NewReader(small) }}, 1, "2 x 2"},
		"nothing to read": {lying{found: []tranca.FileInfo{file("a", 100)}, content: func(string) io.Reader { return strings.NewReader("") }}, 0, "(no output)"},
		"broken in between": {lying{found: []tranca.FileInfo{file("a", 100)}, content: func(string) io.Reader {
			return io.MultiReader(strings.NewReader(pngMagic+"rest"), brokenReader{})
		}}, 0, "could not be read"},
		"a name of anything": {lying{found: []tranca.FileInfo{file("\xff\n\"\x00"+strings.Repeat("é", 5000), 100)}, content: func(string) io.Reader { return bytes.NewReader(small) }}, 1, `\x00`},
		"very many files":    {lying{found: many, content: func(string) io.Reader { return strings.NewReader(strings.Repeat("x", 100)) }}, 0, "more than 64 new files"},
	} {
		t.Run(name, func(t *testing.T) {
			h := connect(t, Config{Runner: &scripted{answer: exited(0, ""), files: c.files}})
			res := h.call(t, "run_python", map[string]any{"code": "x"})
			images := 0
			for _, block := range res.Content {
				if _, ok := block.(*mcp.ImageContent); ok {
					images++
				}
			}
			if text := strings.Join(blocks(res), "\n"); images != c.images || !strings.Contains(text, c.told) || len(text) > 2000 {
				t.Errorf("%d images, told %.2000q", images, text)
			}
		})
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("secret") }

// TestReadsOfLiesAreBounded reads files that have no end.
func TestReadsOfLiesAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		head, want string
		args       map[string]any
	}{
		"text":   {"hello ", "go on with offset 65536", nil},
		"a part": {"hello ", "Bytes 7 to 1048583; go on", map[string]any{"offset": 7, "limit": maxRead}},
		"image":  {pngMagic, "more than 5 MiB", nil},
		"binary": {"\x00\x01", "neither text nor an image", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := &fakeSession{scripted: &scripted{answer: exited(0, ""), files: lying{content: func(string) io.Reader {
				return &endless{strings.NewReader(c.head)}
			}}}, t: t}
			h := connect(t, Config{Policy: keeping(), OpenSession: func(context.Context) (Session, error) { return s, nil }})
			args := map[string]any{"path": "x"}
			for k, v := range c.args {
				args[k] = v
			}
			text := strings.Join(blocks(h.call(t, "read_file", args)), "\n")
			if !strings.Contains(text, c.want) || len(text) > maxRead+1000 {
				t.Errorf("%.300q", text)
			}
			edit := h.call(t, "edit_file", map[string]any{"path": "x", "old_text": "hello", "new_text": "y"})
			if !edit.IsError || !strings.Contains(blocks(edit)[0], "too much to edit") {
				t.Errorf("edit: %q", blocks(edit))
			}
		})
	}
}

// stuck is a client's side that takes the answer to its greeting, and nothing
// else until it is let go.
type stuck struct {
	greeted bool
	let     chan struct{}
}

func (s *stuck) Write(p []byte) (int, error) {
	if s.greeted {
		<-s.let
	}
	s.greeted = true
	return len(p), nil
}

// TestAClientThatNeverReadsKeepsNothing ends its input while what was written
// to it is still there.
func TestAClientThatNeverReadsKeepsNothing(t *testing.T) {
	closed := make(chan struct{})
	s, err := New(Config{
		Policy: policy.Default(), Version: "test", Logger: slog.New(slog.DiscardHandler), Report: func(error) {},
		OpenSession: func(context.Context) (Session, error) {
			return &closing{failing{nil, nil}, sync.OnceFunc(func() { close(closed) })}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	in, client := io.Pipe()
	out := &stuck{let: make(chan struct{})}
	served := make(chan error, 1)
	go func() { served <- s.Serve(t.Context(), in, out) }()
	for _, message := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"create_session","arguments":{},"_meta":{"progressToken":1}}}`,
	} {
		if _, err := io.WriteString(client, message+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	for len(s.sessions.list()) == 0 {
		time.Sleep(time.Millisecond)
	}
	client.Close()
	<-closed // or the test's deadline says what is wrong
	close(out.let)
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

type closing struct {
	failing
	closed func()
}

func (c *closing) Close(context.Context) error {
	c.closed()
	return nil
}
