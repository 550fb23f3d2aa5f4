package listen

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tranca"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParseKey(t *testing.T) {
	key := strings.Repeat("k", MinKey)
	for text, ok := range map[string]bool{
		key: true, key + "\n": true, key + "\r\n": true, "": false, "\n": false, key[1:]: false,
		key + "\n\n": false, key + " ": false, key + "ü": false, key + "\x00": false,
		key + "\n" + key: false, strings.Repeat("k", MaxKey): true, strings.Repeat("k", MaxKey+1): false,
	} {
		got, err := ParseKey([]byte(text))
		if ok != (err == nil) || ok && !strings.HasPrefix(text, got) {
			t.Errorf("%.80q: %q, %v", text, got, err)
		}
		if err != nil && (!errors.Is(err, tranca.ErrInvalid) || strings.Contains(err.Error(), "kkk")) {
			t.Errorf("%.80q: %v", text, err)
		}
	}
}

func TestReadKey(t *testing.T) {
	dir := t.TempDir()
	key := strings.Repeat("k", 40)
	for name, tc := range map[string]struct {
		mode os.FileMode
		text string
		want error
	}{
		"right": {0o600, key + "\n", nil}, "read only": {0o400, key, nil},
		"for the group": {0o640, key, tranca.ErrRefused}, "for all": {0o604, key, tranca.ErrRefused},
		"short": {0o600, "short", tranca.ErrInvalid}, "long": {0o600, strings.Repeat("k", 1<<20), tranca.ErrInvalid},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(tc.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, tc.mode); err != nil {
			t.Fatal(err)
		}
		got, err := ReadKey(path)
		if tc.want == nil && (got != key || err != nil) || !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ReadKey(filepath.Join(dir, "none")); !errors.Is(err, tranca.ErrNotFound) {
		t.Errorf("none: %v", err)
	}
	if _, err := ReadKey(dir); err == nil {
		t.Error("a folder is a key")
	}
}

func TestTCP(t *testing.T) {
	for address, want := range map[string]error{
		"": tranca.ErrInvalid, "7070": tranca.ErrInvalid, ":7070": tranca.ErrInvalid,
		"127.0.0.1:99999": tranca.ErrUnavailable, "127.0.0.1:0": nil, "[::]:0": nil,
	} {
		l, err := TCP(address)
		if !errors.Is(err, want) || (want == nil) != (err == nil) {
			t.Errorf("%q: %v", address, err)
		}
		if err == nil {
			if Loopback(l) != strings.HasPrefix(address, "127.") {
				t.Errorf("%q: loopback %t", address, Loopback(l))
			}
			l.Close()
		}
	}
}

// TestLimit shows that a place is given back once, and that closing wakes who
// waits for one.
func TestLimit(t *testing.T) {
	inner, err := TCP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := Limit(inner, 1)
	for range 3 {
		go func() {
			if c, err := net.Dial("tcp", inner.Addr().String()); err == nil {
				defer c.Close()
				_, _ = io.ReadAll(c)
			}
		}()
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if p := c.(*counted).Peer(); p.Local || p.UID != -1 {
			t.Errorf("%+v", p)
		}
		if err := c.(*counted).CloseWrite(); err != nil {
			t.Error(err)
		}
		c.Close()
		c.Close()
	}
	l.(*limited).places <- struct{}{}
	woken := make(chan error, 1)
	go func() { _, err := l.Accept(); woken <- err }()
	time.Sleep(10 * time.Millisecond)
	l.Close()
	if err := <-woken; !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// FuzzKey reads hostile key files.
func FuzzKey(f *testing.F) {
	f.Add([]byte(strings.Repeat("k", 40) + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		key, err := ParseKey(text)
		if err != nil {
			if !errors.Is(err, tranca.ErrInvalid) {
				t.Error(err)
			}
			return
		}
		if len(key) < MinKey || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
			t.Errorf("%q is a key", key)
		}
	})
}
