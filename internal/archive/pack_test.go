package archive

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"tranca"
)

// unpacked reads an archive to its end mark, by the standard library.
func unpacked(t testing.TB, b []byte) []string {
	t.Helper()
	if !bytes.HasSuffix(b, make([]byte, 1024)) {
		t.Error("no end mark")
	}
	var all []string
	for r := tar.NewReader(bytes.NewReader(b)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil || int64(len(content)) != h.Size {
			t.Fatalf("%s: %d bytes, %v", h.Name, len(content), err)
		}
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || h.Gname != "" || h.Mode&^0o777 != 0 {
			t.Errorf("%s: owner %d:%d %q %q, mode %o", h.Name, h.Uid, h.Gid, h.Uname, h.Gname, h.Mode)
		}
		if len(content) > 100 {
			content = fmt.Appendf(nil, "%d bytes of %c", len(content), content[0])
		}
		all = append(all, fmt.Sprintf("%c %s %s%s", h.Typeflag, h.Name, h.Linkname, content))
	}
}

func TestPack(t *testing.T) {
	long := strings.Repeat("long/", 60) + "name"
	given := map[string]string{
		"a": "text", "d": "/", "d/e": "/", "d/e/f": "", "d.x": "y", "link": "->../../etc/passwd",
		"bad\xffname\n": "z", "null": "?", "big": strings.Repeat("b", 3*smallFile+7), "edge": strings.Repeat("e", smallFile),
	}
	for at, parts := "", strings.Split(long, "/"); len(parts) > 1; parts = parts[1:] {
		at += parts[0]
		given[at] = "/"
		at += "/"
	}
	given[long] = "deep"
	m := newMemory(given)
	m.nodes["/t/a"].mode = 0o4755 | 0o1000
	var b bytes.Buffer
	skipped, err := Pack(t.Context(), m, "/t", &b)
	if err != nil || skipped.Count != 1 || !slices.Equal(skipped.Names, []string{"null"}) {
		t.Fatalf("%+v %v", skipped, err)
	}
	var short []string
	for _, line := range unpacked(t, b.Bytes()) {
		if !strings.Contains(line, " long/") || strings.HasSuffix(line, "deep") {
			short = append(short, line)
		}
	}
	want := []string{
		"0 a text", "0 bad\xffname\n z", "0 big 786439 bytes of b", "5 d/ ", "5 d/e/ ", "0 d/e/f ", "0 d.x y",
		"0 edge 262144 bytes of e", "2 link ../../etc/passwd", "0 " + long + " deep",
	}
	if diff := cmp.Diff(want, short); diff != "" {
		t.Error(diff)
	}
}

