package mcp_test

import (
	"bytes"
	"context"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// drawing writes a PNG by hand: the sandbox has no library for it.
const drawing = `
import os, struct, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
def png(w, h):
    rows = (b"\0" + b"\xff\0\0" * w) * h
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
`

func TestImagesOverStdio(t *testing.T) {
	p := dial(t, "")
	res := p.call("run_python", args{"code": drawing + `
open("/work/out/red.png", "wb").write(png(7, 5))
open("/work/out/notes.txt", "w").write("no image")
open("/work/elsewhere.png", "wb").write(png(1, 1))
print("drawn")`})
	shown := images(res)
	if res.IsError || len(shown) != 1 || shown[0].MIMEType != "image/png" {
		t.Fatalf("error %v, %d images: %s", res.IsError, len(shown), words(res))
	}
	picture, err := png.Decode(bytes.NewReader(shown[0].Data))
	if err != nil || picture.Bounds().Dx() != 7 || picture.Bounds().Dy() != 5 {
		t.Errorf("the image: %v", err)
	}
	if want := "drawn\n\nImage \"/work/out/red.png\" (image/png, 7 x 5 pixels):"; words(res) != want {
		t.Errorf("it says %q, want %q", words(res), want)
	}
	var out struct {
		Images []struct{ Path, Type string }
	}
	decode(t, res, &out)
	if len(out.Images) != 1 || out.Images[0].Path != "/work/out/red.png" {
		t.Errorf("structure %+v", out)
	}
}

func TestImagesAreBounded(t *testing.T) {
	p := dial(t, "")
	res := p.call("run_python", args{"code": drawing + `
for i in range(9):
    open(f"/work/out/{i}.png", "wb").write(png(2, 2))
open("/work/out/cut.png", "wb").write(png(2, 2)[:-5])
open("/work/out/wide.png", "wb").write(png(9000, 1))
os.mkfifo("/work/out/pipe.png")
os.symlink("/work/out/0.png", "/work/out/link.png")`})
	if text := words(res); len(images(res)) != 4 || !strings.Contains(text, "7 more images are not shown") {
		t.Errorf("%d images: %s", len(images(res)), text)
	}
	res = p.call("run_python", args{"code": drawing + `
open("/work/out/a.png", "wb").write(png(2, 2)[:-5])
open("/work/out/b.png", "wb").write(png(9000, 1))
os._exit(3)`})
	text := words(res)
	if len(images(res)) != 0 || !strings.Contains(text, "a.png\" is not shown: it begins as image/png, but is broken") || !strings.Contains(text, "9000 x 1 pixels") {
		t.Errorf("%d images: %s", len(images(res)), text)
	}
	// A folder that is gone, or is none, is no error.
	for _, code := range []string{"import os; os.rmdir('/work/out')", "import os; os.rmdir('/work/out'); open('/work/out', 'w')"} {
		if res := p.call("run_python", args{"code": code}); res.IsError || len(images(res)) != 0 {
			t.Errorf("%s: %s", code, words(res))
		}
	}
}

func TestImagesOfASessionAreThoseOfTheRun(t *testing.T) {
	p := dial(t, "")
	s := p.create()
	draw := func(code string) int {
		t.Helper()
		return len(images(p.call("run_python", args{"session": s, "code": drawing + code})))
	}
	if n := draw(`open("out/a.png", "wb").write(png(2, 2))`); n != 1 {
		t.Errorf("first: %d images", n)
	}
	if n := draw(`print("nothing")`); n != 0 {
		t.Errorf("second: %d images", n)
	}
	if n := draw(`open("out/a.png", "wb").write(png(3, 2)); open("out/b.png", "wb").write(png(3, 2))`); n != 2 {
		t.Errorf("third: %d images", n)
	}
	res := p.call("read_file", args{"session": s, "path": "out/a.png"})
	if shown := images(res); len(shown) != 1 || !strings.Contains(words(res), "3 x 2 pixels") {
		t.Errorf("read: %s", words(res))
	}
}

// withProgress calls a tool and asks for progress.
func (p *peer) withProgress(ctx context.Context, tool string, a args) (*mcp.CallToolResult, error) {
	params := &mcp.CallToolParams{Name: tool, Arguments: a}
	params.SetProgressToken("token")
	return p.session.CallTool(ctx, params)
}

func TestProgressOverStdio(t *testing.T) {
	p := dial(t, "")
	res, err := p.withProgress(t.Context(), "run_python", args{"code": `
import time
for i in range(6):
    print("step", i, "\x1b[31m", flush=True)
    time.sleep(0.5)`})
	if err != nil || res.IsError {
		t.Fatalf("%v, %+v", err, res)
	}
	notes := p.notes()
	if len(notes) < 3 || len(notes) > 12 {
		t.Fatalf("%d notifications", len(notes))
	}
	for i, n := range notes {
		if n.ProgressToken != "token" || i > 0 && n.Progress <= notes[i-1].Progress || strings.Contains(n.Message, "\x1b") {
			t.Errorf("notification %d: %+v", i, n)
		}
	}
	if !strings.HasPrefix(notes[0].Message, "waiting for its turn") && !strings.HasPrefix(notes[0].Message, "running") {
		t.Errorf("the first: %q", notes[0].Message)
	}
	if last := notes[len(notes)-1].Message; !strings.HasPrefix(last, "running for") || !strings.Contains(last, "bytes of output") || !strings.Contains(last, "step") {
		t.Errorf("the last: %q", last)
	}
	// Without a token there are none.
	p.ok("run_python", args{"code": "import time; time.sleep(1.2)"})
	if after := p.notes(); len(after) != len(notes) {
		t.Errorf("%d more without being asked", len(after)-len(notes))
	}
}

// TestProgressSaysThatItWaits has one call wait for another in one session.
func TestProgressSaysThatItWaits(t *testing.T) {
	p := dial(t, "")
	s := p.create()
	first := make(chan struct{})
	go func() {
		defer close(first)
		if _, err := p.withProgress(t.Context(), "run_python", args{"session": s, "code": "import time; time.sleep(3)"}); err != nil {
			t.Error(err)
		}
	}()
	for !slices.ContainsFunc(p.notes(), func(n *mcp.ProgressNotificationParams) bool { return strings.HasPrefix(n.Message, "running") }) {
		time.Sleep(10 * time.Millisecond)
	}
	params := &mcp.CallToolParams{Name: "run_python", Arguments: args{"session": s, "code": "1"}}
	params.SetProgressToken("second")
	if _, err := p.session.CallTool(t.Context(), params); err != nil {
		t.Fatal(err)
	}
	<-first
	var seen []string
	for _, n := range p.notes() {
		if n.ProgressToken == "second" {
			seen = append(seen, n.Message)
		}
	}
	if len(seen) < 2 || seen[0] != "waiting for its turn" {
		t.Errorf("the second was told %q", seen)
	}
}

// alive counts the processes on this host that have the word in their command
// line.
func alive(t *testing.T, word string) int {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err == nil && bytes.Contains(text, []byte(word)) {
			n++
		}
	}
	return n
}

