package archive

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/google/go-cmp/cmp"

	"tranca"
	"tranca/internal/require"
)

func TestPackLocal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	lay(t, dir, map[string]string{"a": "text", "big": strings.Repeat("b", 3*smallFile), "in": "->a", "out": "->/etc/passwd", "bad\xff": "x"})
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "d/e"), 0o777), os.Symlink("../../a", filepath.Join(dir, "d/e/up")),
		os.Symlink("../../../a", filepath.Join(dir, "d/e/out")), unix.Mkfifo(filepath.Join(dir, "d/fifo"), 0o666),
		os.Chmod(filepath.Join(dir, "a"), 0o755|os.ModeSetuid)); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	skipped, err := PackLocal(t.Context(), dir, &b)
	if err != nil || skipped.Count != 3 || !slices.Equal(skipped.Names, []string{"d/e/out", "d/fifo", "out"}) {
		t.Errorf("%+v %v", skipped, err)
	}
	want := []string{"0 a text", "0 bad\xff x", "0 big 786432 bytes of b", "5 d/ ", "5 d/e/ ", "2 d/e/up ../../a", "2 in a"}
	if diff := cmp.Diff(want, unpacked(t, b.Bytes())); diff != "" {
		t.Error(diff)
	}
	// What was packed is what comes out again.
	again := filepath.Join(t.TempDir(), "new/folder")
	if _, err := ExtractLocal(t.Context(), again, &b, Options{}); err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{"d/e/out", "d/fifo", "out"} {
		os.Remove(filepath.Join(dir, gone))
	}
	if diff := cmp.Diff(disk(t, dir), disk(t, again)); diff != "" {
		t.Error(diff)
	}
	if info, err := os.Stat(filepath.Join(again, "a")); err != nil || info.Mode() != 0o755 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

