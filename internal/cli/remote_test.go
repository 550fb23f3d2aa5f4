package cli_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tranca/internal/backend"
	"tranca/internal/engine"
	"tranca/internal/policy"
	"tranca/internal/server"
)

// TestScriptsOnAServer runs commands that speak to a server, over a socket.
func TestScriptsOnAServer(t *testing.T) {
	r, err := backend.NewRegistry(fakes()...)
	if err != nil {
		t.Fatal(err)
	}
	strict := policy.Default()
	strict.Limits.Wall = 100 * time.Millisecond
	e, err := engine.New(engine.Config{Backends: r, Profiles: []engine.Profile{
		{Name: "default", Policy: policy.Default()}, {Name: "strict", Policy: strict},
	}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.Config{Engine: e})
	if err != nil {
		t.Fatal(err)
	}
	folder, err := os.MkdirTemp("", "tranca") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(folder, "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	h := &http.Server{Handler: s.Local()}
	go func() { _ = h.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
		h.Close()
		os.RemoveAll(folder)
	})
	t.Run("scripts", func(t *testing.T) { runScripts(t, "testdata/remote", "SERVER="+socket) })
}
