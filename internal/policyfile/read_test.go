package policyfile

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/require"
)

// folder makes a folder that only the caller can write to, whatever umask is.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	chmod(t, dir, 0o755)
	return dir
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// write makes a file with the mode, whatever umask is, and its folders.
func write(t *testing.T, path, text string) string {
	t.Helper()
	mkdir(t, filepath.Dir(path))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	chmod(t, path, 0o644)
	return path
}

func mkdir(t *testing.T, dir string) {
	t.Helper()
	if _, err := os.Stat(dir); err == nil {
		return
	}
	mkdir(t, filepath.Dir(dir))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	chmod(t, dir, 0o755)
}

const valid = "version: 1\nhostname: found\n"

// refused reads what must not be accepted.
func refused(t *testing.T, path string, class error, want string) {
	t.Helper()
	_, err := Read(path)
	if !errors.Is(err, class) || !strings.Contains(fmt.Sprint(err), want) {
		t.Errorf("got %v, want %v with %q", err, class, want)
	}
}

func TestRead(t *testing.T) {
	path := write(t, filepath.Join(folder(t), "p.yaml"), valid)
	p, err := Read(path)
	if err != nil || p.Hostname != "found" || p.Source != path {
		t.Errorf("got %+v, %v", p, err)
	}
	refused(t, "p.yaml", tranca.ErrInvalid, "absolute")
	refused(t, path+"\x00", tranca.ErrInvalid, "absolute")
	refused(t, path+".none", tranca.ErrNotFound, "no such file")
	refused(t, path+"/x", tranca.ErrNotFound, "not a directory")
	refused(t, "/"+strings.Repeat("a", 300), tranca.ErrInvalid, "too long")
	write(t, path, "version: 1\nhostnam: x\n")
	refused(t, path, tranca.ErrInvalid, path+`:2:1: hostnam: there is no such field; did you mean "hostname"?`)
}