func TestPackLocalOfOne(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	lay(t, dir, map[string]string{"f": "text", "l": "->f", "d": "/", "ld": "->d"})
	lay(t, filepath.Join(dir, "d/sub"), map[string]string{"x": "y"})
	if err := unix.Mkfifo(filepath.Join(dir, "fifo"), 0o666); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"f": "0 f text", "l": "0 f text", "d": "5 sub/ \n0 sub/x y", "ld": "5 sub/ \n0 sub/x y"} {
		var b bytes.Buffer
		if _, err := PackLocal(t.Context(), filepath.Join(dir, name), &b); err != nil || strings.Join(unpacked(t, b.Bytes()), "\n") != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	t.Chdir(dir)
	var b bytes.Buffer
	if _, err := PackLocal(t.Context(), "f", &b); err != nil || len(unpacked(t, b.Bytes())) != 1 {
		t.Errorf("a name without a folder: %v", err)
	}
	for name, want := range map[string]error{"none": tranca.ErrNotFound, "fifo": tranca.ErrInvalid} {
		if _, err := PackLocal(t.Context(), name, io.Discard); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPackLocalLeavesOutWhatIsClosed(t *testing.T) {
	require.Unprivileged(t)
	dir := filepath.Join(t.TempDir(), "t")
	lay(t, dir, map[string]string{"a": "1", "closed": "x", "d": "/"})
	if err := errors.Join(os.Chmod(filepath.Join(dir, "closed"), 0), os.Chmod(filepath.Join(dir, "d"), 0)); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	skipped, err := PackLocal(t.Context(), dir, &b)
	if err != nil || !slices.Equal(skipped.Names, []string{"closed", "d"}) {
		t.Errorf("%+v %v", skipped, err)
	}
	unpacked(t, b.Bytes())
}

// A failed file leaves the one that was there, and no part of itself.
func TestExtractLocalReplacesWhole(t *testing.T) {
	dir := t.TempDir()
	at := filepath.Join(dir, "a")
	if err := os.WriteFile(at, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := archived(t, file("a"))
	if _, err := ExtractLocal(t.Context(), dir, bytes.NewReader(b[:514]), Options{}); !errors.Is(err, tranca.ErrInvalid) {
		t.Errorf("cut: %v", err)
	}
	if got := disk(t, dir); !slices.Equal(got, []string{"file a old"}) {
		t.Errorf("%q", got)
	}
	// A hard link of the old file elsewhere is not written to.
	if err := os.Link(at, filepath.Join(dir, "other")); err != nil {
		t.Fatal(err)
	}
	if _, err := ExtractLocal(t.Context(), dir, bytes.NewReader(b), Options{}); err != nil {
		t.Fatal(err)
	}
	if got := disk(t, dir); !slices.Equal(got, []string{"file a of a", "file other old"}) {
		t.Errorf("%q", got)
	}
}

// A link that was there leads outside, and one of the archive to that.
func TestExtractLocalLinkOverALink(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	lay(t, dir, map[string]string{"theirs": "->.."})
	_, err := ExtractLocal(t.Context(), dir, bytes.NewReader(archived(t, link("l", "theirs/x"))), Options{})
	if !errors.Is(err, tranca.ErrInvalid) {
		t.Errorf("got %v", err)
	}
	if got := disk(t, dir); !slices.Equal(got, []string{"symlink theirs .."}) {
		t.Errorf("%q", got)
	}
}

// Somebody swaps folders for links to outside while an archive is extracted and
// packed: nothing is written there, and nothing of it packed.
func TestLocalRace(t *testing.T) {
	top := t.TempDir()
	dir, out := filepath.Join(top, "t"), filepath.Join(top, "outside")
	lay(t, dir, map[string]string{"d": "/"})
	lay(t, out, map[string]string{"secret": "secret"})
	stop := make(chan struct{})
	var hostile sync.WaitGroup
	hostile.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Symlink("../outside", filepath.Join(dir, "l"))
			_ = unix.Renameat2(unix.AT_FDCWD, filepath.Join(dir, "l"), unix.AT_FDCWD, filepath.Join(dir, "d"), unix.RENAME_EXCHANGE)
			_ = os.RemoveAll(filepath.Join(dir, "l"))
			_ = os.Mkdir(filepath.Join(dir, "l"), 0o777)
		}
	})
	var entries []tar.Header
	for i := range 20 {
		entries = append(entries, file(fmt.Sprint("d/f", i)), file(fmt.Sprint("l/g", i)))
	}
	b := archived(t, entries...)
	done := 0
	for range 300 {
		if _, err := ExtractLocal(t.Context(), dir, bytes.NewReader(b), Options{}); err == nil {
			done++
		}
		var packed bytes.Buffer
		if _, err := PackLocal(t.Context(), dir, &packed); err == nil && bytes.Contains(packed.Bytes(), []byte("secret")) {
			t.Error("packed what is outside")
		}
	}
	close(stop)
	hostile.Wait()
	if got := disk(t, out); !slices.Equal(got, []string{"file secret secret"}) {
		t.Errorf("outside, after %d whole extractions: %q", done, got)
	}
}

// FuzzExtract extracts any bytes, into a sandbox and to the disk: both do the
// same, nothing panics, nothing is written outside, and every link stays inside.
func FuzzExtract(f *testing.F) {
	f.Add(archived(f, folder("d"), file("d/e"), link("l", "d/e")))
	f.Add(archived(f, link("l", "."), file("l/x")))
	f.Add(extended(f, 'x', record("path", "../x")))
	f.Add(extended(f, 'L', "/etc/x"))
	f.Add(special(f, tar.TypeGNUSparse))
	f.Fuzz(func(t *testing.T, b []byte) {
		opts := Options{MaxBytes: 1 << 20, MaxEntries: 100}
		_, got, err := both(t, map[string]string{"d": "/", "f": "x"}, b, opts)
		if err != nil && !errors.Is(err, tranca.ErrInvalid) {
			t.Fatalf("an error of no class: %v", err)
		}
		for _, line := range got {
			if kind, rest, _ := strings.Cut(line, " "); kind == "symlink" {
				name, to, _ := strings.Cut(rest, " ")
				if !strings.Contains(name, " ") && leadsOut(name, to) != "" {
					t.Fatalf("%q", line)
				}
			}
		}
	})
}
