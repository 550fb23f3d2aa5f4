package backendtest

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	"tranca"
)

func fileCases() []testCase {
	return []testCase{
		{"Files/WriteRead", testWriteRead, nil},
		{"Files/SharedWithCode", testSharedWithCode, nil},
		{"Files/Large", testLargeFile, nil},
		{"Files/Stat", testStat, nil},
		{"Files/Missing", testMissingFile, nil},
		{"Files/Kinds", testKinds, nil},
		{"Files/Links", testLinks, nil},
		{"Files/List", testList, nil},
		{"Files/ListHuge", testListHuge, []Ability{ListsHuge}},
		{"Files/MakeDir", testMakeDir, nil},
		{"Files/Move", testMove, nil},
		{"Files/Remove", testRemove, nil},
		{"Files/BadPaths", testBadPaths, nil},
		{"Files/ReaderFails", testWriteFromFailing, nil},
		{"Files/Gone", testFilesGone, nil},
	}
}

func (b *box) write(name, text string) {
	b.Helper()
	n, err := b.Files().Write(b.context(), name, strings.NewReader(text), 0o644)
	if err != nil || n != int64(len(text)) {
		b.Fatalf("write %s: %d bytes of %d, %v", name, n, len(text), err)
	}
}

func (b *box) readFrom(name string, offset int64) (string, error) {
	r, err := b.Files().Read(b.context(), name, offset)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(r)
	return string(text), errors.Join(err, r.Close())
}

func (b *box) reads(name, want string) {
	b.Helper()
	if got, err := b.readFrom(name, 0); err != nil || got != want {
		b.Errorf("read %s: %q, %v; want %q", name, got, err, want)
	}
}

// class fails the test where an error is of none of the classes.
func (s *suite) class(what string, err error, classes ...error) {
	s.Helper()
	if !slices.ContainsFunc(classes, func(c error) bool { return errors.Is(err, c) }) {
		s.Errorf("%s: %v; want an error of %v", what, err, classes)
	}
}

func testWriteRead(s *suite) {
	b := s.create()
	b.write("file", "one\x00\xff two")
	b.reads("file", "one\x00\xff two")
	if got, err := b.readFrom("file", 6); err != nil || got != "two" {
		s.Errorf("from an offset: %q, %v", got, err)
	}
	if got, err := b.readFrom("file", 1000); err != nil || got != "" {
		s.Errorf("from beyond the end: %q, %v", got, err)
	}
	b.write("file", "new")
	b.reads("file", "new")
	b.write("empty", "")
	b.reads("empty", "")
	_, err := b.readFrom("file", -1)
	s.class("a negative offset", err, tranca.ErrInvalid)
}

func testSharedWithCode(s *suite) {
	b := s.create()
	b.write("in", "from outside")
	if out := b.must("read", "in"); out != "from outside" {
		s.Errorf("the code reads %q", out)
	}
	b.must("write", "out", "from inside")
	b.reads("out", "from inside")
	b.must("write", "in", "changed") // it is the user's own file
	b.reads("in", "changed")
}

func testLargeFile(s *suite) {
	b := s.create()
	text := bytes.Repeat([]byte("0123456789abcdef"), 24<<20/16)
	n, err := b.Files().Write(s.context(), "large", bytes.NewReader(text), 0o600)
	if err != nil || n != int64(len(text)) {
		s.Fatalf("%d bytes of %d, %v", n, len(text), err)
	}
	got, err := b.readFrom("large", 0)
	if err != nil || got != string(text) {
		s.Errorf("%d bytes of %d, or not the same: %v", len(got), len(text), err)
	}
	r, err := b.Files().Read(s.context(), "large", 0)
	if err != nil {
		s.Fatal(err)
	}
	if err := r.Close(); err != nil {
		s.Errorf("closing a reader early: %v", err)
	}
	b.write("after", "x")
}

func testStat(s *suite) {
	b := s.create()
	if _, err := b.Files().Write(s.context(), "file", strings.NewReader("12345"), 0o640); err != nil {
		s.Fatal(err)
	}
	info, err := b.Files().Stat(s.context(), "file")
	if err != nil {
		s.Fatal(err)
	}
	if info.Name != "file" || info.Type != tranca.FileRegular || info.Size != 5 ||
		info.Mode.Perm() != 0o640 || info.Modified.IsZero() || !strings.HasSuffix(info.Path, "/file") {
		s.Errorf("%+v", info)
	}
	info, err = b.Files().Stat(s.context(), "/")
	if err != nil || info.Type != tranca.FileDirectory {
		s.Errorf("the root: %+v, %v", info, err)
	}
}