// TestReadKinds shows that only a regular file is read, and that none of the
// others makes Read wait.
func TestReadKinds(t *testing.T) {
	dir := folder(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	mkdir(t, at("folder"))
	if err := unix.Mkfifo(at("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	target := write(t, at("real"), valid)
	for link, to := range map[string]string{"link": target, "dangling": at("none"), "loop": at("loop"), "null": "/dev/null"} {
		if err := os.Symlink(to, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		refused(t, at("folder"), tranca.ErrInvalid, "a folder")
		refused(t, at("fifo"), tranca.ErrInvalid, "a FIFO")
		refused(t, at("socket"), tranca.ErrInvalid, "a socket")
		refused(t, "/dev/null", tranca.ErrInvalid, "a device")
		for _, link := range []string{"link", "dangling", "loop", "null"} {
			refused(t, at(link), tranca.ErrRefused, "is a symbolic link")
		}
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("it waits for the other end of a FIFO")
	}
}

func TestReadSize(t *testing.T) {
	path := filepath.Join(folder(t), "p.yaml")
	write(t, path, valid+"#"+strings.Repeat("x", maxSize-len(valid)-1))
	if _, err := Read(path); err != nil {
		t.Errorf("1 MiB: %v", err)
	}
	write(t, path, valid+"#"+strings.Repeat("x", maxSize-len(valid)))
	refused(t, path, tranca.ErrInvalid, "at most 1048576")
	if err := os.Truncate(path, 100<<20); err != nil {
		t.Fatal(err)
	}
	refused(t, path, tranca.ErrInvalid, "104857600 bytes")
}

// TestReadOthersWrite shows that the error names the command that mends it,
// and that the command does.
func TestReadOthersWrite(t *testing.T) {
	dir := folder(t)
	path := write(t, filepath.Join(dir, "a", "b", "p.yaml"), valid)
	for _, c := range []struct {
		path string
		mode os.FileMode
		mend string
		back os.FileMode
	}{
		{path, 0o664, "chmod g-w ", 0o644},
		{path, 0o646, "chmod o-w ", 0o644},
		{path, 0o666, "chmod go-w ", 0o644},
		{filepath.Dir(path), 0o775, "chmod g-w ", 0o755},
		{filepath.Join(dir, "a"), 0o777, "chmod go-w ", 0o755},
	} {
		chmod(t, c.path, c.mode)
		refused(t, path, tranca.ErrRefused, c.mend+c.path)
		chmod(t, c.path, c.back)
		if _, err := Read(path); err != nil {
			t.Errorf("after %s%s: %v", c.mend, c.path, err)
		}
	}
	chmod(t, filepath.Join(dir, "a"), 0o777|os.ModeSticky)
	if _, err := Read(path); err != nil {
		t.Errorf("below a sticky folder: %v", err)
	}
}

func TestReadQuotesCommands(t *testing.T) {
	path := write(t, filepath.Join(folder(t), "it's mine; rm", "p.yaml"), valid)
	chmod(t, path, 0o666)
	refused(t, path, tranca.ErrRefused, `it'\''s mine; rm/p.yaml'`)
}

// TestReadLinksAbove shows that a link in a folder's name is followed when it
// can be trusted, and that the folder that holds the link must be ours too.
func TestReadLinksAbove(t *testing.T) {
	dir := folder(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	write(t, at("real/p.yaml"), valid)
	mkdir(t, at("links"))
	for name, to := range map[string]string{"absolute": at("real"), "relative": "../real", "chain": "relative", "loop": "loop", "up": "../links/../real"} {
		if err := os.Symlink(to, at("links/"+name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"absolute", "relative", "chain", "up"} {
		if _, err := Read(at("links/" + name + "/p.yaml")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	refused(t, at("links/loop/p.yaml"), tranca.ErrRefused, "too many levels")
	chmod(t, at("links"), 0o777)
	refused(t, at("links/absolute/p.yaml"), tranca.ErrRefused, "chmod go-w "+at("links"))
}

// TestReadOwner needs root to make files of others.
func TestReadOwner(t *testing.T) {
	require.Root(t)
	dir := folder(t)
	path := write(t, filepath.Join(dir, "a", "p.yaml"), valid)
	for _, of := range []string{path, filepath.Dir(path)} {
		if err := os.Chown(of, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		refused(t, path, tranca.ErrRefused, "belongs to user 65534")
		if err := os.Chown(of, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Dir(path), link); err != nil {
		t.Fatal(err)
	}
	if err := os.Lchown(link, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	refused(t, filepath.Join(link, "p.yaml"), tranca.ErrRefused, "the link "+link+" belongs to user 65534")
}

// TestReadUnreadable needs a user for whom modes count.
func TestReadUnreadable(t *testing.T) {
	require.Unprivileged(t)
	path := write(t, filepath.Join(folder(t), "a", "p.yaml"), valid)
	chmod(t, path, 0o200)
	refused(t, path, tranca.ErrRefused, "can't be read, and is not skipped")
	chmod(t, path, 0o600)
	chmod(t, filepath.Dir(path), 0o600)
	defer chmod(t, filepath.Dir(path), 0o700)
	refused(t, path, tranca.ErrRefused, "permission denied")
}

// TestReadReachable shows that code can't be given its own policy to write.
func TestReadReachable(t *testing.T) {
	dir := folder(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	mkdir(t, at("w/inner"))
	if err := os.Symlink(at("w"), at("alias")); err != nil {
		t.Fatal(err)
	}
	policy := func(mode, source string) string {
		return fmt.Sprintf("version: 1\nmounts:\n- {source: '%s', target: /p, mode: %s}\n", source, mode)
	}
	path := at("w/inner/p.yaml")
	for _, source := range []string{at("w"), at("w/inner"), path, dir, at("alias")} {
		write(t, path, policy("rw", source))
		refused(t, path, tranca.ErrRefused, "could widen it")
		write(t, path, policy("ro", source))
		if _, err := Read(path); err != nil {
			t.Errorf("read-only %s: %v", source, err)
		}
	}
	write(t, path, policy("rw", dir))
	refused(t, at("alias/inner/p.yaml"), tranca.ErrRefused, "could widen it")
	for _, source := range []string{at("w/in"), at("w/inner/p.yam"), at("other"), at("none/x")} {
		write(t, path, policy("rw", source))
		if _, err := Read(path); err != nil {
			t.Errorf("beside it, %s: %v", source, err)
		}
	}
	mkdir(t, at("other"))
	if err := os.Link(path, at("other/name")); err != nil {
		t.Fatal(err)
	}
	refused(t, path, tranca.ErrRefused, "hard links")
}
