package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"golang.org/x/sys/unix"

	"tranca"
)

func readAll(t *testing.T, f tranca.Files, path string, offset int64) (string, error) {
	t.Helper()
	r, err := f.Read(within(t), path, offset)
	if err != nil {
		return "", err
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	return string(b), err
}

func TestFilesRoundTrip(t *testing.T) {
	sb, _, cfg := newSandbox(t, nil)
	f := sb.Files()
	big := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB, more than a window with its costs
	for _, tt := range []struct{ name, content string }{
		{"empty", ""}, {"small", "hi\x00\xff"}, {"big", big}, {"bad\xff\xfename", "x"}, {"new\nline", "y"},
	} {
		n, err := f.Write(within(t), tt.name, strings.NewReader(tt.content), 0o640)
		if err != nil || n != int64(len(tt.content)) {
			t.Fatalf("write %q: %d %v", tt.name, n, err)
		}
		got, err := readAll(t, f, filepath.Join(cfg.Workdir, tt.name), 0)
		if err != nil || got != tt.content {
			t.Errorf("read %q: %d bytes %v", tt.name, len(got), err)
		}
		st, err := os.Stat(filepath.Join(cfg.Workdir, tt.name))
		if err != nil || st.Mode() != 0o640 {
			t.Errorf("%q on disk: %v %v", tt.name, st, err)
		}
		info, err := f.Stat(within(t), tt.name)
		if err != nil || info.Name != tt.name || info.Type != tranca.FileRegular ||
			info.Size != int64(len(tt.content)) || info.Mode != 0o640 || !info.Modified.Equal(st.ModTime()) {
			t.Errorf("stat %q: %+v %v", tt.name, info, err)
		}
	}
	for offset, want := range map[int64]string{0: big, 5: big[5:], 1 << 20: "", 1 << 40: ""} {
		if got, err := readAll(t, f, "big", offset); err != nil || got != want {
			t.Errorf("from %d: %d bytes %v", offset, len(got), err)
		}
	}
	// Replacing shortens and keeps the mode.
	if _, err := f.Write(within(t), "big", strings.NewReader("short"), 0o777); err != nil {
		t.Fatal(err)
	}
	if info, err := f.Stat(within(t), "big"); err != nil || info.Size != 5 || info.Mode != 0o640 {
		t.Errorf("replaced: %+v %v", info, err)
	}
}

// None of these may block, and none is a file.
func TestSpecialFiles(t *testing.T) {
	sb, _, cfg := newSandbox(t, nil)
	f := sb.Files()
	at := func(name string) string { return filepath.Join(cfg.Workdir, name) }
	if err := unix.Mkfifo(at("fifo"), 0o666); err != nil {
		t.Fatal(err)
	}
	sock, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(sock)
	if err := unix.Bind(sock, &unix.SockaddrUnix{Name: at("sock")}); err != nil {
		t.Fatal(err)
	}
	links := map[string]string{
		"null": "/dev/null", "zero": "/dev/zero", "to-fifo": "fifo", "loop": "loop",
		"magic": "/proc/self/fd/0", "mem": "/proc/self/mem", "environ": "/proc/self/environ", "dangling": "nowhere/x",
	}
	for name, target := range links {
		if err := os.Symlink(target, at(name)); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name  string
		read  error
		write error
		typ   tranca.FileType
	}{
		{"fifo", tranca.ErrInvalid, tranca.ErrInvalid, tranca.FileOther},
		{"sock", tranca.ErrInvalid, tranca.ErrInvalid, tranca.FileOther},
		{"to-fifo", tranca.ErrInvalid, tranca.ErrInvalid, tranca.FileSymlink},
		{"null", tranca.ErrInvalid, tranca.ErrInvalid, tranca.FileSymlink},
		{"zero", tranca.ErrInvalid, tranca.ErrInvalid, tranca.FileSymlink},
		{"loop", tranca.ErrInvalid, tranca.ErrInvalid, tranca.FileSymlink},
		{"magic", tranca.ErrInvalid, tranca.ErrInvalid, tranca.FileSymlink},
		{"mem", tranca.ErrRefused, tranca.ErrRefused, tranca.FileSymlink},
		{"environ", tranca.ErrRefused, tranca.ErrRefused, tranca.FileSymlink},
		{"dangling", tranca.ErrNotFound, tranca.ErrNotFound, tranca.FileSymlink},
		{".", tranca.ErrInvalid, tranca.ErrInvalid, tranca.FileDirectory},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := f.Read(within(t), tt.name, 0); !errors.Is(err, tt.read) {
				t.Errorf("read: %v, want %v", err, tt.read)
			}
			if _, err := f.Write(within(t), tt.name, strings.NewReader("x"), 0o644); !errors.Is(err, tt.write) {
				t.Errorf("write: %v, want %v", err, tt.write)
			}
			info, err := f.Stat(within(t), tt.name)
			if err != nil || info.Type != tt.typ || info.LinkTarget != links[tt.name] {
				t.Errorf("stat: %+v %v", info, err)
			}
		})
	}
}