func testMissingFile(s *suite) {
	b, ctx := s.create(), s.context()
	_, err := b.readFrom("missing", 0)
	s.class("read", err, tranca.ErrNotFound)
	_, err = b.Files().Stat(ctx, "missing/deeper")
	s.class("stat", err, tranca.ErrNotFound)
	_, err = b.Files().List(ctx, "missing", 1)
	s.class("list", err, tranca.ErrNotFound)
	_, err = b.Files().Move(ctx, "missing", "there")
	s.class("move", err, tranca.ErrNotFound)
	if err := b.Files().Remove(ctx, "missing"); err != nil {
		s.Errorf("removing what is not there: %v", err)
	}
}

// testKinds tries what is no regular file. A FIFO that nobody writes to must
// not block.
func testKinds(s *suite) {
	b := s.create()
	b.must("fifo", "pipe")
	info, err := b.Files().Stat(s.context(), "pipe")
	if err != nil || info.Type != tranca.FileOther {
		s.Errorf("stat of a FIFO: %+v, %v", info, err)
	}
	s.returns("reading a FIFO", func() {
		_, err := b.readFrom("pipe", 0)
		s.class("reading a FIFO", err, tranca.ErrInvalid)
	})
	s.returns("writing a FIFO", func() {
		_, err := b.Files().Write(s.context(), "pipe", strings.NewReader("x"), 0o644)
		s.class("writing a FIFO", err, tranca.ErrInvalid, tranca.ErrExists)
	})
	if _, err := b.Files().MakeDir(s.context(), "dir"); err != nil {
		s.Fatal(err)
	}
	_, err = b.readFrom("dir", 0)
	s.class("reading a folder", err, tranca.ErrInvalid)
	_, err = b.Files().Write(s.context(), "dir", strings.NewReader("x"), 0o644)
	s.class("writing a folder", err, tranca.ErrInvalid, tranca.ErrExists)
	_, err = b.Files().List(s.context(), "pipe", 1)
	s.class("listing a FIFO", err, tranca.ErrInvalid)
	_, err = b.Files().List(s.context(), "dir", 0)
	s.class("listing to no depth", err, tranca.ErrInvalid)
}

func testLinks(s *suite) {
	b, ctx := s.create(), s.context()
	b.write("target", "behind the link")
	b.must("link", "link", "target")
	b.must("link", "dangling", "nowhere")
	b.must("link", "loop", "loop")
	b.reads("link", "behind the link")
	info, err := b.Files().Stat(ctx, "link")
	if err != nil || info.Type != tranca.FileSymlink || info.LinkTarget != "target" {
		s.Errorf("stat of a link: %+v, %v", info, err)
	}
	_, err = b.readFrom("dangling", 0)
	s.class("reading a dangling link", err, tranca.ErrNotFound)
	_, err = b.readFrom("loop", 0)
	s.class("reading a loop of links", err, tranca.ErrInvalid, tranca.ErrNotFound)
	if err := b.Files().Remove(ctx, "link"); err != nil {
		s.Error(err)
	}
	b.reads("target", "behind the link")
	if _, err := b.Files().MakeDir(ctx, "real"); err != nil {
		s.Fatal(err)
	}
	b.write("real/inside", "kept")
	b.must("link", "folder", "real")
	if err := b.Files().Remove(ctx, "folder"); err != nil {
		s.Error(err)
	}
	b.reads("real/inside", "kept")
	b.must("link", "up", "..")
	list, err := b.Files().List(ctx, ".", 5)
	if err != nil {
		s.Fatal(err)
	}
	for _, i := range list {
		if strings.Contains(i.Path, "/up/") {
			s.Errorf("listing followed a link to %s", i.Path)
		}
	}
}

