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
)

const keyHeader = api.HeaderIdempotencyKey

// TestOnce shows that a repeated request answers what the first one did.
func TestOnce(t *testing.T) {
	w := start(t)
	first := w.want(200, "POST", "/v1/run", script("print out err"), keyHeader, "k")
	again := w.want(200, "POST", "/v1/run", script("print out err"), keyHeader, "k")
	if !bytes.Equal(first.body, again.body) {
		t.Errorf("%s\n%s", first.body, again.body)
	}
	all := events(t, w.want(200, "POST", "/v1/run", script("print out err"), keyHeader, "k", "Accept", api.TypeEvents).body)
	if len(all) != 4 || all[3].Result.ID != into[tranca.Result](t, first).ID || gather(t, all) != "out" {
		t.Errorf("as events: %+v", all)
	}
	made := w.want(201, "POST", "/v1/sandboxes", `{}`, keyHeader, "c")
	if same := w.want(201, "POST", "/v1/sandboxes", `{}`, keyHeader, "c"); !bytes.Equal(made.body, same.body) || same.Header.Get("Location") == "" {
		t.Errorf("%s\n%s", made.body, same.body)
	}
	for _, body := range []any{script("print other"), `{}`} {
		if p := w.want(409, "POST", "/v1/run", body, keyHeader, "k").problem(t); p.Code != api.CodeConflict {
			t.Errorf("%+v", p)
		}
	}
	w.want(409, "POST", "/v1/sandboxes", `{}`, keyHeader, "k")
	if runs, boxes := w.cfg.Engine.Stats().Runs[tranca.EndExited], w.cfg.Engine.Stats().SessionsOpened; runs != 1 || boxes != 1 {
		t.Errorf("%d runs and %d sandboxes", runs, boxes)
	}
	// What failed may be tried again.
	for range 2 {
		w.want(404, "POST", "/v1/run", api.RunRequest{Command: []string{"nothing"}}, keyHeader, "f")
	}
}

