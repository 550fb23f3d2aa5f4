package backendtest

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"time"

	"tranca"
)

// context returns a context that ends long after every step should have.
func (s *suite) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), s.scale(60*time.Second))
	s.Cleanup(cancel)
	return ctx
}

// box is a sandbox under test.
type box struct {
	*suite
	tranca.Sandbox
}

// create makes a sandbox; change adjusts its policy.
func (s *suite) create(change ...func(*tranca.Policy)) *box {
	s.Helper()
	p := s.policy()
	for _, c := range change {
		c(&p)
	}
	sb, err := s.backend.Create(s.context(), tranca.Spec{ID: tranca.NewID(), Policy: p})
	if err != nil {
		s.Fatalf("create: %v", err)
	}
	s.Cleanup(func() {
		if err := sb.Close(s.context()); err != nil {
			s.Errorf("close: %v", err)
		}
	})
	return &box{s, sb}
}

// buffer is a writer that may be looked at while it is written to.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// running is a program under test with what it has written so far.
type running struct {
	*box
	tranca.Process
	out, err *buffer
}

// start starts a program; change adjusts the command.
func (b *box) start(argv []string, change ...func(*tranca.Command)) *running {
	b.Helper()
	r := &running{box: b, out: &buffer{}, err: &buffer{}}
	cmd := tranca.Command{Args: argv, Stdout: r.out, Stderr: r.err}
	for _, c := range change {
		c(&cmd)
	}
	p, err := b.Start(b.context(), cmd)
	if err != nil {
		b.Fatalf("start %q: %v", argv[max(0, len(argv)-2):], err)
	}
	r.Process = p
	return r
}

// wait waits for the end.
func (r *running) wait() tranca.Exit {
	r.Helper()
	exit, err := r.Wait(r.context())
	if err != nil {
		r.Fatalf("wait: %v (stderr %q)", err, r.err.String())
	}
	return exit
}

// says waits until the program has written a text.
func (r *running) says(text string) {
	r.Helper()
	r.eventually("the program says "+text, func() bool { return strings.Contains(r.out.String(), text) })
}

// run runs a program to its end.
func (b *box) run(program string, args ...string) (exit tranca.Exit, stdout string) {
	b.Helper()
	r := b.start(b.command(program, args...))
	exit = r.wait()
	if text := r.err.String(); text != "" && program != "print" {
		b.Logf("%s wrote to stderr: %s", program, text)
	}
	return exit, r.out.String()
}

// must runs a program that ends well and returns what it wrote.
func (b *box) must(program string, args ...string) string {
	b.Helper()
	exit, out := b.run(program, args...)
	if !exit.Success() {
		b.Fatalf("%s %q: %s", program, args, exit)
	}
	return out
}

// eventually waits until something is so.
func (s *suite) eventually(what string, so func() bool) {
	s.Helper()
	for end := time.Now().Add(s.scale(30 * time.Second)); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			s.Fatalf("it never came true that %s", what)
		}
	}
}

// returns fails the test where f does not return in time.
func (s *suite) returns(what string, f func()) {
	s.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(s.scale(30 * time.Second)):
		s.Fatalf("%s does not return", what)
	}
}

// exited is the end of a program that ended by itself.
func exited(code int) tranca.Exit { return tranca.Exit{Code: code, Reason: tranca.EndExited} }

// signaled is the end of a program that a signal ended.
func signaled(sig tranca.Signal) tranca.Exit {
	return tranca.Exit{Code: -1, Signal: sig, Reason: tranca.EndSignaled}
}

// stuck is a reader or writer that blocks until it is let go.
type stuck struct{ let chan struct{} }

func newStuck(s *suite) *stuck {
	st := &stuck{make(chan struct{})}
	s.Cleanup(func() { close(st.let) })
	return st
}

func (s *stuck) Read([]byte) (int, error)    { <-s.let; return 0, io.EOF }
func (s *stuck) Write(p []byte) (int, error) { <-s.let; return len(p), nil }
