package listen

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"tranca"
)

// place returns a path for a socket in a folder that is not there yet.
func place(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "tranca-listen-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "d", "s.sock")
}

func open(t *testing.T, path string) *Socket {
	t.Helper()
	s, err := Unix(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// TestSocket shows the modes of what is made, whatever the umask is, and that
// nothing but the lock is left.
func TestSocket(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	path := place(t)
	s := open(t, path)
	for name, mode := range map[string]os.FileMode{filepath.Dir(path): 0o700, path: 0o600, path + ".lock": 0o600} {
		if i, err := os.Stat(name); err != nil || i.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", name, i.Mode(), err)
		}
	}
	go func() {
		if c, err := net.Dial("unix", path); err == nil {
			c.Close()
		}
	}()
	c, err := s.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if p := c.(interface{ Peer() Peer }).Peer(); !p.Local || p.UID != os.Geteuid() || !p.Allowed(os.Geteuid()) {
		t.Errorf("%+v", p)
	}
	c.Close()
	if err := errors.Join(s.Check(), s.Close(), s.Close()); err != nil {
		t.Error(err)
	}
	all, _ := os.ReadDir(filepath.Dir(path))
	if len(all) != 1 || all[0].Name() != "s.sock.lock" {
		t.Errorf("left: %v", all)
	}
}

func TestAllowed(t *testing.T) {
	for _, tc := range []struct {
		peer Peer
		uid  int
		want bool
	}{
		{Peer{true, 1000}, 1000, true}, {Peer{true, 0}, 1000, true}, {Peer{true, 1001}, 1000, false},
		{Peer{true, 1000}, 0, false}, {Peer{true, -1}, 0, false}, {Peer{true, -1}, 1000, false},
		{Peer{false, 0}, 0, false}, {Peer{}, 0, false},
	} {
		if got := tc.peer.Allowed(tc.uid); got != tc.want {
			t.Errorf("%+v at a server of %d: %t", tc.peer, tc.uid, got)
		}
	}
	if p := PeerOf(t.Context()); p.Local || p.UID != -1 {
		t.Errorf("nobody is %+v", p)
	}
}

// TestTwoServers shows that of many that start at once one gets the socket, and
// that the others say so.
func TestTwoServers(t *testing.T) {
	path := place(t)
	var got atomic.Pointer[Socket]
	var all sync.WaitGroup
	var refused atomic.Int32
	for range 16 {
		all.Go(func() {
			s, err := Unix(path)
			switch {
			case err == nil && !got.CompareAndSwap(nil, s):
				t.Error("two servers have one socket")
				s.Close()
			case err != nil && (!errors.Is(err, tranca.ErrExists) || !strings.Contains(err.Error(), "already")):
				t.Error(err)
			case err != nil:
				refused.Add(1)
			}
		})
	}
	all.Wait()
	if refused.Load() != 15 {
		t.Errorf("%d were refused", refused.Load())
	}
	if err := got.Load().Close(); err != nil {
		t.Error(err)
	}
	open(t, path)
}

// TestStale shows that the socket of a dead server is taken over.
func TestStale(t *testing.T) {
	path := place(t)
	dead, err := Unix(path)
	if err != nil {
		t.Fatal(err)
	}
	// As after a kill: the file is there, and nobody listens or holds the lock.
	dead.Listener.Close()
	dead.lock.Close()
	if _, err := os.Lstat(path); err != nil {
		t.Fatal(err)
	}
	if err := open(t, path).Check(); err != nil {
		t.Error(err)
	}
}

// TestInTheWay shows that nothing of others is ever removed.
func TestInTheWay(t *testing.T) {
	for name, tc := range map[string]struct {
		make  func(t *testing.T, path string)
		words string
	}{
		"file":   {func(t *testing.T, path string) { write(t, path) }, "no socket of this user"},
		"folder": {func(t *testing.T, path string) { check(t, os.Mkdir(path, 0o700)) }, "no socket of this user"},
		"link":   {func(t *testing.T, path string) { check(t, os.Symlink("/etc/passwd", path)) }, "no socket of this user"},
		"another program": {func(t *testing.T, path string) {
			l, err := net.Listen("unix", path)
			check(t, err)
			t.Cleanup(func() { l.Close() })
		}, "another program listens"},
		"a link for the lock": {func(t *testing.T, path string) { check(t, os.Symlink(path+".x", path+".lock")) }, "lock"},
		"open folder":         {func(t *testing.T, path string) { check(t, os.Chmod(filepath.Dir(path), 0o755)) }, "chmod 700"},
		"file for the folder": {func(t *testing.T, path string) {
			check(t, os.Remove(filepath.Dir(path)))
			write(t, filepath.Dir(path))
		}, "no folder"},
		"link for the folder": {func(t *testing.T, path string) {
			check(t, os.Remove(filepath.Dir(path)))
			check(t, os.Symlink(t.TempDir(), filepath.Dir(path)))
		}, "no folder"},
		"no parent": {func(t *testing.T, path string) { check(t, os.RemoveAll(filepath.Dir(filepath.Dir(path)))) }, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			path := place(t)
			check(t, os.Mkdir(filepath.Dir(path), 0o700))
			tc.make(t, path)
			before, _ := os.Lstat(path)
			s, err := Unix(path)
			if err == nil {
				s.Close()
				t.Fatal("it listens")
			}
			if !strings.Contains(err.Error(), tc.words) {
				t.Errorf("%v: no word of %q", err, tc.words)
			}
			if after, _ := os.Lstat(path); (before == nil) != (after == nil) || before != nil && !os.SameFile(before, after) {
				t.Error("what was there is another thing now")
			}
		})
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path string) {
	t.Helper()
	check(t, os.WriteFile(path, []byte("x"), 0o600))
}

func TestLongPath(t *testing.T) {
	_, err := Unix("/" + strings.Repeat("x", 200) + "/s.sock")
	if !errors.Is(err, tranca.ErrInvalid) || !strings.Contains(err.Error(), "at most") {
		t.Error(err)
	}
}

// TestReplaced shows that a file that is another one is seen, and left alone.
func TestReplaced(t *testing.T) {
	path := place(t)
	s := open(t, path)
	check(t, os.Remove(path))
	if err := s.Check(); !errors.Is(err, tranca.ErrGone) || !strings.Contains(err.Error(), "removed") {
		t.Error(err)
	}
	for range 100 { // the number of an inode may be given again
		l, err := net.Listen("unix", path)
		check(t, err)
		check(t, os.Chmod(path, 0o600))
		if err := s.Check(); !errors.Is(err, tranca.ErrGone) || !strings.Contains(err.Error(), "replaced") {
			t.Fatal(err)
		}
		l.Close()
	}
	write(t, path)
	check(t, s.Close())
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("the other one's file: %v", err)
	}
}
