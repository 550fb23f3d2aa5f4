package backendtest

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"tranca"
)

func streamCases() []testCase {
	return []testCase{
		{"Apart", testApart, nil},
		{"Input", testInput, nil},
		{"NoInput", testNoInput, nil},
		{"InputNeverEnds", testInputNeverEnds, nil},
		{"InputFails", testInputFails, nil},
		{"LargeEcho", testLargeEcho, nil},
		{"LargeOutput", testLargeOutput, nil},
		{"NoReader", testNoReader, nil},
		{"ReaderFails", testReaderFails, nil},
		{"ReaderHangs", testReaderHangs, nil},
		{"HeldOpen", testHeldOpen, nil},
	}
}

func testApart(s *suite) {
	r := s.create().start(s.command("print", "to stdout", "to stderr"))
	if exit := r.wait(); !exit.Success() || r.out.String() != "to stdout" || r.err.String() != "to stderr" {
		s.Errorf("%s, %q, %q", exit, r.out.String(), r.err.String())
	}
}

func withInput(in io.Reader) func(*tranca.Command) {
	return func(c *tranca.Command) { c.Stdin = in }
}

func testInput(s *suite) {
	text := "line\nno newline at the end \x00\xff"
	r := s.create().start(s.command("cat"), withInput(strings.NewReader(text)))
	if exit := r.wait(); !exit.Success() || r.out.String() != text {
		s.Errorf("%s, %q", exit, r.out.String())
	}
}

func testNoInput(s *suite) {
	if out := s.create().must("cat"); out != "" {
		s.Errorf("no input came as %q", out)
	}
}

func testInputNeverEnds(s *suite) {
	r := s.create().start(s.command("exit", "2"), withInput(newStuck(s)))
	if exit := r.wait(); exit != exited(2) {
		s.Errorf("with input that never comes: %+v", exit)
	}
}

// failing is a reader or writer that fails after so many bytes.
type failing struct{ left int }

var errFailing = errors.New("it fails")

func (f *failing) Read(p []byte) (int, error) {
	n := min(f.left, len(p))
	f.left -= n
	if n == 0 {
		return 0, errFailing
	}
	return n, nil
}

func (f *failing) Write(p []byte) (int, error) { return f.Read(p) }

func testInputFails(s *suite) {
	r := s.create().start(s.command("cat"), withInput(&failing{1000}))
	if exit := r.wait(); !exit.Success() || len(r.out.String()) != 1000 {
		s.Errorf("input that fails after 1000 bytes: %s, %d bytes came through", exit, len(r.out.String()))
	}
}

func testLargeEcho(s *suite) {
	text := bytes.Repeat([]byte("0123456789abcdef"), 8<<20/16)
	r := s.create().start(s.command("cat"), withInput(bytes.NewReader(text)))
	if exit := r.wait(); !exit.Success() || r.out.String() != string(text) {
		s.Errorf("%s, %d bytes of %d, or not the same", exit, len(r.out.String()), len(text))
	}
}

// slow counts bytes, and takes its time.
type slow struct{ n atomic.Int64 }

func (w *slow) Write(p []byte) (int, error) {
	if n := w.n.Add(int64(len(p))); n>>20 != (n-int64(len(p)))>>20 {
		time.Sleep(2 * time.Millisecond)
	}
	return len(p), nil
}

func testLargeOutput(s *suite) {
	const size = 65 << 20
	b := s.create()
	for _, stream := range []string{"stdout", "stderr"} {
		w := &slow{}
		r := b.start(s.command("flood", "68157440", stream), func(c *tranca.Command) {
			c.Stdout, c.Stderr = w, w
		})
		if exit := r.wait(); !exit.Success() || w.n.Load() != size {
			s.Errorf("%s: %s, %d bytes of %d", stream, exit, w.n.Load(), size)
		}
	}
}

func testNoReader(s *suite) {
	r := s.create().start(s.command("flood", "1000000"), func(c *tranca.Command) { c.Stdout, c.Stderr = nil, nil })
	if exit := r.wait(); !exit.Success() {
		s.Errorf("output that nobody wants: %+v", exit)
	}
}

func testReaderFails(s *suite) {
	r := s.create().start(s.command("flood", "3000000"), func(c *tranca.Command) { c.Stdout = &failing{1000} })
	if exit := r.wait(); !exit.Success() {
		s.Errorf("a reader that fails: %+v", exit)
	}
}

func testReaderHangs(s *suite) {
	b := s.create()
	b.start(s.command("flood", "3000000"), func(c *tranca.Command) { c.Stdout = newStuck(s) })
	s.returns("Kill with a reader that hangs", func() {
		if err := b.Kill(s.context()); err != nil {
			s.Error(err)
		}
	})
	s.returns("Close with a reader that hangs", func() {
		if err := b.Close(s.context()); err != nil {
			s.Error(err)
		}
	})
}

func testHeldOpen(s *suite) {
	r := s.create().start(s.command("hold", "3600"))
	if exit := r.wait(); exit != exited(0) || r.out.String() != "held" {
		s.Errorf("a descendant holds the output: %+v, %q", exit, r.out.String())
	}
}