func TestPackOfOne(t *testing.T) {
	m := newMemory(map[string]string{"f": "text", "link": "->f", "null": "?", "d": "/"})
	for name, want := range map[string]string{"/t/f": "0 f text", "/t/link": "2 link f", "/t/d": ""} {
		var b bytes.Buffer
		if _, err := Pack(t.Context(), m, name, &b); err != nil || strings.Join(unpacked(t, b.Bytes()), "\n") != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, want := range map[string]error{"/t/null": tranca.ErrInvalid, "/t/none": tranca.ErrNotFound} {
		if _, err := Pack(t.Context(), m, name, io.Discard); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What the guest says of its files is a lie in all these.
func TestPackOfLies(t *testing.T) {
	change := func(name string, f func(*tranca.FileInfo)) func([]tranca.FileInfo) []tranca.FileInfo {
		return func(all []tranca.FileInfo) []tranca.FileInfo {
			for i := range all {
				if all[i].Name == name {
					f(&all[i])
				}
			}
			return all
		}
	}
	path := func(p string) func([]tranca.FileInfo) []tranca.FileInfo {
		return change("b", func(i *tranca.FileInfo) { i.Path, i.Name = p, p[strings.LastIndexByte(p, '/')+1:] })
	}
	tests := []struct {
		name string
		list func([]tranca.FileInfo) []tranca.FileInfo
		want error
	}{
		{"outside", path("/etc/passwd"), tranca.ErrProtocol},
		{"up", path("/t/../x"), tranca.ErrProtocol},
		{"up below", path("/t/d/../../x"), tranca.ErrProtocol},
		{"a NUL", path("/t/a\x00b"), tranca.ErrProtocol},
		{"absolute", path("/t//b"), tranca.ErrProtocol},
		{"the folder", path("/t/."), tranca.ErrProtocol},
		{"below a file", path("/t/a/b"), tranca.ErrProtocol},
		{"below nothing", path("/t/x/b"), tranca.ErrProtocol},
		{"twice", path("/t/a"), tranca.ErrProtocol},
		{"too long", path("/t/" + strings.Repeat("n", 256)), tranca.ErrProtocol},
		{"a link's target", change("link", func(i *tranca.FileInfo) { i.LinkTarget = "a\x00b" }), tranca.ErrProtocol},
		{"no target", change("link", func(i *tranca.FileInfo) { i.LinkTarget = "" }), tranca.ErrProtocol},
		{"another name", change("b", func(i *tranca.FileInfo) { i.Name = "../b" }), tranca.ErrProtocol},
		{"a slash first", change("a", func(i *tranca.FileInfo) { i.Name = "t/a" }), tranca.ErrProtocol},
		{"a negative size", change("b", func(i *tranca.FileInfo) { i.Size = -1 }), tranca.ErrProtocol},
		{"no kind", change("b", func(i *tranca.FileInfo) { i.Type = "" }), nil},
		{"a small one is large", change("b", func(i *tranca.FileInfo) { i.Size = 1 << 60 }), nil},
		{"a small one is empty", change("b", func(i *tranca.FileInfo) { i.Size = 0 }), nil},
		{"a large one is small", change("big", func(i *tranca.FileInfo) { i.Size = 5 }), tranca.ErrBusy},
		{"a large one is larger", change("big", func(i *tranca.FileInfo) { i.Size++ }), tranca.ErrBusy},
		{"a large one is cut", change("big", func(i *tranca.FileInfo) { i.Size -= 10 }), nil},
		{"a file that isn't there", change("b", func(i *tranca.FileInfo) { i.Path, i.Name = "/t/c", "c" }), nil},
		{"a folder as a file", change("d", func(i *tranca.FileInfo) { i.Type = tranca.FileRegular }), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := newMemory(map[string]string{"a": "1", "b": "2", "d": "/", "link": "->a", "big": strings.Repeat("b", 2*smallFile)})
			m.list = tt.list
			var b bytes.Buffer
			_, err := Pack(t.Context(), m, "/t", &b)
			if !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if err == nil {
				unpacked(t, b.Bytes())
			} else if bytes.HasSuffix(b.Bytes(), make([]byte, 1024)) {
				t.Error("a whole archive in spite of the error")
			}
		})
	}
}

func TestPackOfWhatBreaks(t *testing.T) {
	m := newMemory(map[string]string{"a": "1", "big": strings.Repeat("b", 2*smallFile)})
	broken := errors.New("broken")
	m.read = func(at, content string) io.Reader {
		return io.MultiReader(strings.NewReader(content[:len(content)/2]), iotest.ErrReader(broken))
	}
	if _, err := Pack(t.Context(), m, "/t", io.Discard); !errors.Is(err, broken) {
		t.Errorf("a reader: %v", err)
	}
	m.read = func(at, content string) io.Reader {
		return io.MultiReader(strings.NewReader(content), iotest.ErrReader(broken))
	}
	if _, err := Pack(t.Context(), m, "/t/big", io.Discard); err != nil {
		t.Errorf("behind what is taken: %v", err)
	}
	m.read = nil
	if _, err := Pack(t.Context(), m, "/t", iotest.TruncateWriter(io.Discard, 5)); err != nil {
		t.Errorf("a writer that takes all: %v", err)
	}
	if _, err := Pack(t.Context(), m, "/t", failing{broken}); !errors.Is(err, broken) {
		t.Errorf("a writer: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(broken)
	if _, err := Pack(ctx, m, "/t", io.Discard); !errors.Is(err, broken) {
		t.Errorf("canceled: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// FuzzPack packs a listing of any entries: an archive comes out that the
// standard library reads, with names below its folder, or an error of a class.
func FuzzPack(f *testing.F) {
	f.Add("/t/a", "a", int64(5), "x", byte(0))
	f.Add("/t/../a", "a", int64(-5), "x", byte(2))
	f.Fuzz(func(t *testing.T, path, name string, size int64, link string, kind byte) {
		m := newMemory(map[string]string{"a": "content"})
		m.list = func(all []tranca.FileInfo) []tranca.FileInfo {
			kinds := []tranca.FileType{tranca.FileRegular, tranca.FileDirectory, tranca.FileSymlink, tranca.FileOther}
			return append(all, tranca.FileInfo{Path: path, Name: name, Size: size, LinkTarget: link, Type: kinds[kind%4]})
		}
		var b bytes.Buffer
		if _, err := Pack(t.Context(), m, "/t", &b); err != nil {
			if !errors.Is(err, tranca.ErrProtocol) && !errors.Is(err, tranca.ErrBusy) {
				t.Fatal(err)
			}
			return
		}
		for _, line := range unpacked(t, b.Bytes()) {
			if strings.HasPrefix(line[2:], "/") || strings.HasPrefix(line[2:], "../") {
				t.Fatalf("%q", line)
			}
		}
	})
}
