package archive

import (
	"archive/tar"
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

	"github.com/google/go-cmp/cmp"

	"tranca"
)

// archived makes an archive. An entry without a type is a regular file, whose
// content is its name's.
func archived(t testing.TB, entries ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range entries {
		content := ""
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		if h.Typeflag == tar.TypeReg {
			content = "of " + h.Name
			h.Size = int64(len(content))
		}
		if h.Mode == 0 && h.Typeflag != tar.TypeXGlobalHeader {
			h.Mode = 0o644
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func file(name string) tar.Header   { return tar.Header{Name: name} }
func folder(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeDir} }
func link(name, to string) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: to}
}

// disk shows a folder of the own disk as memory.tree does.
func disk(t testing.TB, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		switch {
		case d.IsDir():
			all = append(all, "directory "+rel)
		case d.Type()&os.ModeSymlink != 0:
			to, _ := os.Readlink(path)
			all = append(all, "symlink "+rel+" "+to)
		default:
			b, err := os.ReadFile(path)
			all = append(all, "file "+rel+" "+string(b))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

// both extracts into a sandbox in memory and into a folder of the own disk, and
// wants the same of both: what is there, and the class of the error. Neither has
// anything outside of its folder afterwards.
func both(t *testing.T, given map[string]string, b []byte, opts Options) (Summary, []string, error) {
	t.Helper()
	m := newMemory(given)
	sum, err := Extract(t.Context(), linking{m}, "/t", bytes.NewReader(b), opts)
	inside, outside := m.tree()
	if len(outside) > 0 {
		t.Errorf("outside in the sandbox: %q", outside)
	}
	top := t.TempDir()
	dir := filepath.Join(top, "t")
	lay(t, dir, given)
	lsum, lerr := ExtractLocal(t.Context(), dir, bytes.NewReader(b), opts)
	if diff := cmp.Diff(sum, lsum); diff != "" {
		t.Errorf("summaries (sandbox, disk): %s", diff)
	}
	if (err == nil) != (lerr == nil) || errors.Is(err, tranca.ErrInvalid) != errors.Is(lerr, tranca.ErrInvalid) {
		t.Errorf("sandbox: %v\ndisk: %v", err, lerr)
	}
	if diff := cmp.Diff(inside, disk(t, dir)); diff != "" {
		t.Errorf("what is there (sandbox, disk): %s", diff)
	}
	if list, err := os.ReadDir(top); err != nil || len(list) != 1 {
		t.Errorf("outside on the disk: %v %v", list, err)
	}
	return sum, inside, err
}

// lay makes on the disk what newMemory makes in memory.
func lay(t testing.TB, dir string, given map[string]string) {
	t.Helper()
	err := os.Mkdir(dir, 0o777)
	for name, what := range given {
		at := filepath.Join(dir, name)
		if target, ok := strings.CutPrefix(what, "->"); ok {
			err = errors.Join(err, os.Symlink(target, at))
		} else if what == "/" {
			err = errors.Join(err, os.Mkdir(at, 0o777))
		} else {
			err = errors.Join(err, os.WriteFile(at, []byte(what), 0o640))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestExtract(t *testing.T) {
	b := archived(t, folder("./"), file("a"), folder("d/"), file("./d/e"), file("made/on/the/way"),
		link("d/up", "../a"), link("dangling", "d/none"), link("self", "."), file("a"), folder("d"),
		tar.Header{Name: "set", Mode: 0o6755}, file("bad\xffname\n"),
		tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"path": "/etc/passwd"}})
	given := map[string]string{"a": "old", "kept": "k", "d": "/", "dangling": "->other"}
	sum, got, err := both(t, given, b, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"directory d", "directory made", "directory made/on", "directory made/on/the", "file a of a",
		"file bad\xffname\n of bad\xffname\n", "file d/e of ./d/e", "file kept k", "file made/on/the/way of made/on/the/way",
		"file set of set", "symlink d/up ../a", "symlink dangling d/none", "symlink self .",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if sum.Files != 6 || sum.Folders != 2 || sum.Links != 3 || sum.Bytes != 2*4+8+18+6+12 {
		t.Errorf("%+v", sum)
	}
	// Once more over itself.
	again := map[string]string{}
	for _, line := range got {
		kind, rest, _ := strings.Cut(line, " ")
		name, content, _ := strings.Cut(rest, " ")
		again[name] = map[string]string{"directory": "/", "file": content, "symlink": "->" + content}[kind]
	}
	delete(again, "d/up") // its folder may be made after it
	for name := range again {
		if strings.Contains(name, "/") {
			delete(again, name)
		}
	}
	if _, _, err := both(t, again, b, Options{}); err != nil {
		t.Errorf("once more: %v", err)
	}
}

// extended is an archive of a header that describes the next entry, which the
// writer would not write so, and a file.
func extended(t testing.TB, flag byte, payload string) []byte {
	t.Helper()
	h := archived(t, tar.Header{Name: "extended", Typeflag: tar.TypeDir})[:512]
	h[156] = flag
	copy(h[124:], fmt.Sprintf("%011o\x00", len(payload)))
	checksum(h)
	b := append(h, payload...)
	b = append(b, make([]byte, -len(b)&511)...)
	return append(b, archived(t, file("x"))...)
}

// record is a record of a PAX header.
func record(key, value string) string {
	line := " " + key + "=" + value + "\n"
	n := len(line) + 1
	for len(fmt.Sprint(n))+len(line) != n {
		n++
	}
	return fmt.Sprint(n) + line
}

// checksum writes a header's.
func checksum(h []byte) {
	copy(h[148:], "        ")
	sum := 0
	for _, c := range h {
		sum += int(c)
	}
	for i, digits := 0, 6; i < digits; i++ {
		h[148+i] = byte('0' + sum>>(3*(digits-1-i))&7)
	}
	h[154], h[155] = 0, ' '
}

// special is an entry of a type that the writer doesn't make.
func special(t testing.TB, flag byte) []byte {
	t.Helper()
	b := archived(t, file("x"))
	b[156] = flag
	checksum(b[:512])
	return b
}

// raw is an archive with a first entry whose header field is what is given.
func raw(t testing.TB, at int, field string) []byte {
	t.Helper()
	b := archived(t, file("x"), file("y"))
	copy(b[at:], field)
	checksum(b[:512])
	return b
}

func TestExtractRefuses(t *testing.T) {
	whole := archived(t, file("a"), file("b"))
	long := strings.Repeat("n", 250) + "/"
	tests := []struct {
		name  string
		b     []byte
		given map[string]string
		word  string // in the error
	}{
		{"absolute", archived(t, file("/etc/x")), nil, "/etc/x"},
		{"up", archived(t, file("../x")), nil, "../x"},
		{"up on the way", archived(t, file("a/../../x")), nil, "a/../../x"},
		{"up inside", archived(t, folder("a"), file("a/../x")), nil, "a/../x"},
		{"a folder up", archived(t, folder("../d")), nil, "../d"},
		{"a link up", archived(t, link("../l", "x")), nil, "../l"},
		{"a NUL by PAX", extended(t, 'x', record("path", "a\x00b")), nil, ""},
		{"a NUL by GNU", extended(t, 'L', "../a\x00b"), nil, "../a"},
		{"a link's NUL by PAX", extended(t, 'x', record("linkpath", "a\x00b")), nil, ""},
		{"up by PAX", extended(t, 'x', record("path", "../x")), nil, "../x"},
		{"absolute by GNU", extended(t, 'L', "/etc/x"), nil, "/etc/x"},
		{"a long name by GNU", extended(t, 'L', strings.Repeat("n/", 3000)+"n"), nil, "4096"},
		{"an absurd name by GNU", extended(t, 'L', strings.Repeat("n/", 2<<20)), nil, ""},
		{"an absurd name by PAX", extended(t, 'x', record("path", strings.Repeat("n/", 2<<20))), nil, ""},
		{"an absurd size by PAX", extended(t, 'x', record("size", "9223372036854775807")), nil, "bytes"},
		{"a negative size by PAX", extended(t, 'x', record("size", "-1")), nil, ""},
		{"a record of no length", extended(t, 'x', "0 path=x\n"), nil, ""},
		{"a record that is too long", extended(t, 'x', "999999999999 path=x\n"), nil, ""},
		{"sparse by PAX 0.1", extended(t, 'x', record("GNU.sparse.major", "0")+record("GNU.sparse.minor", "1")+
			record("GNU.sparse.size", "1000000000000")+record("GNU.sparse.numblocks", "0")+record("GNU.sparse.map", "")), nil, "sparse"},
		{"sparse by PAX 1.0", extended(t, 'x', record("GNU.sparse.major", "1")+record("GNU.sparse.minor", "0")+
			record("GNU.sparse.name", "../x")+record("GNU.sparse.realsize", "1000000000000")), nil, ""},
		{"a long name", archived(t, file(strings.Repeat(long, 17)+"x")), nil, "4096"},
		{"a long part", archived(t, file(strings.Repeat("n", 256))), nil, "255"},
		{"the folder as a file", archived(t, file("./.")), nil, "./."},
		{"the folder as a link", archived(t, link(".", "/etc")), nil, "\".\""},
		{"a hard link", archived(t, file("a"), tar.Header{Name: "h", Typeflag: tar.TypeLink, Linkname: "a"}), nil, "\"h\""},
		{"a hard link out", archived(t, tar.Header{Name: "h", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}), nil, "\"h\""},
		{"a device", archived(t, tar.Header{Name: "dev", Typeflag: tar.TypeChar, Devmajor: 1}), nil, "dev"},
		{"a block device", archived(t, tar.Header{Name: "dev", Typeflag: tar.TypeBlock}), nil, "dev"},
		{"a FIFO", archived(t, tar.Header{Name: "pipe", Typeflag: tar.TypeFifo}), nil, "pipe"},
		{"a contiguous file", special(t, tar.TypeCont), nil, "type"},
		{"an unknown type", special(t, 'Z'), nil, "type"},
		{"GNU sparse", special(t, tar.TypeGNUSparse), nil, ""},
		{"an absolute link", archived(t, link("l", "/etc")), nil, "\"l\""},
		{"a link up", archived(t, link("l", "..")), nil, "\"l\""},
		{"a link further up", archived(t, link("d/l", "../../x")), nil, "d/l"},
		{"a link behind a name", archived(t, link("here", "."), link("l", "here/../x")), nil, "\"l\""},
		{"through a link", archived(t, link("l", "d"), file("l/x")), map[string]string{"d": "/"}, "l/x"},
		{"through a link of its own to itself", archived(t, link("l", "."), file("l/x")), nil, "l/x"},
		{"deep through a link", archived(t, folder("a"), link("a/l", "."), file("a/l/b/x")), nil, "a/l/b/x"},
		{"a folder through a link", archived(t, link("l", "."), folder("l/d")), nil, "l/d"},
		{"a link through a link", archived(t, link("l", "."), link("l/m", "x")), nil, "l/m"},
		{"through a link that was there", archived(t, file("l/x")), map[string]string{"l": "->.."}, "l/x"},
		{"over a link that was there", archived(t, file("l")), map[string]string{"l": "->../x"}, "\"l\""},
		{"a folder over a link", archived(t, folder("l")), map[string]string{"l": "->.."}, "\"l\""},
		{"over its own link", archived(t, link("l", "x"), file("l")), nil, "\"l\""},
		{"a link over its own file", archived(t, file("l"), link("l", "x")), nil, "\"l\""},
		{"a link over its own folder", archived(t, folder("l"), link("l", "x")), nil, "\"l\""},
		{"a link over a folder made on the way", archived(t, file("l/x"), link("l", "x")), nil, "\"l\""},
		{"a file over its own folder", archived(t, folder("l"), file("l")), nil, "\"l\""},
		{"below its own file", archived(t, file("f"), file("f/x")), nil, "f/x"},
		{"a link over a file", archived(t, link("f", "x")), map[string]string{"f": "t"}, "\"f\""},
		{"a link over a folder", archived(t, link("d", "x")), map[string]string{"d": "/"}, "\"d\""},
		{"a file over a folder", archived(t, file("d")), map[string]string{"d": "/"}, "\"d\""},
		{"a folder over a file", archived(t, folder("f")), map[string]string{"f": "t"}, "\"f\""},
		{"below a file", archived(t, file("f/x")), map[string]string{"f": "t"}, "f/x"},
		{"nothing", nil, nil, "ends early"},
		{"no archive", []byte(strings.Repeat("no archive ", 100)), nil, ""},
		{"cut in a header", whole[:300], nil, ""},
		{"cut in a file", whole[:515], nil, "\"a\""},
		{"cut between two", whole[:1024], nil, "ends early"},
		{"cut before the mark", whole[:2048], nil, "ends early"},
		{"half a mark", whole[:2048+512], nil, "ends early"},
		{"a bad sum", append([]byte("y"), whole[1:]...), nil, ""},
		{"a negative size", raw(t, 124, "\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), nil, ""},
		{"an absurd size", raw(t, 124, "\x80\x00\x00\x00\x7f\xff\xff\xff\xff\xff\xff\xff"), nil, "bytes"},
		{"a size beyond all", raw(t, 124, "\x80\xff\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff"), nil, ""},
		{"a long comment", extended(t, 'x', record("comment", strings.Repeat("c", 4<<20))), nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := both(t, tt.given, tt.b, Options{})
			if !errors.Is(err, tranca.ErrInvalid) || !strings.Contains(err.Error(), tt.word) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestExtractBounds(t *testing.T) {
	b := archived(t, file("a"), file("b"), link("c", "a"))
	for _, tt := range []struct {
		opts Options
		ok   bool
	}{
		{Options{MaxEntries: 3}, true}, {Options{MaxEntries: 2}, false},
		{Options{MaxBytes: 8}, true}, {Options{MaxBytes: 7}, false},
	} {
		_, _, err := both(t, nil, b, tt.opts)
		if tt.ok != (err == nil) || err != nil && !errors.Is(err, tranca.ErrInvalid) {
			t.Errorf("%+v: %v", tt.opts, err)
		}
	}
}

func TestExtractLeavesOutLinks(t *testing.T) {
	b := archived(t, link("out", "/usr/bin/python3"), link("in", "a"), link("up", "../x"), file("a"))
	sum, got, err := both(t, nil, b, Options{SkipLinks: true})
	if err != nil || !slices.Equal(sum.Skipped.Names, []string{"out", "up"}) || sum.Skipped.Count != 2 {
		t.Errorf("%+v %v", sum, err)
	}
	if !slices.Equal(got, []string{"file a of a", "symlink in a"}) {
		t.Errorf("%q", got)
	}
	// What was left out is still not to be gone through.
	b = archived(t, link("out", "/etc"), file("out/x"))
	if _, _, err := both(t, nil, b, Options{SkipLinks: true}); !errors.Is(err, tranca.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}

func TestExtractInto(t *testing.T) {
	b := archived(t, file("a"))
	m := newMemory(map[string]string{"f": "t", "l": "->d", "d": "/"})
	for name, want := range map[string]error{"/t/f": tranca.ErrInvalid, "/t/l": tranca.ErrInvalid, "/t/new": nil, "/t/d/": nil} {
		if _, err := Extract(t.Context(), m, name, bytes.NewReader(b), Options{}); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, _ := m.tree(); !slices.Contains(got, "file new/a of a") || !slices.Contains(got, "file d/a of a") {
		t.Errorf("%q", got)
	}
	// Without the ability to make links.
	_, err := Extract(t.Context(), m, "/t", bytes.NewReader(archived(t, link("x", "a"))), Options{})
	if !errors.Is(err, tranca.ErrUnsupported) || errors.Is(err, tranca.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}

func TestExtractOfWhatBreaks(t *testing.T) {
	broken := errors.New("broken")
	b := archived(t, file("a"), file("b"))
	for _, n := range []int{0, 100, 512, 514, 1024, 2048} {
		r := io.MultiReader(bytes.NewReader(b[:n]), iotest.ErrReader(broken))
		if _, err := Extract(t.Context(), newMemory(nil), "/t", r, Options{}); !errors.Is(err, broken) || !errors.Is(err, tranca.ErrInvalid) {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
	if _, err := Extract(t.Context(), newMemory(nil), "/t", iotest.DataErrReader(bytes.NewReader(b)), Options{}); err != nil {
		t.Errorf("a reader that ends with its last bytes: %v", err)
	}
	if _, err := Extract(t.Context(), newMemory(nil), "/t", iotest.OneByteReader(bytes.NewReader(b)), Options{}); err != nil {
		t.Errorf("a reader of single bytes: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(broken)
	if _, err := ExtractLocal(ctx, t.TempDir(), bytes.NewReader(b), Options{}); !errors.Is(err, broken) {
		t.Errorf("canceled: %v", err)
	}
}