// TestOnceAtATime shows that requests with one key wait for the first.
func TestOnceAtATime(t *testing.T) {
	w := start(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	ids := map[tranca.ID]int{}
	for range 10 {
		all.Go(func() {
			r := into[tranca.Result](t, w.do("POST", "/v1/run", script("sleep 0.2", "print x"), keyHeader, "k"))
			mu.Lock()
			defer mu.Unlock()
			ids[r.ID]++
		})
	}
	all.Wait()
	if len(ids) != 1 {
		t.Errorf("%d runs: %v", len(ids), ids)
	}
}

// TestComeBack shows that a run with a key outlives its connection for a while,
// so that its client can come back for the answer.
func TestComeBack(t *testing.T) {
	w := start(t)
	body := `{"command":["sleep","0.5"]}`
	c := w.dial()
	c.write(fmt.Sprintf("POST /v1/run HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n%s: k\r\nContent-Length: %d\r\n\r\n%s", keyHeader, len(body), body))
	eventually(t, "it runs", func() bool { return w.fake.Live() == 1 })
	c.Close()
	r := into[tranca.Result](t, w.want(200, "POST", "/v1/run", body, keyHeader, "k"))
	if !r.Exit.Success() || w.cfg.Engine.Stats().Runs[tranca.EndExited] != 1 {
		t.Errorf("%+v", r)
	}
}

// TestNobodyComesBack shows that the while is short.
func TestNobodyComesBack(t *testing.T) {
	w := start(t, func(s *settings) { s.server.Linger = 50 * time.Millisecond })
	body := `{"command":["sleep","3600"]}`
	c := w.dial()
	c.write(fmt.Sprintf("POST /v1/run HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n%s: k\r\nContent-Length: %d\r\n\r\n%s", keyHeader, len(body), body))
	eventually(t, "it runs", func() bool { return w.fake.Live() == 1 })
	c.Close()
	eventually(t, "nothing runs", func() bool { return w.fake.Live() == 0 })
	r := into[tranca.Result](t, w.want(200, "POST", "/v1/run", body, keyHeader, "k"))
	if r.Exit.Reason != tranca.EndClosed {
		t.Errorf("%+v", r)
	}
}

func TestCancel(t *testing.T) {
	runs := make(chan struct{}, 1)
	w := start(t, func(s *settings) {
		s.engine.Observer = func(e tranca.Event) {
			if e.Kind == tranca.EventStarted {
				runs <- struct{}{}
			}
		}
	})
	box := w.create()
	for _, path := range []string{"/v1/run", box + "/run"} {
		for _, frames := range []bool{false, true} {
			key := fmt.Sprint(path, frames)
			done := make(chan string, 1)
			go func() {
				if frames {
					in, feed := io.Pipe()
					defer feed.Close()
					resp := w.framesWithKey(path, tranca.Request{Command: []string{"sleep", "3600"}}, in, key)
					b, _ := io.ReadAll(resp.Body)
					resp.Body.Close()
					done <- string(b)
					return
				}
				done <- string(w.do("POST", path, `{"command":["sleep","3600"]}`, keyHeader, key).body)
			}()
			<-runs // before that it is no run yet, and has no result
			eventually(t, "it is cancelled", func() bool { return w.do("DELETE", "/v1/run", nil, keyHeader, key).StatusCode == 204 })
			if got := <-done; !strings.Contains(got, `"reason":"closed"`) {
				t.Errorf("%s: %s", key, got)
			}
			w.want(404, "DELETE", "/v1/run", nil, keyHeader, key)
		}
	}
}

func (w *world) framesWithKey(path string, req tranca.Request, input io.Reader, key string) *reply {
	req.Stdin = input
	head, _, err := api.RunBody(req)
	if err != nil {
		w.t.Fatal(err)
	}
	resp := w.send("POST", path, io.MultiReader(head(), input), "Content-Type", api.TypeFrames, "Accept", api.TypeFrames, keyHeader, key)
	return &reply{Response: resp}
}

func TestBadKeys(t *testing.T) {
	w := start(t)
	for _, key := range []string{" ", "a b", "\xff", "ü", strings.Repeat("k", 256)} {
		r := w.do("POST", "/v1/run", `{"command":["exit"]}`, keyHeader, key)
		if key == " " { // a header of blanks is an empty one
			if r.StatusCode != 400 {
				t.Errorf("an empty key: %d", r.StatusCode)
			}
			continue
		}
		if r.StatusCode != 400 || !strings.Contains(r.problem(t).Detail, keyHeader) {
			t.Errorf("%q: %s", key, r.body)
		}
	}
}

// TestStoreIsBounded shows what is forgotten, and that a request is rather
// turned away than done twice.
func TestStoreIsBounded(t *testing.T) {
	now := time.Now()
	s := newStore(func() time.Time { return now })
	done := func(key string, size int64) *entry {
		t.Helper()
		e, first, err := s.begin(key, [32]byte{}, true, func(error) {})
		if err != nil || !first {
			t.Fatalf("%s: %t, %v", key, first, err)
		}
		s.finish(e, key, size, nil)
		return e
	}
	large := done("large", maxAnswer+1)
	if !large.lost || s.kept != 0 {
		t.Errorf("an answer that is too large is kept: %+v", large)
	}
	oldest := done("oldest", maxAnswer)
	for i := range maxKept / maxAnswer {
		done(fmt.Sprint(i), maxAnswer)
	}
	if !oldest.lost || s.kept > maxKept {
		t.Errorf("%d bytes are kept, of at most %d", s.kept, maxKept)
	}
	for i := len(s.all); i < maxKeys; i++ {
		done(fmt.Sprint("k", i), 1)
	}
	done("one more than are remembered", 1)
	if s.all["large"] != nil || len(s.all) != maxKeys {
		t.Errorf("%d keys are remembered, the oldest %v", len(s.all), s.all["large"])
	}
	now = now.Add(rememberTime + 1)
	done("one more", 1)
	if len(s.all) != 1 || s.kept != 1 || len(s.done) != 1 {
		t.Errorf("%d keys and %d bytes are kept", len(s.all), s.kept)
	}
}

// TestNoMoreKeysUnderWay shows that only requests under way can use up the
// store.
func TestNoMoreKeysUnderWay(t *testing.T) {
	s := newStore(time.Now)
	for i := range maxKeys {
		if _, _, err := s.begin(fmt.Sprint(i), [32]byte{}, true, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := s.begin("one more", [32]byte{}, true, nil); api.ProblemOf(err).Code != api.CodeBusy {
		t.Errorf("one more: %v", err)
	}
}

// TestLostAnswer shows what a client is told whose answer was forgotten.
func TestLostAnswer(t *testing.T) {
	w := start(t)
	w.want(200, "POST", "/v1/run", `{"command":["exit"]}`, keyHeader, "k")
	w.answers.mu.Lock()
	w.answers.drop(w.answers.all["k"])
	w.answers.mu.Unlock()
	if p := w.want(410, "POST", "/v1/run", `{"command":["exit"]}`, keyHeader, "k").problem(t); p.Code != api.CodeGone {
		t.Errorf("%+v", p)
	}
}
