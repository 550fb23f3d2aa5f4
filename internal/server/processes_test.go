package server

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"tranca"
	"tranca/internal/api"
	"tranca/internal/policy"
)

func TestProcessLife(t *testing.T) {
	w := start(t)
	box := w.create()
	r := w.want(201, "POST", box+"/processes", api.StartRequest{Args: []string{"cat"}, Stdin: true, Tag: "web"})
	made := into[tranca.ProcessInfo](t, r)
	path := box + "/processes/" + string(made.ID)
	if r.Header.Get("Location") != path || made.Exit != nil || made.Tag != "web" {
		t.Errorf("%s at %q", r.body, r.Header.Get("Location"))
	}
	for _, name := range []string{string(made.ID), fmt.Sprint(made.PID), "tag=web", "tag%3Dweb"} {
		if got := into[tranca.ProcessInfo](t, w.want(200, "GET", box+"/processes/"+name, nil)); got.ID != made.ID {
			t.Errorf("%s is %+v", name, got)
		}
	}
	for query, n := range map[string]int{"": 1, "?tag=web": 1, "?tag=other": 0} {
		if l := into[api.ProcessList](t, w.want(200, "GET", box+"/processes"+query, nil)); len(l.Processes) != n {
			t.Errorf("%s: %+v", query, l)
		}
	}
	in := into[api.InputAnswer](t, w.want(200, "POST", path+"/stdin", strings.NewReader("one "), "Content-Type", api.TypeBytes))
	if in.Written != 4 {
		t.Errorf("%+v", in)
	}
	w.want(200, "POST", path+"/stdin?close=true", strings.NewReader("two"))
	got := into[tranca.ProcessInfo](t, w.want(200, "GET", path+"?wait_ms=20000", nil))
	if got.Exit == nil || !got.Exit.Success() || got.Stdout.Written != 7 {
		t.Errorf("%+v", got)
	}
	out := events(t, w.want(200, "GET", path+"/output", nil).body)
	if len(out) < 3 || out[0].Type != api.EventProcess || out[len(out)-1].Type != api.EventExit || gather(t, out) != "one two" {
		t.Errorf("%+v", out)
	}
	if p := w.want(410, "POST", path+"/stdin", strings.NewReader("x")).problem(t); p.Code != api.CodeGone {
		t.Errorf("%+v", p)
	}
}

// gather joins standard output of events.
func gather(t *testing.T, all []api.Event) string {
	t.Helper()
	var b strings.Builder
	for _, ev := range all {
		if ev.Type == api.EventStdout {
			data, err := ev.Output()
			if err != nil {
				t.Fatal(err)
			}
			b.Write(data)
		}
	}
	return b.String()
}

// TestWait shows that a wait ends with its time, and with the program.
func TestWait(t *testing.T) {
	w := start(t)
	path := w.launch(w.create(), api.StartRequest{Args: []string{"sleep", "3600"}})
	if got := into[tranca.ProcessInfo](t, w.want(200, "GET", path+"?wait_ms=30", nil)); got.Exit != nil {
		t.Errorf("%+v", got)
	}
	var sent sync.WaitGroup
	defer sent.Wait()
	sent.Go(func() {
		time.Sleep(30 * time.Millisecond)
		w.send("POST", path+"/signal", `{"signal":9,"group":true}`).Body.Close()
	})
	got := into[tranca.ProcessInfo](t, w.want(200, "GET", path+"?wait_ms=60000", nil))
	if got.Exit == nil || got.Exit.Signal != 9 {
		t.Errorf("%+v", got)
	}
}

func TestTerminal(t *testing.T) {
	w := start(t)
	path := w.launch(w.create(), api.StartRequest{Args: []string{"size"}, Terminal: &tranca.TerminalSize{Rows: 24, Columns: 80}})
	w.want(204, "POST", path+"/resize", tranca.TerminalSize{Rows: 1, Columns: 65535})
	eventually(t, "the program sees its new size", func() bool {
		return strings.Contains(gather(t, events(t, w.want(200, "GET", path+"/output?follow=false", nil).body)), "1x65535\n")
	})
	for _, body := range []string{
		`{"rows":0,"columns":80}`, `{"rows":24,"columns":65536}`, `{"rows":-1,"columns":1}`, `{"rows":1}`, `{"rows":1.5,"columns":1}`,
	} {
		if p := w.want(400, "POST", path+"/resize", body).problem(t); p.Code != api.CodeInvalid {
			t.Errorf("%s: %+v", body, p)
		}
	}
	w.want(204, "POST", path+"/signal", `{"signal":9}`)
}