// await waits until so many processes have the word.
func await(t *testing.T, word string, want int) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for n := alive(t, word); n != want; n = alive(t, word) {
		if time.Now().After(deadline) {
			t.Fatalf("%d processes with %s, want %d", n, word, want)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func TestCancellationEndsTheRun(t *testing.T) {
	p := dial(t, "")
	s := p.create()
	for i, where := range []args{{}, {"session": s}} {
		// The children ignore what can be ignored.
		seconds := strconv.Itoa(1_000_000 + os.Getpid()*10 + i)
		where["command"] = []string{"sh", "-c", "trap '' TERM INT HUP; sleep " + seconds + " & sleep " + seconds}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := p.session.CallTool(ctx, &mcp.CallToolParams{Name: "run_command", Arguments: where})
			ended <- err
		}()
		await(t, "sleep\x00"+seconds, 2)
		cancel()
		if err := <-ended; err == nil {
			t.Error("the cancelled call has a result")
		}
		await(t, seconds, 0)
		delete(where, "command")
		where["code"] = "print('next')"
		if text := p.ok("run_python", where); text != "next\n" {
			t.Errorf("the call after it: %q", text)
		}
	}
}

// TestTheClientsEndEndsAll closes the connection under a program of a session.
func TestTheClientsEndEndsAll(t *testing.T) {
	seconds := strconv.Itoa(2_000_000 + os.Getpid()*10)
	t.Run("client", func(t *testing.T) {
		p := dial(t, "")
		for range 3 {
			p.ok("start_process", args{"session": p.create(), "command": []string{"sleep", seconds}})
		}
		await(t, "sleep\x00"+seconds, 3)
	})
	await(t, seconds, 0)
}