func TestFileErrors(t *testing.T) {
	sb, _, cfg := newSandbox(t, nil)
	f, ctx := sb.Files(), within(t)
	if err := os.WriteFile(filepath.Join(cfg.Workdir, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 5000)
	second := func(_ any, err error) error { return err }
	tests := []struct {
		name string
		err  error
		want error
	}{
		{"read of nothing", second(f.Read(ctx, "none", 0)), tranca.ErrNotFound},
		{"read from before the start", second(f.Read(ctx, "file", -1)), tranca.ErrInvalid},
		{"stat of nothing", second(f.Stat(ctx, "none")), tranca.ErrNotFound},
		{"stat below a file", second(f.Stat(ctx, "file/x")), tranca.ErrNotFound},
		{"an empty path", second(f.Stat(ctx, "")), tranca.ErrInvalid},
		{"NUL in a path", second(f.Stat(ctx, "a\x00b")), tranca.ErrInvalid},
		{"a long path", second(f.Stat(ctx, long)), tranca.ErrInvalid},
		{"a long name", second(f.Stat(ctx, long[:300])), tranca.ErrInvalid},
		{"write below a file", second(f.Write(ctx, "file/x", strings.NewReader(""), 0o644)), tranca.ErrNotFound},
		{"write in no folder", second(f.Write(ctx, "none/x", strings.NewReader(""), 0o644)), tranca.ErrNotFound},
		{"write on a read-only file system", second(f.Write(ctx, "/sys/x", strings.NewReader(""), 0o644)), tranca.ErrRefused},
		{"list of a file", second(f.List(ctx, "file", 1)), tranca.ErrInvalid},
		{"list of nothing", second(f.List(ctx, "none", 1)), tranca.ErrNotFound},
		{"list to no depth", second(f.List(ctx, ".", 0)), tranca.ErrInvalid},
		{"a folder that is there", second(f.MakeDir(ctx, ".")), tranca.ErrExists},
		{"a folder where a file is", second(f.MakeDir(ctx, "file")), tranca.ErrInvalid},
		{"a folder below a file", second(f.MakeDir(ctx, "file/x/y")), tranca.ErrNotFound},
		{"move of nothing", second(f.Move(ctx, "none", "x")), tranca.ErrNotFound},
		{"move into itself", second(f.Move(ctx, ".", "x")), tranca.ErrInvalid},
		{"remove of everything", f.Remove(ctx, "/"), tranca.ErrInvalid},
		{"remove of where one is", f.Remove(ctx, "./."), tranca.ErrInvalid},
		{"remove of here", f.Remove(ctx, "."), tranca.ErrInvalid},
		{"remove of here, at length", f.Remove(ctx, ".//.//./"), tranca.ErrInvalid},
		{"move of here", second(f.Move(ctx, ".", "/tmp/elsewhere")), tranca.ErrInvalid},
		{"remove of the parent", f.Remove(ctx, ".."), tranca.ErrInvalid},
		{"remove of nothing", f.Remove(ctx, "none/none"), nil},
	}
	for _, tt := range tests {
		if !errors.Is(tt.err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, tt.err, tt.want)
		}
	}
}