// TestReplay shows that many readers get what they missed, from where they ask.
func TestReplay(t *testing.T) {
	w := start(t)
	path := w.launch(w.create(), api.StartRequest{Args: []string{"cat"}, Stdin: true})
	w.want(200, "POST", path+"/stdin", strings.NewReader("0123456789"))
	eventually(t, "all was written", func() bool {
		return into[tranca.ProcessInfo](t, w.want(200, "GET", path, nil)).Stdout.Written == 10
	})
	for query, want := range map[string]string{
		"?follow=false": "0123456789", "?follow=false&stdout_from=4": "456789", "?follow=false&stdout_from=10": "", "?follow=false&stdout_from=99": "",
	} {
		all := events(t, w.want(200, "GET", path+"/output"+query, nil).body)
		if got := gather(t, all); got != want || all[len(all)-1].Type == api.EventExit {
			t.Errorf("%s: %q, want %q: %+v", query, got, want, all)
		}
	}
	var readers sync.WaitGroup
	for i := range 20 {
		readers.Go(func() {
			r := w.do("GET", fmt.Sprintf("%s/output?stdout_from=%d", path, i%10), nil)
			if got := gather(t, events(t, r.body)); got != "0123456789end"[i%10:] {
				t.Errorf("reader %d: %q", i, got)
			}
		})
	}
	w.want(200, "POST", path+"/stdin?close=true", strings.NewReader("end"))
	readers.Wait()
}

func TestDropped(t *testing.T) {
	p := policy.Default()
	p.Limits.Output.Size = 4096
	w := start(t, func(s *settings) { s.engine.Policy = p })
	path := w.launch(w.create(), api.StartRequest{Args: []string{"flood", "10000"}})
	into[tranca.ProcessInfo](t, w.want(200, "GET", path+"?wait_ms=20000", nil))
	for _, accept := range []string{api.TypeEvents, api.TypeFrames} {
		r := w.want(200, "GET", path+"/output", nil, "Accept", accept)
		var dropped, came int64
		src, buf := bytes.NewReader(r.body), []byte(nil)
		for accept == api.TypeFrames {
			ev, data, err := api.ReadFrame(src, &buf)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			dropped, came = dropped+ev.Bytes, came+int64(len(data))
		}
		if accept == api.TypeEvents {
			all := events(t, r.body)
			came = int64(len(gather(t, all)))
			for _, ev := range all {
				dropped += ev.Bytes
			}
		}
		if info := into[tranca.ProcessInfo](t, w.want(200, "GET", path, nil)); dropped != info.Stdout.Dropped || came+dropped != info.Stdout.Written || dropped == 0 {
			t.Errorf("%s: %d bytes dropped and %d came of %+v", accept, dropped, came, info.Stdout)
		}
	}
}

// TestTwoWriters shows that two writers on one input are never mixed within a
// request.
func TestTwoWriters(t *testing.T) {
	w := start(t, func(s *settings) { s.engine.Policy.Limits.Output.Size = 8 << 20 })
	path := w.launch(w.create(), api.StartRequest{Args: []string{"cat"}, Stdin: true})
	const size, rounds = 100_000, 8
	read := make(chan *reply, 1)
	go func() { read <- w.do("GET", path+"/output", nil) }()
	var writers sync.WaitGroup
	for _, letter := range []string{"a", "b"} {
		writers.Go(func() {
			for range rounds {
				w.do("POST", path+"/stdin", strings.NewReader(strings.Repeat(letter, size)))
			}
		})
	}
	writers.Wait()
	w.want(200, "POST", path+"/stdin?close=true", nil)
	got := gather(t, events(t, (<-read).body))
	if len(got) != 2*rounds*size {
		t.Fatalf("%d bytes came", len(got))
	}
	for i := 0; i < len(got); i += size {
		if strings.Count(got[i:i+size], got[i:i+1]) != size {
			t.Fatalf("block %d is mixed", i/size)
		}
	}
}

