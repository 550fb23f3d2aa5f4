package client

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"tranca"
)

func TestAQuestionIsAskedAgain(t *testing.T) {
	w := start(t)
	if _, err := w.breaking(cut{answers: 1}, cut{answers: 30}).Info(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := w.breaking(cut{answers: 1}, cut{answers: 1}, cut{answers: 1}).Info(t.Context()); !errors.Is(err, tranca.ErrUnavailable) {
		t.Errorf("three times: %v", err)
	}
}

// TestWhatIsDoneOnceIsNotDoneTwice: the server has done it, and its answer is
// lost.
func TestWhatIsDoneOnceIsNotDoneTwice(t *testing.T) {
	w := start(t)
	s, err := w.breaking(cut{answers: 20}).Create(t.Context(), tranca.CreateRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(w.engine.Sessions()); n != 1 {
		t.Errorf("%d sandboxes were made", n)
	}
	if _, err := s.Files().Write(t.Context(), "f", strings.NewReader(""), 0o600); err != nil {
		t.Fatal(err)
	}
	c := w.breaking(cut{answers: 20})
	there, err := c.Sandbox(t.Context(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	before := w.engine.Stats()
	c = w.breaking(cut{answers: 20})
	there.c = c
	res, err := there.Run(t.Context(), tranca.Request{Code: "print out"})
	if err != nil || !strings.HasPrefix(string(res.Stdout), "out") {
		t.Fatalf("%+v, %v", res, err)
	}
	if after := w.engine.Stats(); total(after.Runs)-total(before.Runs) != 1 {
		t.Errorf("it ran %d times", total(after.Runs)-total(before.Runs))
	}
	if _, err := s.Process(t.Context(), "p2"); !errors.Is(err, tranca.ErrNotFound) {
		t.Errorf("a program was started: %v", err)
	}
	s.c = w.breaking(cut{answers: 20})
	if _, err := s.Start(t.Context(), tranca.StartRequest{Args: []string{"cat"}}); !errors.Is(err, tranca.ErrUnavailable) {
		t.Errorf("a start whose answer is lost: %v", err)
	}
}

func total[K comparable](m map[K]int64) (n int64) {
	for _, v := range m {
		n += v
	}
	return n
}

// TestOutputGoesOnWhereItWas over connections that break in the middle of it,
// in head, length and payload of frames.
func TestOutputGoesOnWhereItWas(t *testing.T) {
	const n = 1_000_000
	w := start(t)
	s := create(t, w.client())
	p := launch(t, s, tranca.StartRequest{Args: []string{"flood", "1000000"}})
	if _, err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.c = w.breaking(cut{answers: 300_000}, cut{answers: 5}, cut{answers: 280_001}, cut{answers: 270_002})
	if out, errs := follow(t, p, FollowOptions{}); len(out) != n || errs != "" {
		t.Errorf("%d bytes", len(out))
	}
	s.c = w.breaking(cut{answers: 300_000}, cut{answers: 280_001})
	if o, err := p.Output(t.Context()); err != nil || len(o.Stdout) != n {
		t.Errorf("%d bytes, %v", len(o.Stdout), err)
	}
	s.c = w.breaking(cut{answers: 5}, cut{answers: 5}, cut{answers: 5}, cut{answers: 5}, cut{answers: 5}, cut{answers: 5}, cut{answers: 5}, cut{answers: 5}, cut{answers: 5})
	f := p.Follow(FollowOptions{})
	defer f.Close()
	if _, err := f.Next(t.Context()); !errors.Is(err, tranca.ErrUnavailable) {
		t.Errorf("connections that bring nothing: %v", err)
	}
	s.c = w.client()
}

func random(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(b)
	return b
}

func TestTransfersGoOnWhereTheyWere(t *testing.T) {
	want := random(6 << 20)
	w := start(t)
	s := create(t, w.client())
	f := s.Files()
	s.c = w.breaking(cut{requests: 1 << 20}, cut{requests: 2<<20 + 1}, cut{requests: 700_000})
	if n, err := f.Write(t.Context(), "f", bytes.NewReader(want), 0o600); err != nil || n != int64(len(want)) {
		t.Fatalf("%d, %v", n, err)
	}
	s.c = w.breaking(cut{answers: 100}, cut{answers: 1 << 20}, cut{answers: 2<<20 + 1}, cut{answers: 300})
	if got := content(t, f, "f"); got != string(want) {
		t.Errorf("%d bytes came back of %d, or not the same", len(got), len(want))
	}
	s.c = w.breaking(cut{requests: 1 << 20})
	if _, err := f.Write(t.Context(), "g", io.MultiReader(bytes.NewReader(want)), 0o600); !errors.Is(err, tranca.ErrUnavailable) {
		t.Errorf("what can't be read again: %v", err)
	}
	s.c = w.breaking(cut{requests: 1 << 20})
	if n, err := (&files{s}).WriteFrom(t.Context(), "f", bytes.NewReader(want[1<<20:]), 1<<20, 0o600); err != nil || n != 5<<20 {
		t.Errorf("from an offset: %d, %v", n, err)
	}
	s.c = w.client()
	if got := content(t, f, "f"); got != string(want) {
		t.Errorf("%d bytes of %d, or not the same", len(got), len(want))
	}
}

// TestARunWhoseConnectionBreaks fails, and is ended on the server.
func TestARunWhoseConnectionBreaks(t *testing.T) {
	w := start(t)
	out := newBuffer()
	res, err := w.breaking(cut{answers: 5000}).Run(t.Context(), tranca.Request{Code: "print started\nsleep 0.2\nflood 100000", Stdin: strings.NewReader(""), Stdout: out})
	if !errors.Is(err, tranca.ErrUnavailable) || res != nil {
		t.Errorf("%+v, %v", res, err)
	}
	if !strings.HasPrefix(out.String(), "started") {
		t.Errorf("what came is lost: %q", out)
	}
}

func TestAServerThatIsGone(t *testing.T) {
	w := start(t)
	c := w.client(WithSocket(w.socket + "x"))
	_, run := c.Run(t.Context(), tranca.Request{Code: "print 1"})
	_, made := c.Create(t.Context(), tranca.CreateRequest{})
	for _, err := range []error{run, made} {
		if !errors.Is(err, tranca.ErrUnavailable) || !strings.Contains(err.Error(), "tranca serve") {
			t.Errorf("%v", err)
		}
	}
}