func TestWriteReportsItsReader(t *testing.T) {
	sb, _, _ := newSandbox(t, nil)
	broken := errors.New("broken")
	_, err := sb.Files().Write(within(t), "x", io.MultiReader(strings.NewReader("ab"), iotest.ErrReader(broken)), 0o644)
	if !errors.Is(err, broken) || !errors.Is(err, tranca.ErrInvalid) {
		t.Errorf("got %v", err)
	}
	if err := sb.Ping(within(t)); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestFolders(t *testing.T) {
	sb, _, cfg := newSandbox(t, nil)
	f, ctx := sb.Files(), within(t)
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "keep"), []byte("k"), 0o644); err != nil {
		t.Fatal(err)
	}
	info, err := f.MakeDir(ctx, "a/b//c/")
	if err != nil || info.Type != tranca.FileDirectory || info.Name != "c" {
		t.Fatalf("make: %+v %v", info, err)
	}
	if err := os.Symlink(outside, filepath.Join(cfg.Workdir, "a/link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a/b/z", "a/b/c/1", "a/x\xff", "a/B"} {
		if _, err := f.Write(ctx, name, strings.NewReader(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list := func(depth int) []string {
		t.Helper()
		infos, err := f.List(ctx, "a", depth)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, i := range infos {
			names = append(names, strings.TrimPrefix(i.Path, cfg.Workdir+"/")+" "+string(i.Type))
		}
		return names
	}
	want := []string{"a/B file", "a/b directory", "a/b/c directory", "a/b/c/1 file", "a/b/z file", "a/link symlink", "a/x\xff file"}
	if got := list(9); !slices.Equal(got, want) {
		t.Errorf("list: %q", got)
	}
	if got := list(1); !slices.Equal(got, []string{want[0], want[1], want[5], want[6]}) {
		t.Errorf("list to 1: %q", got)
	}
	if _, err := f.List(ctx, "a/link", 1); !errors.Is(err, tranca.ErrInvalid) {
		t.Errorf("list of a link: %v", err)
	}
	if info, err = f.Move(ctx, "a", "new/place/a"); err != nil || info.Path != filepath.Join(cfg.Workdir, "new/place/a") {
		t.Errorf("move: %+v %v", info, err)
	}
	if err := f.Remove(ctx, "new"); err != nil {
		t.Errorf("remove: %v", err)
	}
	if _, err := f.Stat(ctx, "new"); !errors.Is(err, tranca.ErrNotFound) {
		t.Errorf("after remove: %v", err)
	}
	if b, err := os.ReadFile(filepath.Join(outside, "keep")); err != nil || string(b) != "k" {
		t.Errorf("remove followed a link: %q %v", b, err)
	}
}

func TestStatRoot(t *testing.T) {
	sb, _, _ := newSandbox(t, nil)
	for _, path := range []string{"/", "//", "/."} {
		info, err := sb.Files().Stat(within(t), path)
		if err != nil || info.Path != "/" || info.Type != tranca.FileDirectory {
			t.Errorf("%q: %+v %v", path, info, err)
		}
	}
}

// More entries than one page holds.
func TestListPages(t *testing.T) {
	sb, _, cfg := newSandbox(t, nil)
	var want []string
	for i := range 700 {
		name := fmt.Sprintf("%s-%04d", strings.Repeat("n", 100), i)
		want = append(want, name)
		if err := os.WriteFile(filepath.Join(cfg.Workdir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	infos, err := sb.Files().List(within(t), ".", 3)
	var got []string
	for _, i := range infos {
		got = append(got, i.Name)
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%d entries %v", len(got), err)
	}
}

// Deeper than a path can be named, and than descriptors would last.
func TestRemoveDeep(t *testing.T) {
	sb, _, _ := newSandbox(t, nil)
	got := runProgram(t, sb, tranca.Command{Args: []string{"python3", "-Ic", `
import os
os.mkdir("deep"); os.chdir("deep")
for i in range(1500):
    os.mkdir("d" * 20); open("f", "w").close(); os.chdir("d" * 20)
`}})
	if got.exit != exited(0) {
		t.Fatal(got)
	}
	if err := sb.Files().Remove(within(t), "deep"); err != nil {
		t.Fatal(err)
	}
	if _, err := sb.Files().Stat(within(t), "deep"); !errors.Is(err, tranca.ErrNotFound) {
		t.Errorf("after remove: %v", err)
	}
}

func TestReaderIsGivenUp(t *testing.T) {
	sb, _, cfg := newSandbox(t, nil)
	if err := os.WriteFile(filepath.Join(cfg.Workdir, "big"), bytes.Repeat([]byte{1}, 8<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r, err := sb.Files().Read(ctx, "big", 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(r, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := io.Copy(io.Discard, r); !errors.Is(err, context.Canceled) {
		// What was under way may still be read; then comes the end of ctx.
		t.Errorf("after cancel: %v", err)
	}
	r.Close()
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, tranca.ErrClosed) {
		t.Errorf("after close: %v", err)
	}
	if err := sb.Ping(within(t)); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
