package container

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"
)

// A caller goes while the engine makes the container: the engine goes on, and
// what it has made then is removed.
func TestACallerGoesWhileTheContainerIsMade(t *testing.T) {
	asked, goOn := make(chan struct{}), make(chan struct{})
	b, f := against(t, map[string]http.HandlerFunc{
		"POST /containers/create": func(w http.ResponseWriter, r *http.Request) {
			close(asked)
			<-goOn
			if r.Context().Err() != nil {
				t.Error("the request was broken off")
			}
			w.WriteHeader(201)
			fmt.Fprintf(w, `{"Id":%q}`, containerID)
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	sb, err := b.Create(ctx, testSpec())
	if sb != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", sb, err)
	}
	select {
	case path := <-f.removed:
		t.Errorf("%s was removed before it was made", path)
	case <-time.After(50 * time.Millisecond):
	}
	close(goOn)
	<-f.removed
	if err := b.Close(t.Context()); err != nil { // which waits for it
		t.Error(err)
	}
}
