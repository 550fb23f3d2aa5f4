package server

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"tranca"
	"tranca/internal/api"
)

// events reads lines of events.
func events(t *testing.T, b []byte) (all []api.Event) {
	t.Helper()
	for line := range bytes.Lines(b) {
		var ev api.Event
		if err := json.Unmarshal(line, &ev); err != nil {
			t.Fatalf("%v: %.200s", err, line)
		}
		if ev.Type != api.EventKeepAlive {
			all = append(all, ev)
		}
	}
	return all
}

func script(lines ...string) api.RunRequest {
	return api.RunRequest{Language: "sh", Code: strings.Join(lines, "\n")}
}

func TestRunWhole(t *testing.T) {
	w := start(t)
	sandbox := w.create()
	for _, path := range []string{"/v1/run", sandbox + "/run"} {
		r := into[tranca.Result](t, w.want(200, "POST", path, script("print out err")))
		if string(r.Stdout) != "out" || string(r.Stderr) != "err" || !r.Exit.Success() {
			t.Errorf("%s: %+v", path, r)
		}
		r = into[tranca.Result](t, w.want(200, "POST", path, api.RunRequest{Command: []string{"cat"}, Stdin: "in"}))
		if string(r.Stdout) != "in" {
			t.Errorf("%s: input came out as %q", path, r.Stdout)
		}
		r = into[tranca.Result](t, w.want(200, "POST", path, api.RunRequest{Command: []string{"exit", "3"}}))
		if r.Exit.Code != 3 || r.Exit.Reason != tranca.EndExited {
			t.Errorf("%s: %+v", path, r.Exit)
		}
	}
}

func TestRunAsEvents(t *testing.T) {
	w := start(t)
	sandbox := w.create()
	for _, path := range []string{"/v1/run", sandbox + "/run"} {
		r := w.want(200, "POST", path, script("print out err", "exit 2"), "Accept", api.TypeEvents)
		all := events(t, r.body)
		if len(all) != 4 || all[0].Type != api.EventStarted || all[0].ID == "" || all[3].Type != api.EventResult {
			t.Fatalf("%s: %s", path, r.body)
		}
		last := all[3]
		if last.Result.Exit.Code != 2 || last.StdoutBytes != 3 || last.StderrBytes != 3 || len(last.Result.Stdout) > 0 ||
			last.Result.ID != all[0].ID || last.Limits.Output == 0 {
			t.Errorf("%s: %s", path, r.body)
		}
		got := map[api.EventType]string{}
		for _, ev := range all[1:3] {
			b, err := ev.Output()
			if err != nil {
				t.Error(err)
			}
			got[ev.Type] += string(b)
		}
		if got[api.EventStdout] != "out" || got[api.EventStderr] != "err" {
			t.Errorf("%s: %q", path, got)
		}
	}
}

// TestRunFails shows that what fails before anything began is a plain problem
// also where events were asked for.
func TestRunFails(t *testing.T) {
	w := start(t)
	for _, accept := range []string{api.TypeJSON, api.TypeEvents, api.TypeFrames} {
		p := w.want(404, "POST", "/v1/run", api.RunRequest{Command: []string{"nothing"}}, "Accept", accept).problem(t)
		if p.Code != api.CodeNotFound || !strings.Contains(p.Detail, "nothing") {
			t.Errorf("%+v", p)
		}
	}
	p := w.want(403, "POST", "/v1/run", api.RunRequest{Command: []string{"exit"}, Narrow: api.Narrowing{Memory: 1 << 40}}).problem(t)
	if p.Code != api.CodeRefused || p.Refusal == nil || p.Refusal.Problems[0].Item != tranca.ItemMemory {
		t.Errorf("%+v", p)
	}
}

// frames sends a body of frames and returns the answer.
func (w *world) frames(path string, req tranca.Request, input io.Reader) *http.Response {
	w.t.Helper()
	req.Stdin = input
	head, _, err := api.RunBody(req)
	if err != nil {
		w.t.Fatal(err)
	}
	body := io.MultiReader(head(), input)
	return w.send("POST", path, body, "Content-Type", api.TypeFrames, "Accept", api.TypeFrames)
}

// inputFrame is a frame of standard input; an empty one ends it.
func inputFrame(data string) []byte {
	head := make([]byte, api.StdinHead)
	api.PutStdinHead(head, len(data))
	return append(head, data...)
}

