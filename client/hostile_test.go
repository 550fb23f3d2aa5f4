package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"tranca"
	"tranca/internal/api"
)

// frames is a stream as a server writes it.
func frames(events ...any) []byte {
	var b bytes.Buffer
	w := api.NewEventWriter(&b, true, nil)
	for _, e := range events {
		switch e := e.(type) {
		case string:
			_ = w.Output(false, []byte(e))
		case api.Event:
			_ = w.Event(e)
		case []byte:
			b.Write(e)
		}
	}
	return b.Bytes()
}

// saying answers everything with the same.
func saying(kind string, body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(body)
	}
}

// boxAt is a sandbox of a server that need not know it.
func boxAt(c *Client) *Sandbox { return &Sandbox{c: c, id: "i1"} }

func processAt(c *Client) *Process { return &Process{s: boxAt(c), id: "p1"} }

var theResult = &tranca.Result{ID: "i1", Exit: exited(0)}

func TestARunThatIsToldWrong(t *testing.T) {
	for name, tt := range map[string]struct {
		stream []byte
		want   error
	}{
		"nothing":             {nil, tranca.ErrUnavailable},
		"no result":           {frames("out"), tranca.ErrUnavailable},
		"half a frame":        {frames("out")[:6], tranca.ErrUnavailable},
		"no frame":            {[]byte("<html><body>"), tranca.ErrProtocol},
		"an endless frame":    {[]byte("j\xff\xff\xff\xff"), tranca.ErrProtocol},
		"no JSON":             {[]byte("j\x00\x00\x00\x01{"), tranca.ErrProtocol},
		"a kind of its own":   {[]byte("x\x00\x00\x00\x00"), tranca.ErrProtocol},
		"no result in it":     {frames(api.Event{Type: api.EventResult}), tranca.ErrProtocol},
		"more than was sent":  {frames("out", api.Event{Type: api.EventResult, Result: theResult, StdoutBytes: 4}), tranca.ErrProtocol},
		"less than nothing":   {frames("out", api.Event{Type: api.EventResult, Result: theResult, StderrBytes: -1}), tranca.ErrProtocol},
		"an error without":    {frames(api.Event{Type: api.EventError}), tranca.ErrProtocol},
		"a level that is no":  {frames([]byte("j\x00\x00\x00\x2d{\"type\":\"result\",\"result\":{\"isolation\":\"x\"}}  ")), tranca.ErrProtocol},
		"an error":            {frames(api.Event{Type: api.EventError, Error: &api.Problem{Code: api.CodeBusy}}), tranca.ErrBusy},
		"an error of no code": {frames(api.Event{Type: api.EventError, Error: &api.Problem{Code: "new", Title: "t"}}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := answering(t, saying(api.TypeFrames, tt.stream))
			res, err := c.Run(t.Context(), tranca.Request{Code: "x"})
			if res != nil || err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("%+v, %v", res, err)
			}
		})
	}
}

