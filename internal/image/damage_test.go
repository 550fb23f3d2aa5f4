//go:build linux

package image

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/require"
)

// TestDamage changes a store behind its back.
func TestDamage(t *testing.T) {
	layer := layerOf(t, file("a"))
	for name, c := range map[string]struct {
		damage func(s *Store, digest string) error
		open   bool // it mends itself
	}{
		"nothing":          {func(*Store, string) error { return nil }, true},
		"the tree is gone": {func(s *Store, d string) error { return os.RemoveAll(s.path(treesDir, hexOf(d))) }, true},
		"no marker":        {func(s *Store, d string) error { return os.Remove(s.path(treesDir, hexOf(d), markerName)) }, true},
		"a marker of others": {func(s *Store, d string) error {
			return os.WriteFile(s.path(treesDir, hexOf(d), markerName), []byte("{}"), 0o600)
		}, true},
		"a changed layer": {func(s *Store, d string) error {
			return errors.Join(os.RemoveAll(s.path(treesDir, hexOf(d))), change(s.blobPath(digestOf(layer))))
		}, false},
		"a changed manifest": {func(s *Store, d string) error {
			return errors.Join(os.RemoveAll(s.path(treesDir, hexOf(d))), change(s.blobPath(d)))
		}, false},
		"a layer that is gone": {func(s *Store, d string) error {
			return errors.Join(os.RemoveAll(s.path(treesDir, hexOf(d))), os.Remove(s.blobPath(digestOf(layer))))
		}, false},
		"a changed name": {func(s *Store, _ string) error { return os.WriteFile(s.refPath("x"), []byte("{}"), 0o600) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			src := makeImage(t, config{}, layer)
			info := mustAdd(t, s, src, "x")
			if err := c.damage(s, info.Digest); err != nil {
				t.Fatal(err)
			}
			img, release, err := s.Open(t.Context(), "x")
			if c.open {
				if err != nil {
					t.Fatal(err)
				}
				if got := ofImage(t, img.Root); len(got) != 1 {
					t.Errorf("%q", got)
				}
				release()
				return
			}
			if !errors.Is(err, tranca.ErrUnavailable) && !errors.Is(err, tranca.ErrNotFound) || !strings.Contains(err.Error(), s.dir) {
				t.Fatalf("%v", err)
			}
			// What the error says to do helps.
			if _, err := s.Remove(t.Context(), info.Digest); err != nil && name != "a changed name" {
				t.Logf("remove: %v", err)
			}
			mustAdd(t, s, src, "x")
			if got := ofImage(t, mustOpen(t, s, "x").Root); len(got) != 1 {
				t.Errorf("%q", got)
			}
		})
	}
}

// change changes one byte of a file.
func change(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	b[len(b)/2] ^= 1
	return errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, b, 0o600))
}

func TestExportOfADamagedLayer(t *testing.T) {
	s := newStore(t)
	layer := layerOf(t, file("a"))
	mustAdd(t, s, makeImage(t, config{}, layer), "x")
	img := mustOpen(t, s, "x")
	if err := change(s.blobPath(digestOf(layer))); err != nil {
		t.Fatal(err)
	}
	if err := img.Export(t.Context(), io.Discard); !errors.Is(err, tranca.ErrUnavailable) || !errors.Is(err, errCorrupt) {
		t.Errorf("%v", err)
	}
}

func TestAFolderOfOthers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777)); err != nil {
		t.Fatal(err)
	}
	s := New(Options{Dir: dir})
	_, addErr := s.Add(t.Context(), makeImage(t, config{}), AddOptions{Name: "x"})
	_, _, openErr := s.Open(t.Context(), "x")
	for _, err := range []error{addErr, openErr} {
		if !errors.Is(err, tranca.ErrRefused) || !strings.Contains(err.Error(), "chmod go-w") {
			t.Errorf("%v", err)
		}
	}
	link := filepath.Join(t.TempDir(), "l")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	if _, _, err := New(Options{Dir: link}).Open(t.Context(), "x"); !errors.Is(err, tranca.ErrRefused) {
		t.Errorf("a link: %v", err)
	}
}

func TestNoHome(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "relative")
	t.Setenv("HOME", "")
	if os.Geteuid() == 0 {
		if dir, err := New(Options{}).Dir(); err != nil || dir != "/var/cache/tranca" {
			t.Errorf("%s, %v", dir, err)
		}
		return
	}
	s := New(Options{})
	if _, _, err := s.Open(t.Context(), "x"); !errors.Is(err, tranca.ErrUnavailable) || !strings.Contains(err.Error(), "XDG_CACHE_HOME") {
		t.Errorf("%v", err)
	}
}