// TestRunBothWays shows that output comes while input still goes.
func TestRunBothWays(t *testing.T) {
	w := start(t)
	in, feed := io.Pipe()
	go func() { _, _ = feed.Write(inputFrame("one")) }()
	resp := w.frames("/v1/run", tranca.Request{Command: []string{"cat"}}, in)
	defer resp.Body.Close()
	var buf []byte
	next := func() (api.Event, string) {
		t.Helper()
		ev, data, err := api.ReadFrame(resp.Body, &buf)
		if err != nil {
			t.Fatal(err)
		}
		return ev, string(data)
	}
	if ev, _ := next(); ev.Type != api.EventStarted {
		t.Fatalf("%+v", ev)
	}
	for _, text := range []string{"one", "two\xff"} {
		if text != "one" {
			if _, err := feed.Write(inputFrame(text)); err != nil {
				t.Fatal(err)
			}
		}
		if ev, data := next(); ev.Type != api.EventStdout || data != text {
			t.Fatalf("%+v %q", ev, data)
		}
	}
	if _, err := feed.Write(inputFrame("")); err != nil {
		t.Fatal(err)
	}
	if ev, _ := next(); ev.Type != api.EventResult || !ev.Result.Exit.Success() || ev.StdoutBytes != 7 {
		t.Fatalf("%+v", ev)
	}
	feed.Close()
	if _, _, err := api.ReadFrame(resp.Body, &buf); err != io.EOF {
		t.Errorf("after the result: %v", err)
	}
}

// TestInputThatEnds shows that the end of the body, which comes behind that of
// the input and which nobody reads, does no harm.
func TestInputThatEnds(t *testing.T) {
	w := start(t)
	for range 20 {
		resp := w.frames("/v1/run", tranca.Request{Command: []string{"cat"}}, bytes.NewReader(inputFrame("")))
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
}

// TestBadInputFrames shows that input which nobody understands ends the run.
func TestBadInputFrames(t *testing.T) {
	w := start(t)
	in, feed := io.Pipe()
	go func() {
		_, _ = feed.Write(inputFrame("one"))
		_, _ = feed.Write([]byte("x\x00\x00\x00\x01y"))
	}()
	resp := w.frames("/v1/run", tranca.Request{Command: []string{"cat"}}, in)
	defer resp.Body.Close()
	defer feed.Close()
	var buf []byte
	var last api.Event
	for {
		ev, _, err := api.ReadFrame(resp.Body, &buf)
		if err != nil {
			break
		}
		last = ev
	}
	if last.Type != api.EventError || last.Error.Code != api.CodeInvalid {
		t.Errorf("%+v", last)
	}
}

func TestKeepAliveEvents(t *testing.T) {
	w := start(t, func(s *settings) { s.server.KeepAlive = 20 * time.Millisecond })
	r := w.want(200, "POST", "/v1/run", script("sleep 0.3", "print late"), "Accept", api.TypeEvents)
	if n := strings.Count(string(r.body), `"keepalive"`); n < 2 {
		t.Errorf("%d keepalives: %s", n, r.body)
	}
}

// TestVanish shows that a client that goes away ends its run.
func TestVanish(t *testing.T) {
	for name, header := range map[string]string{"whole": api.TypeJSON, "events": api.TypeEvents} {
		t.Run(name, func(t *testing.T) {
			w := start(t)
			c := w.dial()
			c.write("POST /v1/run HTTP/1.1\r\nHost: t\r\nAccept: " + header + "\r\nContent-Type: application/json\r\n" +
				"Content-Length: 28\r\n\r\n" + `{"command":["sleep","3600"]}`)
			eventually(t, "the program runs", func() bool { return w.fake.Live() == 1 })
			c.Close()
			eventually(t, "nothing runs", func() bool { return w.fake.Live() == 0 })
			eventually(t, "it is counted as closed", func() bool { return w.cfg.Engine.Stats().Runs[tranca.EndClosed] == 1 })
		})
	}
}

// TestVanishWithInput shows the same for a client that still owes input.
func TestVanishWithInput(t *testing.T) {
	w := start(t)
	in, feed := io.Pipe()
	go func() { _, _ = feed.Write(inputFrame("one")) }()
	resp := w.frames("/v1/run", tranca.Request{Command: []string{"cat"}}, in)
	eventually(t, "the program runs", func() bool { return w.fake.Live() == 1 })
	resp.Body.Close()
	feed.CloseWithError(io.ErrUnexpectedEOF)
	eventually(t, "nothing runs", func() bool { return w.fake.Live() == 0 })
}

// TestSlowReader shows that what the live copy had no time for comes before
// the result.
func TestSlowReader(t *testing.T) {
	w := start(t, func(s *settings) {
		s.engine.StreamGrace = 20 * time.Millisecond
		s.engine.Policy.Limits.Output.Size = 8 << 20
	})
	resp := w.send("POST", "/v1/run", script("flood 6000000"), "Accept", api.TypeFrames)
	defer resp.Body.Close()
	time.Sleep(500 * time.Millisecond) // the program has ended long ago
	var buf []byte
	var n int64
	for {
		ev, data, err := api.ReadFrame(resp.Body, &buf)
		if err != nil {
			t.Fatal(err)
		}
		n += int64(len(data))
		if ev.Type == api.EventResult {
			if n != ev.StdoutBytes || n < 6000000 {
				t.Errorf("%d bytes came, and the result says %d", n, ev.StdoutBytes)
			}
			return
		}
	}
}
