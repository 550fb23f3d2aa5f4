package direct

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// to returns a transport to a handler, which must be idle when the test ends.
func to(t *testing.T, h http.HandlerFunc) *Transport {
	t.Helper()
	tr := New(h)
	t.Cleanup(func() { tr.Close() })
	return tr
}

func request(ctx context.Context, t *testing.T, body io.Reader) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://x/a%2Fb/c?q=1", body)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func TestARequestArrivesAsAtAServer(t *testing.T) {
	tr := to(t, func(w http.ResponseWriter, r *http.Request) {
		in, err := io.ReadAll(r.Body)
		if err != nil || string(in) != "in" || r.Method != http.MethodPost || r.URL.Path != "/a/b/c" ||
			r.URL.EscapedPath() != "/a%2Fb/c" || r.RequestURI != "/a%2Fb/c?q=1" || r.FormValue("q") != "1" ||
			r.Host != "x" || r.Header.Get("A") != "b" || r.ContentLength != 2 || r.TLS != nil {
			t.Errorf("%q, %v: %+v", in, err, r)
		}
		r.Header.Set("A", "changed")
		w.Header().Set("C", "d")
		w.WriteHeader(http.StatusTeapot)
		w.Header().Set("C", "too late")
		_, _ = io.WriteString(w, "out")
	})
	req := request(t.Context(), t, strings.NewReader("in"))
	req.Header.Set("A", "b")
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || string(out) != "out" || resp.StatusCode != http.StatusTeapot || resp.Header.Get("C") != "d" || req.Header.Get("A") != "b" {
		t.Errorf("%q, %v: %+v", out, err, resp)
	}
}

func TestAHandlerThatSaysNothing(t *testing.T) {
	resp, err := to(t, func(http.ResponseWriter, *http.Request) {}).RoundTrip(request(t.Context(), t, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if out, err := io.ReadAll(resp.Body); err != nil || len(out) != 0 || resp.StatusCode != http.StatusOK {
		t.Errorf("%q, %v, status %d", out, err, resp.StatusCode)
	}
}

// TestBothDirectionsFlowAtOnce: each byte goes there and back before the next
// one is written.
func TestBothDirectionsFlowAtOnce(t *testing.T) {
	tr := to(t, func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		if err := errors.Join(rc.EnableFullDuplex(), rc.Flush()); err != nil {
			t.Error(err)
		}
		_, _ = io.Copy(w, r.Body)
	})
	in, feed := io.Pipe()
	resp, err := tr.RoundTrip(request(t.Context(), t, in))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for i := range 100 {
		if _, err := feed.Write([]byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
		var b [1]byte
		if _, err := io.ReadFull(resp.Body, b[:]); err != nil || b[0] != byte(i) {
			t.Fatalf("%d came back as %d: %v", i, b[0], err)
		}
	}
	feed.Close()
	if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) != 0 {
		t.Errorf("%q, %v", rest, err)
	}
}

func TestPanicsAreNotLost(t *testing.T) {
	for name, tt := range map[string]struct {
		late  bool
		value any
	}{"at once": {false, "why"}, "late": {true, "why"}, "abort": {false, http.ErrAbortHandler}, "abort late": {true, http.ErrAbortHandler}} {
		t.Run(name, func(t *testing.T) {
			tr := to(t, func(w http.ResponseWriter, _ *http.Request) {
				if tt.late {
					_, _ = io.WriteString(w, "some")
				}
				panic(tt.value)
			})
			resp, err := tr.RoundTrip(request(t.Context(), t, nil))
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
			var p *PanicError
			if aborted := tt.value == http.ErrAbortHandler; aborted && !errors.Is(err, io.ErrUnexpectedEOF) ||
				!aborted && (!errors.As(err, &p) || p.Value != "why" || !bytes.Contains(p.Stack, []byte("TestPanics"))) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestTheEndOfARequestReachesTheHandler(t *testing.T) {
	why := errors.New("why")
	ended := make(chan error, 1)
	for name, end := range map[string]func(*http.Response, context.CancelCauseFunc){
		"context": func(_ *http.Response, cancel context.CancelCauseFunc) { cancel(why) },
		"close":   func(r *http.Response, _ context.CancelCauseFunc) { r.Body.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			tr := to(t, func(w http.ResponseWriter, r *http.Request) {
				w.(http.Flusher).Flush()
				<-r.Context().Done()
				_, err := w.Write([]byte("nobody reads it"))
				ended <- err
			})
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			resp, err := tr.RoundTrip(request(ctx, t, nil))
			if err != nil {
				t.Fatal(err)
			}
			end(resp, cancel)
			if err := <-ended; err == nil {
				t.Error("a write that nobody reads was taken")
			}
			if _, err := resp.Body.Read(make([]byte, 1)); err == nil || name == "context" && !errors.Is(err, why) {
				t.Errorf("the body ends with %v", err)
			}
			resp.Body.Close()
		})
	}
}

func TestARequestThatIsOverBeforeItsAnswer(t *testing.T) {
	began := make(chan struct{})
	tr := to(t, func(_ http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
	})
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { <-began; cancel(why) }()
	resp, err := tr.RoundTrip(request(ctx, t, nil))
	if err == nil {
		resp.Body.Close()
	}
	if !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
}

func TestCloseEndsWhatRuns(t *testing.T) {
	tr := New(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		<-r.Context().Done()
	}))
	resp, err := tr.RoundTrip(request(t.Context(), t, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	tr.Close()
	if _, err := io.ReadAll(resp.Body); !errors.Is(err, errClosed) {
		t.Errorf("%v", err)
	}
	again, err := tr.RoundTrip(request(t.Context(), t, nil))
	if err == nil {
		again.Body.Close()
	}
	if !errors.Is(err, errClosed) {
		t.Errorf("a new request: %v", err)
	}
}

func TestAConnectionThatIsTakenOver(t *testing.T) {
	tr := to(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		_ = rw.Flush()
		in, err := io.ReadAll(rw)
		if err != nil {
			t.Error(err)
		}
		_, _ = conn.Write(bytes.ToUpper(in))
	})
	resp, err := tr.RoundTrip(request(t.Context(), t, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	rw := resp.Body.(io.ReadWriter)
	if _, err := io.WriteString(rw, "some"); err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(resp.StatusCode, err)
	}
	if err := resp.Body.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if out, err := io.ReadAll(rw); err != nil || string(out) != "SOME" {
		t.Errorf("%q, %v", out, err)
	}
}
