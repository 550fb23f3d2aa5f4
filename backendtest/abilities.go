package backendtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"tranca"
)

func abilityCases() []testCase {
	return []testCase{
		{"Terminal/Lacking", testNoTerminal, nil},
		{"Terminal/Size", testTerminalSize, []Ability{HasTerminals}},
		{"Terminal/Typed", testTerminalTyped, []Ability{HasTerminals}},
		{"Terminal/Invalid", testTerminalInvalid, []Ability{HasTerminals}},
		{"Ports/Lacking", testNoPorts, nil},
		{"Ports/Echo", testPortEcho, []Ability{DialsPorts}},
		{"Ports/Refused", testPortRefused, []Ability{DialsPorts}},
		{"Ports/Close", testPortClose, []Ability{DialsPorts}},
		{"Files/Resume", testResume, []Ability{ResumesWrites}},
		{"Files/ResumeRefused", testResumeRefused, []Ability{ResumesWrites}},
		{"Files/Symlink", testSymlink, []Ability{MakesLinks}},
		{"Files/Lacking", testNoFileAbilities, nil},
	}
}

func (s *suite) lacks(a Ability) bool { return slices.Contains(s.expect.Lacks, a) }

// terminal is a change of a command that gives it a terminal.
func terminal(rows, columns uint16) func(*tranca.Command) {
	return func(c *tranca.Command) { c.Terminal = &tranca.TerminalSize{Rows: rows, Columns: columns} }
}

// testNoTerminal: a backend without terminals says so, and runs nothing.
func testNoTerminal(s *suite) {
	if !s.lacks(HasTerminals) {
		return
	}
	cmd := tranca.Command{Args: s.command("exit", "0"), Terminal: &tranca.TerminalSize{Rows: 24, Columns: 80}}
	_, err := s.create().Start(s.context(), cmd)
	s.class("a terminal that the backend does not have", err, tranca.ErrUnsupported)
}

func (r *running) resize(rows, columns uint16) error {
	r.Helper()
	resizer, ok := tranca.As[tranca.Resizer](r.Process)
	if !ok {
		r.Fatal("the process is no Resizer")
	}
	return resizer.Resize(r.context(), tranca.TerminalSize{Rows: rows, Columns: columns})
}

func testTerminalSize(s *suite) {
	b := s.create()
	r := b.start(s.command("size"), terminal(24, 80))
	r.says("24x80")
	for _, size := range []tranca.TerminalSize{{Rows: 50, Columns: 132}, {Rows: 1, Columns: 1}, {Rows: 65535, Columns: 65535}} {
		if err := r.resize(size.Rows, size.Columns); err != nil {
			s.Fatal(err)
		}
	}
	r.says("65535x65535")
	s.class("a resize to nothing", r.resize(0, 80), tranca.ErrInvalid)
	if text := r.err.String(); text != "" {
		s.Errorf("output beside the terminal's: %q", text)
	}
	if err := r.Signal(s.context(), tranca.SIGKILL); err != nil {
		s.Error(err)
	}
	if exit := r.wait(); exit != signaled(9) {
		s.Errorf("%+v", exit)
	}
	s.class("a resize after the end", r.resize(24, 80), tranca.ErrGone)
	plain := b.start(s.command("sleep", "3600"))
	if resizer, ok := tranca.As[tranca.Resizer](plain.Process); ok {
		err := resizer.Resize(s.context(), tranca.TerminalSize{Rows: 24, Columns: 80})
		s.class("a resize without a terminal", err, tranca.ErrUnsupported)
	}
}

// testTerminalTyped: what is typed arrives, and the end of typing is no end of
// the program's input.
func testTerminalTyped(s *suite) {
	r := s.create().start(s.command("cat"), terminal(24, 80), func(c *tranca.Command) {
		c.Stdin = strings.NewReader("first line\n")
	})
	r.says("first line")
	short, cancel := context.WithTimeout(context.Background(), s.scale(200*time.Millisecond))
	defer cancel()
	if exit, err := r.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
		s.Errorf("it ended with what was typed: %+v %v", exit, err)
	}
	if err := r.Signal(s.context(), tranca.SIGKILL); err != nil {
		s.Error(err)
	}
	if exit := r.wait(); exit != signaled(9) {
		s.Errorf("%+v", exit)
	}
}

func testTerminalInvalid(s *suite) {
	b := s.create()
	for _, size := range []tranca.TerminalSize{{}, {Rows: 24}, {Columns: 80}} {
		_, err := b.Start(s.context(), tranca.Command{Args: s.command("exit", "0"), Terminal: &size})
		s.class("a terminal without a size", err, tranca.ErrInvalid)
	}
	b.must("exit", "0")
}

// testNoPorts: what the suite is told to lack is not there by half.
func testNoPorts(s *suite) {
	if !s.lacks(DialsPorts) {
		return
	}
	if d, ok := tranca.As[tranca.PortDialer](s.create().Sandbox); ok {
		_, err := d.Dial(s.context(), 80)
		s.class("a dial that the backend does not have", err, tranca.ErrUnsupported)
	}
}

// dial connects to a port. A backend that has the ability has it for every
// sandbox.
func (b *box) dial(port int) (tranca.PortConn, error) {
	b.Helper()
	d, ok := tranca.As[tranca.PortDialer](b.Sandbox)
	if !ok {
		b.Fatal("the sandbox is no PortDialer")
	}
	return d.Dial(b.context(), port)
}