// mountTmpfs mounts a small file system for a store.
func mountTmpfs(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tranca-test", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=700,"+options); err != nil {
		require.Check(t, "mount", false, err.Error())
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestAFullStore(t *testing.T) {
	require.Root(t)
	for name, c := range map[string]struct {
		options string
		layer   []byte
	}{
		"by the blob": {"size=1m", layerOf(t, entry{Name: "a", Size: 4 << 20})},
		"by the tree": {"size=1m", gzipOf(t, layerOf(t, entry{Name: "a", Size: 4 << 20}))},
		"by inodes":   {"size=4m,nr_inodes=30", layerOf(t, many(100)...)},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(Options{Dir: filepath.Join(mountTmpfs(t, c.options), "c")})
			_, err := s.Add(t.Context(), makeImage(t, config{}, c.layer), AddOptions{Name: "x"})
			if !errors.Is(err, tranca.ErrNoSpace) || !strings.Contains(err.Error(), "tranca image prune") {
				t.Fatalf("%v", err)
			}
			empty(t, s)
			if _, err := s.Prune(t.Context(), true, func(Info) bool { return false }); err != nil {
				t.Error(err)
			}
			mustAdd(t, s, makeImage(t, config{}, layerOf(t, file("small"))), "y")
		})
	}
}

func many(n int) (all []entry) {
	for range n {
		all = append(all, file("f"+strings.Repeat("x", len(all))))
	}
	return all
}

func TestAReadOnlyStore(t *testing.T) {
	require.Root(t)
	dir := mountTmpfs(t, "size=8m")
	src := makeImage(t, config{}, layerOf(t, file("a")))
	s := New(Options{Dir: filepath.Join(dir, "c")})
	mustAdd(t, s, src, "x")
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, ""); err != nil {
		t.Fatal(err)
	}
	s = New(Options{Dir: s.dir})
	_, release, err := s.Open(t.Context(), "x")
	if err != nil {
		t.Fatalf("what is there can't be used: %v", err)
	}
	release()
	if all, err := s.List(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
	_, addErr := s.Add(t.Context(), src, AddOptions{Name: "y"})
	_, removeErr := s.Remove(t.Context(), "x")
	for _, err := range []error{addErr, removeErr} {
		if !errors.Is(err, tranca.ErrUnavailable) || !strings.Contains(err.Error(), "read-only") {
			t.Errorf("%v", err)
		}
	}
}

func TestAStoreThatThisUserMayNotWrite(t *testing.T) {
	require.Unprivileged(t)
	s := newStore(t)
	src := makeImage(t, config{}, layerOf(t, file("a")))
	mustAdd(t, s, src, "x")
	for _, d := range []string{tempDir, refsDir, "."} {
		if err := os.Chmod(s.path(d), 0o500); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(s.path(d), 0o700) })
	}
	mustOpen(t, s, "x")
	if _, err := s.Add(t.Context(), src, AddOptions{Name: "y"}); !errors.Is(err, tranca.ErrRefused) || !strings.Contains(err.Error(), "XDG_CACHE_HOME") {
		t.Errorf("%v", err)
	}
}

// importSlowly is another process, which is killed while it imports: it tells
// that it is under way, and waits.
func importSlowly(dir string) int {
	s := New(Options{Dir: dir})
	_, err := s.ImportStream(context.Background(), io.MultiReader(strings.NewReader("begun"), tellThenWait{}), AddOptions{Name: "x"})
	if err != nil {
		return 1
	}
	return 0
}

// tellThenWait says on standard output that it is read, and then gives nothing.
type tellThenWait struct{}

func (tellThenWait) Read([]byte) (int, error) {
	_, _ = os.Stdout.WriteString("under way\n")
	time.Sleep(time.Minute)
	return 0, io.EOF
}

func TestKilled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "IMAGE_TEST_STORE="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 10)
	if _, err := io.ReadFull(out, line); err != nil {
		t.Fatal(err)
	}
	s := New(Options{Dir: dir})
	src := makeImage(t, config{}, layerOf(t, file("a")))
	mustAdd(t, s, src, "y") // beside the other
	left, err := os.ReadDir(s.path(tempDir))
	if err != nil || len(left) != 1 {
		t.Fatalf("%v, %v", left, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(s.path(tempDir, left[0].Name()), old, old); err != nil {
		t.Fatal(err)
	}
	mustAdd(t, s, src, "z")
	if left, err := os.ReadDir(s.path(tempDir)); err != nil || len(left) != 0 {
		t.Errorf("a killed import left %v, %v", left, err)
	}
	if _, err := s.Remove(t.Context(), "z"); err != nil {
		t.Error(err)
	}
	mustOpen(t, s, "y")
	if bytes.Contains(line, []byte("error")) {
		t.Errorf("%s", line)
	}
}