// TestTyped shows that input of no known length goes piece by piece, as it
// comes.
func TestTyped(t *testing.T) {
	w := start(t)
	path := w.launch(w.create(), api.StartRequest{Args: []string{"cat"}, Stdin: true})
	in, feed := io.Pipe()
	done := make(chan *reply, 1)
	go func() { done <- w.do("POST", path+"/stdin?close=true", struct{ io.Reader }{in}) }()
	for i, piece := range []string{"one", "two"} {
		if _, err := io.WriteString(feed, piece); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the piece has come", func() bool {
			return into[tranca.ProcessInfo](t, w.want(200, "GET", path, nil)).Stdout.Written == int64(3*(i+1))
		})
	}
	feed.Close()
	if r := <-done; r.StatusCode != 200 || into[api.InputAnswer](t, r).Written != 6 {
		t.Errorf("%s", r.body)
	}
}

func TestProcessProblems(t *testing.T) {
	w := start(t, func(s *settings) { s.engine.MaxProcesses = 2 })
	box := w.create()
	path := w.launch(box, api.StartRequest{Args: []string{"sleep", "3600"}})
	for _, tc := range []struct {
		status       int
		method, path string
		body         any
		code         api.Code
	}{
		{404, "POST", box + "/processes", `{"args":["nothing"]}`, api.CodeNotFound},
		{400, "POST", box + "/processes", `{"args":[]}`, api.CodeInvalid},
		{400, "POST", box + "/processes", `{}`, api.CodeInvalid},
		{400, "POST", box + "/processes", nil, api.CodeInvalid},
		{400, "POST", box + "/processes", `{"args":["a\u0000b"]}`, api.CodeInvalid},
		{400, "POST", box + "/processes", `{"args":["cat"],"tag":"a\nb"}`, api.CodeInvalid},
		{400, "POST", box + "/processes", `{"args":["cat"],"terminal":{"rows":0,"columns":1}}`, api.CodeInvalid},
		{400, "POST", box + "/processes", `{"args":["cat"],"wall_ms":-1}`, api.CodeInvalid},
		{404, "GET", box + "/processes/p99", nil, api.CodeNotFound},
		{404, "GET", box + "/processes/tag=none", nil, api.CodeNotFound},
		{400, "GET", path + "?wait_ms=600001", nil, api.CodeInvalid},
		{400, "GET", path + "/output?stdout_from=-1", nil, api.CodeInvalid},
		{400, "GET", path + "/output?follow=yes", nil, api.CodeInvalid},
		{400, "POST", path + "/stdin", strings.NewReader("x"), api.CodeInvalid},
		{400, "POST", path + "/signal", `{"signal":0}`, api.CodeInvalid},
		{400, "POST", path + "/signal", `{"signal":65}`, api.CodeInvalid},
		{400, "POST", path + "/signal", `{"signal":"KILL"}`, api.CodeInvalid},
		{501, "POST", path + "/resize", `{"rows":1,"columns":1}`, api.CodeUnsupported},
	} {
		if p := w.want(tc.status, tc.method, tc.path, tc.body).problem(t); p.Code != tc.code {
			t.Errorf("%s %s: %+v", tc.method, tc.path, p)
		}
	}
	w.launch(box, api.StartRequest{Args: []string{"sleep", "3600"}})
	if p := w.want(429, "POST", box+"/processes", api.StartRequest{Args: []string{"cat"}}).problem(t); p.Code != api.CodeBusy {
		t.Errorf("%+v", p)
	}
	// A program of another sandbox is none of this one's.
	if p := w.want(404, "GET", strings.Replace(path, box, w.create(), 1), nil).problem(t); p.Code != api.CodeNotFound {
		t.Errorf("%+v", p)
	}
	w.want(204, "POST", path+"/signal", `{"signal":15}`)
	w.want(200, "GET", path+"?wait_ms=10000", nil)
	if p := w.want(410, "POST", path+"/signal", `{"signal":15}`).problem(t); p.Code != api.CodeGone {
		t.Errorf("%+v", p)
	}
}

// TestProcessOutlives shows that a process goes on when its reader vanishes.
func TestProcessOutlives(t *testing.T) {
	w := start(t)
	path := w.launch(w.create(), api.StartRequest{Args: []string{"sleep", "3600"}})
	for range 1000 {
		resp := w.send("GET", path+"/output", nil)
		resp.Body.Close()
	}
	if got := into[tranca.ProcessInfo](t, w.want(200, "GET", path, nil)); got.Exit != nil {
		t.Errorf("%+v", got)
	}
	eventually(t, "no reader is left", func() bool { return strings.Count(w.log.String(), `"followOutput"`) == 1000 })
}