func testPortEcho(s *suite) {
	b := s.create()
	b.start(s.command("echo", "8123")).says("ready")
	text := bytes.Repeat([]byte("0123456789abcdef"), 20_000)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			c, err := b.dial(8123)
			if err != nil {
				s.Error(err)
				return
			}
			defer c.Close()
			wrote := make(chan error, 1)
			go func() {
				_, err := c.Write(text)
				wrote <- errors.Join(err, c.CloseWrite())
			}()
			back, err := io.ReadAll(c)
			if werr := <-wrote; err != nil || werr != nil || !bytes.Equal(back, text) {
				s.Errorf("%d of %d bytes came back: %v %v", len(back), len(text), err, werr)
			}
		})
	}
	all.Wait()
}

func testPortRefused(s *suite) {
	b := s.create()
	_, err := b.dial(8124)
	s.class("a port where nothing listens", err, tranca.ErrNotFound)
	for _, port := range []int{-1, 0, 65536} {
		_, err := b.dial(port)
		s.class("no port", err, tranca.ErrInvalid)
	}
	if err := b.Close(s.context()); err != nil {
		s.Fatal(err)
	}
	_, err = b.dial(8124)
	s.class("a port of a sandbox that was closed", err, tranca.ErrGone, tranca.ErrClosed)
}

// testPortClose: the end of the program and of the sandbox end connections.
func testPortClose(s *suite) {
	b := s.create()
	r := b.start(s.command("echo", "8125"))
	r.says("ready")
	c, err := b.dial(8125)
	if err != nil {
		s.Fatal(err)
	}
	defer c.Close()
	if err := r.Signal(s.context(), tranca.SIGKILL); err != nil {
		s.Fatal(err)
	}
	r.wait()
	s.returns("reading from a program that has ended", func() { _, _ = io.ReadAll(c) })
	b.start(s.command("echo", "8126")).says("ready")
	again, err := b.dial(8126)
	if err != nil {
		s.Fatal(err)
	}
	defer again.Close()
	if err := b.Close(s.context()); err != nil {
		s.Fatal(err)
	}
	s.returns("reading from a sandbox that was closed", func() { _, _ = io.ReadAll(again) })
}

func (b *box) resumer() tranca.FileResumer {
	b.Helper()
	f, ok := tranca.As[tranca.FileResumer](b.Files())
	if !ok {
		b.Fatal("the files are no FileResumer")
	}
	return f
}

func testResume(s *suite) {
	b := s.create()
	for _, step := range []struct {
		text   string
		offset int64
		want   string
	}{
		{"0123456789", 0, "0123456789"}, {"abc", 10, "0123456789abc"}, {"X", 5, "01234X"}, {"", 3, "012"}, {"new", 0, "new"},
	} {
		n, err := b.resumer().WriteFrom(s.context(), "file", strings.NewReader(step.text), step.offset, 0o644)
		if err != nil || n != int64(len(step.text)) {
			s.Errorf("%q at %d: %d bytes, %v", step.text, step.offset, n, err)
		}
		b.reads("file", step.want)
	}
	if _, err := b.resumer().WriteFrom(s.context(), "file", io.MultiReader(strings.NewReader("part"), broken{}), 3, 0o644); err == nil {
		s.Error("a write whose reader broke is no error")
	}
	info, err := b.Files().Stat(s.context(), "file")
	if err != nil || info.Size < 3 || info.Size > 7 {
		s.Errorf("after it broke off it has %d bytes, %v", info.Size, err)
	}
}

// broken is a reader that fails.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("broken") }

func testResumeRefused(s *suite) {
	b := s.create()
	b.write("file", "text")
	if _, err := b.Files().MakeDir(s.context(), "folder"); err != nil {
		s.Fatal(err)
	}
	for path, offset := range map[string]int64{"file": 5, "missing": 1, "folder": 1, "./file": -1} {
		_, err := b.resumer().WriteFrom(s.context(), path, strings.NewReader("x"), offset, 0o644)
		s.class("resuming "+path, err, tranca.ErrInvalid)
	}
	b.reads("file", "text")
}

func testSymlink(s *suite) {
	b := s.create()
	l, ok := tranca.As[tranca.FileLinker](b.Files())
	if !ok {
		s.Fatal("the files are no FileLinker")
	}
	b.write("file", "text")
	for path, target := range map[string]string{"link": "file", "dangling": "/no/such", "loop": "loop"} {
		if err := l.Symlink(s.context(), target, path); err != nil {
			s.Errorf("%s: %v", path, err)
			continue
		}
		info, err := b.Files().Stat(s.context(), path)
		if err != nil || info.Type != tranca.FileSymlink || info.LinkTarget != target {
			s.Errorf("%s: %+v %v", path, info, err)
		}
	}
	b.reads("link", "text")
	s.class("a link over a file", l.Symlink(s.context(), "x", "file"), tranca.ErrExists)
	s.class("a link in no folder", l.Symlink(s.context(), "x", "no/such"), tranca.ErrNotFound)
}

func testNoFileAbilities(s *suite) {
	f := s.create().Files()
	if _, ok := tranca.As[tranca.FileResumer](f); ok && s.lacks(ResumesWrites) {
		s.Error("the files are a FileResumer, and said to be none")
	}
	if _, ok := tranca.As[tranca.FileLinker](f); ok && s.lacks(MakesLinks) {
		s.Error("the files are a FileLinker, and said to be none")
	}
}
