package require_test

import (
	"io"
	"net"
	"path/filepath"
	"testing"

	"tranca/internal/require"
)

// TestEngine holds the parts against engines that answer well, badly and not at
// all: a part is only there when it works.
func TestEngine(t *testing.T) {
	for _, c := range []struct {
		name, answer string
		there        bool
	}{
		{"well", "HTTP/1.0 200 OK\r\n\r\nOK", true},
		{"badly", "HTTP/1.0 500 Internal Server Error\r\n\r\n", false},
		{"nothing", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			socket := serve(t, c.answer)
			t.Setenv("TRANCA_PROVIDES", "")
			t.Setenv("TRANCA_REQUIRE_LOG", "")
			t.Setenv("TRANCA_TEST_DOCKER", socket)
			if there := asked(t, "docker"); there != c.there {
				t.Errorf("an engine that answers %q counts as there: %t", c.answer, there)
			}
		})
	}
}

func TestAbsent(t *testing.T) {
	t.Setenv("TRANCA_PROVIDES", "")
	t.Setenv("TRANCA_REQUIRE_LOG", "")
	t.Setenv("TRANCA_TEST_PODMAN", "")
	t.Setenv("TRANCA_TEST_PODMAN_ROOTLESS", filepath.Join(t.TempDir(), "none"))
	t.Setenv("TRANCA_TEST_SENTRY", filepath.Join(t.TempDir(), "none"))
	for _, part := range []string{"podman", "podman-rootless", "gvisor"} {
		if asked(t, part) {
			t.Errorf("%s counts as there", part)
		}
	}
}

// asked reports whether a test that asks for the part goes on.
func asked(t *testing.T, part string) (there bool) {
	t.Run("asks", func(t *testing.T) {
		require.Part(t, part)
		there = true
	})
	return there
}

// serve answers every connection to the returned socket with the text.
func serve(t *testing.T, answer string) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1024))
			_, _ = io.WriteString(conn, answer)
			conn.Close()
		}
	}()
	return socket
}
