package container

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"tranca"
)

// An image is given to the engine once, however many ask for it at once, and
// who needs another that is there doesn't wait for it.
func TestAnImageIsGivenOnce(t *testing.T) {
	absent, there := strings.Repeat("a", 64), strings.Repeat("b", 64)
	image := fmt.Sprintf(`{"Id":"sha256:cc","Os":"linux","Architecture":%q}`, runtime.GOARCH)
	asked, goOn := make(chan struct{}), make(chan struct{})
	var looks, loads atomic.Int32
	b, _ := against(t, map[string]http.HandlerFunc{
		"GET /images/" + repository + ":" + there + "/json": says(200, image),
		"GET /images/" + repository + ":" + absent + "/json": func(w http.ResponseWriter, r *http.Request) {
			looks.Add(1)
			if loads.Load() == 0 {
				says(404, `{"message":"no such image"}`)(w, r)
				return
			}
			says(200, image)(w, r)
		},
		"POST /images/load": func(w http.ResponseWriter, r *http.Request) {
			if text, err := io.ReadAll(r.Body); string(text) != "archive" || err != nil {
				t.Errorf("it got %q, %v", text, err)
			}
			close(asked) // a second time, it panics
			<-goOn
			loads.Add(1)
			says(200, `{"stream":"Loaded image: `+repository+":"+absent+`\n"}`)(w, r)
		},
	})
	e, err := b.ready(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	resolve := func(digest string) {
		spec := tranca.Spec{Image: &tranca.Image{
			Name: "code", Digest: "sha256:" + digest,
			Export: func(_ context.Context, w io.Writer) error { _, err := io.WriteString(w, "archive"); return err },
		}}
		if r, err := b.resolve(t.Context(), e, &spec); err != nil || r.digest != spec.Image.Digest {
			t.Errorf("%v, %v", r, err)
		}
	}
	var both sync.WaitGroup
	both.Go(func() { resolve(absent) })
	both.Go(func() { resolve(absent) })
	<-asked
	resolve(there)
	for looks.Load() < 3 { // both before anything was sent, and one with its turn
		runtime.Gosched()
	}
	close(goOn)
	both.Wait()
	if loads.Load() != 1 {
		t.Errorf("loaded %d times", loads.Load())
	}
}
