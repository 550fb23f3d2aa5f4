package host

import (
	"errors"
	"io"
	"strings"
	"testing"

	"tranca"
)

func TestResume(t *testing.T) {
	sb, _, _ := newSandbox(t, nil)
	f, ok := tranca.As[tranca.FileResumer](sb.Files())
	if !ok {
		t.Fatal("no FileResumer")
	}
	write := func(path, text string, offset int64) (int64, error) {
		return f.WriteFrom(within(t), path, strings.NewReader(text), offset, 0o640)
	}
	read := func(path string) string {
		r, err := sb.Files().Read(within(t), path, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, step := range []struct {
		text   string
		offset int64
		want   string
	}{
		{"0123456789", 0, "0123456789"}, {"abc", 10, "0123456789abc"}, {"X", 5, "01234X"}, {"", 3, "012"}, {"new", 0, "new"},
	} {
		n, err := write("file", step.text, step.offset)
		if err != nil || n != int64(len(step.text)) || read("file") != step.want {
			t.Errorf("%q at %d: %d %v, and it holds %q", step.text, step.offset, n, err, read("file"))
		}
	}
	if _, err := f.WriteFrom(within(t), "file", io.MultiReader(strings.NewReader("part"), badReader{}), 3, 0); !errors.Is(err, tranca.ErrInvalid) {
		t.Errorf("a reader that breaks: %v", err)
	}
	if text := read("file"); text != "newpart" {
		t.Errorf("after it broke off the file holds %q", text)
	}
	resumeRefusals(t, sb, write)
}

type badReader struct{}

func (badReader) Read([]byte) (int, error) { return 0, errors.New("broken") }

func resumeRefusals(t *testing.T, sb *sandbox, write func(string, string, int64) (int64, error)) {
	t.Helper()
	l := sb.Files().(tranca.FileLinker)
	for link, target := range map[string]string{"link": "file", "dangling": "nothing", "up": "../../../../etc/hostname"} {
		if err := l.Symlink(within(t), target, link); err != nil {
			t.Fatal(err)
		}
	}
	if got := runProgram(t, sb, tranca.Command{Args: []string{"mkfifo", "fifo"}}); got.exit != exited(0) {
		t.Fatal(got)
	}
	if _, err := sb.Files().MakeDir(within(t), "folder"); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path   string
		offset int64
	}{
		{"missing", 1}, {"file", 1 << 40}, {"file", -1}, {"", 0}, {"a\x00b", 0}, {"link", 0}, {"link", 1}, {"dangling", 0},
		{"up", 0}, {"up", 1}, {"fifo", 0}, {"fifo", 1}, {"folder", 0}, {"folder", 1}, {"/dev/null", 0}, {"/dev/zero", 1},
	} {
		if n, err := write(tt.path, "x", tt.offset); !errors.Is(err, tranca.ErrInvalid) || n != 0 {
			t.Errorf("%q at %d: %d %v", tt.path, tt.offset, n, err)
		}
	}
	if _, err := write("/proc/self/comm", "x", 0); err == nil {
		t.Error("a file of the agent's own /proc was written")
	}
	if _, err := sb.Files().Stat(within(t), "nothing"); !errors.Is(err, tranca.ErrNotFound) {
		t.Errorf("a write through a dangling link made its target: %v", err)
	}
}

func TestSymlink(t *testing.T) {
	sb, _, _ := newSandbox(t, nil)
	l, ok := tranca.As[tranca.FileLinker](sb.Files())
	if !ok {
		t.Fatal("no FileLinker")
	}
	for path, target := range map[string]string{"a": "b", "c": "/no/such", "d": "../..", "e": strings.Repeat("x/", 2000) + "y", "./f/": "g"} {
		if err := l.Symlink(within(t), target, path); err != nil {
			t.Errorf("%q: %v", path, err)
			continue
		}
		info, err := sb.Files().Stat(within(t), strings.Trim(path, "./"))
		if err != nil || info.Type != tranca.FileSymlink || info.LinkTarget != target {
			t.Errorf("%q: %+v %v", path, info, err)
		}
	}
	for _, tt := range []struct {
		target, path string
		want         error
	}{
		{"x", "a", tranca.ErrExists}, {"x", "no/such/folder", tranca.ErrNotFound}, {"", "g", tranca.ErrInvalid},
		{"a\x00b", "g", tranca.ErrInvalid}, {"x", "", tranca.ErrInvalid}, {"x", "a\x00b", tranca.ErrInvalid},
		{"x", "/", tranca.ErrInvalid}, {"x", "..", tranca.ErrInvalid}, {strings.Repeat("x", 5000), "g", tranca.ErrInvalid},
	} {
		if err := l.Symlink(within(t), tt.target, tt.path); !errors.Is(err, tt.want) {
			t.Errorf("%.20q to %.20q: %v, want %v", tt.path, tt.target, err, tt.want)
		}
	}
}