func testList(s *suite) {
	b, ctx := s.create(), s.context()
	for _, dir := range []string{"list/b/deep", "list/a"} {
		if _, err := b.Files().MakeDir(ctx, dir); err != nil {
			s.Fatal(err)
		}
	}
	for _, file := range []string{"list/c", "list/a/2", "list/a/1", "list/b/deep/x", "list/a.txt"} {
		b.write(file, "x")
	}
	for depth, want := range map[int]string{
		1: "a a.txt b c",
		2: "a a/1 a/2 a.txt b b/deep c",
		9: "a a/1 a/2 a.txt b b/deep b/deep/x c",
	} {
		list, err := b.Files().List(ctx, "list", depth)
		if err != nil {
			s.Fatal(err)
		}
		var got []string
		for _, i := range list {
			_, name, _ := strings.Cut(i.Path, "/list/")
			got = append(got, name)
		}
		if strings.Join(got, " ") != want {
			s.Errorf("to depth %d: %q, want %q", depth, strings.Join(got, " "), want)
		}
	}
	if list, err := b.Files().List(ctx, "list/b/deep", 1); err != nil || len(list) != 1 || list[0].Size != 1 {
		s.Errorf("%+v, %v", list, err)
	}
}

func testListHuge(s *suite) {
	b := s.create(func(p *tranca.Policy) {
		p.Limits.Disk.Inodes = 120_000
		p.Limits.Memory = 1 << 30
	})
	b.must("names", "100500")
	s.returns("listing a huge folder", func() {
		_, err := b.Files().List(s.context(), ".", 1)
		s.class("a folder of 100,500 entries", err, tranca.ErrInvalid)
	})
	b.must("exit", "0")
}

func testMakeDir(s *suite) {
	b, ctx := s.create(), s.context()
	info, err := b.Files().MakeDir(ctx, "a/b/c")
	if err != nil || info.Type != tranca.FileDirectory || info.Name != "c" {
		s.Errorf("%+v, %v", info, err)
	}
	_, err = b.Files().MakeDir(ctx, "a/b")
	s.class("a folder that is there", err, tranca.ErrExists)
	b.write("file", "x")
	_, err = b.Files().MakeDir(ctx, "file/below")
	s.class("a folder below a file", err, tranca.ErrInvalid, tranca.ErrExists, tranca.ErrNotFound)
}

func testMove(s *suite) {
	b, ctx := s.create(), s.context()
	b.write("from", "moved")
	info, err := b.Files().Move(ctx, "from", "new/place")
	if err != nil || info.Name != "place" || info.Type != tranca.FileRegular {
		s.Errorf("%+v, %v", info, err)
	}
	b.reads("new/place", "moved")
	_, err = b.readFrom("from", 0)
	s.class("the old name", err, tranca.ErrNotFound)
	if _, err := b.Files().Move(ctx, "new", "other"); err != nil {
		s.Error(err)
	}
	b.reads("other/place", "moved")
	_, err = b.Files().Move(ctx, "other", "other/below")
	s.class("a folder into itself", err, tranca.ErrInvalid)
}

func testRemove(s *suite) {
	b, ctx := s.create(), s.context()
	b.write("file", "x")
	if _, err := b.Files().MakeDir(ctx, "tree/of/folders"); err != nil {
		s.Fatal(err)
	}
	b.write("tree/of/files", "x")
	for _, name := range []string{"file", "tree"} {
		if err := b.Files().Remove(ctx, name); err != nil {
			s.Error(err)
		}
		_, err := b.Files().Stat(ctx, name)
		s.class(name+" after it was removed", err, tranca.ErrNotFound)
	}
}

func testBadPaths(s *suite) {
	b, ctx := s.create(), s.context()
	for _, name := range []string{"", "a\x00b", strings.Repeat("x", 300), strings.Repeat("x/", 5000)} {
		short := name[:min(len(name), 8)]
		_, err := b.readFrom(name, 0)
		s.class("read "+short, err, tranca.ErrInvalid, tranca.ErrNotFound)
		_, err = b.Files().Write(ctx, name, strings.NewReader("x"), 0o644)
		s.class("write "+short, err, tranca.ErrInvalid, tranca.ErrNotFound)
	}
	b.must("exit", "0")
}

func testWriteFromFailing(s *suite) {
	b := s.create()
	if _, err := b.Files().Write(s.context(), "half", &failing{1000}, 0o644); err == nil {
		s.Error("a source that fails was written in full")
	}
	b.write("after", "x")
	b.reads("after", "x")
}

func testFilesGone(s *suite) {
	b := s.create()
	if err := b.Close(s.context()); err != nil {
		s.Fatal(err)
	}
	_, err := b.Files().Stat(s.context(), "/")
	s.class("files of a closed sandbox", err, tranca.ErrGone, tranca.ErrClosed)
}