func TestWhatIsUnknownIsPassedOver(t *testing.T) {
	c := answering(t, saying(api.TypeFrames, frames(
		api.Event{Type: "new"}, api.Event{Type: api.EventKeepAlive}, "out",
		api.Event{Type: api.EventResult, Result: theResult, StdoutBytes: 2}, "after the end",
	)))
	if res, err := c.Run(t.Context(), tranca.Request{Code: "x"}); err != nil || string(res.Stdout) != "ou" {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestOutputWithoutAnEnd is cut off before it fills the memory.
func TestOutputWithoutAnEnd(t *testing.T) {
	piece := frames(strings.Repeat("x", api.MaxData))
	c := answering(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", api.TypeFrames)
		for {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	})
	if _, err := c.Run(t.Context(), tranca.Request{Code: "x"}); !errors.Is(err, tranca.ErrProtocol) {
		t.Errorf("%v", err)
	}
}

// TestACancelledRunOnADeafServer does not wait for it for ever.
func TestACancelledRunOnADeafServer(t *testing.T) {
	for name, status := range map[string]int{"knows of none": http.StatusNotFound, "fails": http.StatusInternalServerError} {
		t.Run(name, func(t *testing.T) {
			began := make(chan struct{}, 1)
			c := answering(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodDelete {
					p := api.NewProblem(api.CodeInternal, "")
					if status == http.StatusNotFound {
						p = api.NewProblem(api.CodeNotFound, "")
					}
					w.Header().Set("Content-Type", api.TypeProblem)
					w.WriteHeader(status)
					_ = json.NewEncoder(w).Encode(p)
					return
				}
				began <- struct{}{}
				<-r.Context().Done()
			})
			ctx, cancel := context.WithCancelCause(t.Context())
			why := errors.New("why")
			go func() { <-began; cancel(why) }()
			if _, err := c.Run(ctx, tranca.Request{Code: "x"}); !errors.Is(err, why) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestAnswersThatNoTrancaGives(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		kind   string
		body   string
		want   error
	}{
		"a page":         {200, "text/html", "<html>", tranca.ErrProtocol},
		"a proxy":        {502, "text/html", "<html>", tranca.ErrUnavailable},
		"elsewhere":      {302, "text/html", "", tranca.ErrProtocol},
		"an upgrade":     {101, "", "", tranca.ErrProtocol},
		"no problem":     {500, api.TypeProblem, "{", tranca.ErrProtocol},
		"another's":      {404, api.TypeProblem, `{"title":"x"}`, tranca.ErrProtocol},
		"no JSON":        {200, api.TypeJSON, "{", tranca.ErrProtocol},
		"another shape":  {200, api.TypeJSON, "[]", tranca.ErrProtocol},
		"another id":     {200, api.TypeJSON, `{"id":"i2"}`, tranca.ErrProtocol},
		"a known code":   {503, api.TypeProblem, `{"code":"busy"}`, tranca.ErrBusy},
		"what it is not": {200, api.TypeFrames, "", tranca.ErrProtocol},
	} {
		c := answering(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", tt.kind)
			w.WriteHeader(tt.status)
			_, _ = io.WriteString(w, tt.body)
		})
		if _, err := boxAt(c).Refresh(t.Context()); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, id := range []string{"", "..", "a\x00", strings.Repeat("x", 2000)} {
		body, _ := json.Marshal(map[string]string{"id": id})
		if _, err := answering(t, saying(api.TypeJSON, body)).Create(t.Context(), tranca.CreateRequest{}); !errors.Is(err, tranca.ErrProtocol) {
			t.Errorf("a sandbox %q: %v", id, err)
		}
	}
	c := answering(t, saying(api.TypeJSON, []byte(`{"sandboxes":[{"id":"i1"}],"next":"x"}`)))
	if _, err := c.List(t.Context(), ListOptions{}); !errors.Is(err, tranca.ErrProtocol) {
		t.Errorf("a list without an end: %v", err)
	}
}

func TestFollowersThatAreToldWrong(t *testing.T) {
	dropped := func(n int64, s string) api.Event { return api.Event{Type: api.EventDropped, Bytes: n, Stream: s} }
	for name, stream := range map[string][]byte{
		"less than nothing": frames(dropped(-1, "stdout")),
		"no stream":         frames(dropped(1, "stdin")),
		"too much":          frames(dropped(math.MaxInt64, "stdout")),
		"another process":   frames(api.Event{Type: api.EventProcess, Process: &tranca.ProcessInfo{ID: "p2"}}),
		"no process":        frames(api.Event{Type: api.EventProcess}),
		"no exit":           frames(api.Event{Type: api.EventExit, Process: &tranca.ProcessInfo{ID: "p1"}}),
		"no frame":          []byte("x\x00\x00\x00\x00"),
	} {
		f := processAt(answering(t, saying(api.TypeFrames, stream))).Follow(FollowOptions{})
		if _, err := f.Next(t.Context()); !errors.Is(err, tranca.ErrProtocol) {
			t.Errorf("%s: %v", name, err)
		}
		f.Close()
	}
	end := exited(0)
	f := processAt(answering(t, saying(api.TypeFrames, frames(
		dropped(5, "stdout"), "out", api.Event{Type: api.EventExit, Process: &tranca.ProcessInfo{ID: "p1", Exit: &end}},
	)))).Follow(FollowOptions{StdoutFrom: 2})
	defer f.Close()
	if c, err := f.Next(t.Context()); err != nil || c.Dropped != 5 || c.Offset != 7 || len(c.Data) != 0 {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := f.Next(t.Context()); err != nil || string(c.Data) != "out" || c.Offset != 7 {
		t.Errorf("%+v, %v", c, err)
	}
	for range 2 {
		if _, err := f.Next(t.Context()); err != io.EOF {
			t.Errorf("the end: %v", err)
		}
	}
}

func TestWatches(t *testing.T) {
	more := make(chan struct{})
	c := answering(t, func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("path") != "/work" || r.FormValue("recursive") != "true" {
			t.Errorf("%s", r.URL)
		}
		w.Header().Set("Content-Type", api.TypeFrames)
		_, _ = w.Write(frames(api.Event{Type: api.EventKeepAlive}, api.Event{Type: api.EventWatching}))
		for range more {
			_, _ = w.Write(frames(api.Event{Type: api.EventKeepAlive}, api.Event{Type: api.EventFile, File: &tranca.FileEvent{Kind: tranca.FileCreated, Path: "a"}}))
		}
		<-r.Context().Done()
	})
	watcher, _ := tranca.As[tranca.FileWatcher, tranca.Files](boxAt(c).Files())
	ctx, cancel := context.WithCancel(t.Context())
	watch, err := watcher.Watch(ctx, "/work", true)
	if err != nil {
		t.Fatal(err)
	}
	cancel() // bounds the start only
	more <- struct{}{}
	if ev, err := watch.Next(t.Context()); err != nil || ev.Kind != tranca.FileCreated || ev.Path != "a" {
		t.Errorf("%+v, %v", ev, err)
	}
	short, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer stop()
	if _, err := watch.Next(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("nothing comes: %v", err)
	}
	close(more)
	if err := watch.Close(); err != nil {
		t.Error(err)
	}
	if _, err := watch.Next(t.Context()); !errors.Is(err, tranca.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	for name, stream := range map[string][]byte{
		"a change ahead": frames(api.Event{Type: api.EventFile, File: &tranca.FileEvent{}}), "no change": frames(api.Event{Type: api.EventWatching}, api.Event{Type: api.EventFile}),
	} {
		w, err := (&files{boxAt(answering(t, saying(api.TypeFrames, stream)))}).Watch(t.Context(), "x", false)
		if err == nil {
			_, err = w.Next(t.Context())
			w.Close()
		}
		if !errors.Is(err, tranca.ErrProtocol) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAnAnswerOfNothing: who wants a stream, or a connection, takes no "done"
// for one.
func TestAnAnswerOfNothing(t *testing.T) {
	c := answering(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.Header.Get("Accept"))
		w.WriteHeader(http.StatusNoContent)
	})
	s, ctx := boxAt(c), t.Context()
	for name, ask := range map[string]func() error{
		"run":     func() error { _, err := c.Run(ctx, tranca.Request{Code: "x"}); return err },
		"output":  func() error { _, err := processAt(c).Output(ctx); return err },
		"file":    func() error { _, err := s.Files().Read(ctx, "x", 0); return err },
		"archive": func() error { _, err := s.Archive(ctx, "x"); return err },
		"watch":   func() error { _, err := (&files{s}).Watch(ctx, "x", false); return err },
		"port":    func() error { _, err := s.Dial(ctx, 8080); return err },
	} {
		if err := ask(); !errors.Is(err, tranca.ErrProtocol) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzServer(f *testing.F) {
	end := exited(0)
	f.Add(frames("out", api.Event{Type: api.EventResult, Result: theResult, StdoutBytes: 3}))
	f.Add(frames(api.Event{Type: api.EventDropped, Bytes: 3, Stream: "stderr"}, "x", api.Event{Type: api.EventExit, Process: &tranca.ProcessInfo{ID: "p1", Exit: &end}}))
	f.Add(frames(api.Event{Type: api.EventWatching}, api.Event{Type: api.EventFile, File: &tranca.FileEvent{Kind: tranca.FileOverflow}}))
	f.Add([]byte(`{"id":"i1","files":[{"mode":"0644"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		ctx := t.Context()
		c := answering(t, saying(api.TypeFrames, data))
		if res, err := c.Run(ctx, tranca.Request{Code: "x"}); err == nil && len(res.Stdout)+len(res.Stderr) > len(data) {
			t.Errorf("%d bytes of output from %d", len(res.Stdout), len(data))
		}
		// What breaks is asked for again after a pause; once is enough here.
		p := processAt(c)
		r := &reception{p: p, take: func(c Chunk) error {
			if c.Offset < 0 || c.Dropped < 0 || len(c.Data) > len(data) {
				t.Errorf("%+v", c)
			}
			return nil
		}}
		_ = r.stream(ctx)
		if w, err := (&files{boxAt(c)}).Watch(ctx, "x", false); err == nil {
			for err == nil {
				_, err = w.Next(ctx)
			}
			w.Close()
		}
		j := answering(t, saying(api.TypeJSON, data))
		_, _ = boxAt(j).Refresh(ctx)
		_, _ = boxAt(j).Files().List(ctx, "x", 1)
		_, _ = boxAt(j).Processes(ctx, "")
		_, _ = j.Info(ctx)
		_ = fmt.Sprint(boxAt(j).Close(ctx))
	})
}
