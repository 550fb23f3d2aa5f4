package engine_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tranca"
	"tranca/internal/backend/fake"
	"tranca/internal/engine"
)

func itoa(n int) string { return strconv.Itoa(n) }

// TestRunBesideAProcess: a run neither ends nor waits for what was started, and
// says that the counters are those of both.
func TestRunBesideAProcess(t *testing.T) {
	w := setup(t, fake.Options{}, nil)
	s := openSession(t, w, tranca.Narrowing{})
	p := start(t, s, words("deaf"))
	says(t, p, "deaf")
	for _, req := range []tranca.Request{command("print", "x"), command("sleep", "60")} {
		req.Narrow.Wall = 100 * time.Millisecond
		res := in(t, s, req)
		if !slices.ContainsFunc(res.Notes, func(n string) bool { return strings.Contains(n, "other programs") }) {
			t.Errorf("%q", res.Notes)
		}
		if want := req.Command[0] == "sleep"; want != (res.Exit.Reason == tranca.EndWall) {
			t.Errorf("%+v", res.Exit)
		}
	}
	if p.Info().Exit != nil {
		t.Error("the process was ended by a run")
	}
	if err := p.Signal(t.Context(), tranca.SIGKILL, false); err != nil {
		t.Error(err)
	}
	ends(t, p, ended(tranca.EndSignaled))
	if res := in(t, s, command("exit")); len(res.Notes) != 1 {
		t.Errorf("%q", res.Notes)
	}
}

// TestWhatIsLeftBesideOthers, by a run or by a program whose time was over, is
// killed when nothing else runs any more.
func TestWhatIsLeftBesideOthers(t *testing.T) {
	w := setup(t, fake.Options{}, nil)
	for name, leave := range map[string]func(*engine.Session){
		"run": func(s *engine.Session) { in(t, s, command("beat", "heart")) },
		"process": func(s *engine.Session) {
			q := start(t, s, tranca.StartRequest{Args: []string{"beat", "heart", "60"}, Wall: 100 * time.Millisecond})
			ends(t, q, ended(tranca.EndWall))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := opens(t, w, tranca.CreateRequest{})
			p := start(t, s, tranca.StartRequest{Args: []string{"cat"}, Stdin: true})
			leave(s)
			if err := p.CloseStdin(t.Context()); err != nil {
				t.Fatal(err)
			}
			ends(t, p, exited(0))
			before := beats(t, s)
			time.Sleep(50 * time.Millisecond)
			if after := beats(t, s); after != before {
				t.Errorf("it beats: %q, %q", before, after)
			}
		})
	}
}

// beats is what the program "beat" has written.
func beats(t *testing.T, s *engine.Session) string {
	t.Helper()
	r, err := s.Files().Read(t.Context(), "heart", 0)
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

// TestUnstoppableBesideOthers: a program that can't be ended while others run
// takes the sandbox with it, and the session says why.
func TestUnstoppableBesideOthers(t *testing.T) {
	w := setup(t, fake.Options{SignalErr: func() error { return errors.New("the agent does not answer") }}, nil)
	for name, stop := range map[string]func(*engine.Session){
		"run": func(s *engine.Session) {
			req := command("sleep", "60")
			req.Narrow.Wall = 20 * time.Millisecond
			if res := in(t, s, req); res.Exit.Reason != tranca.EndError {
				t.Errorf("%+v", res.Exit)
			}
		},
		"process": func(s *engine.Session) {
			start(t, s, tranca.StartRequest{Args: []string{"deaf"}, Wall: 20 * time.Millisecond})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := opens(t, w, tranca.CreateRequest{})
			p := start(t, s, words("deaf"))
			stop(s)
			gone(t, w, s, "could not be stopped: the agent does not answer")
			if exit, err := p.Wait(t.Context()); err == nil && exit.Reason == tranca.EndExited {
				t.Errorf("%+v, %v", exit, err)
			}
		})
	}
}

// TestCeilingHoldsOverAll: a limit that one program exceeds ends all.
func TestCeilingHoldsOverAll(t *testing.T) {
	w := setup(t, fake.Options{}, nil)
	s := openSession(t, w, tranca.Narrowing{})
	p := start(t, s, words("sleep", "60"))
	if res := in(t, s, command("alloc", "300000000")); res.Exit.Reason != tranca.EndMemory {
		t.Errorf("%+v", res.Exit)
	}
	ends(t, p, ended(tranca.EndMemory))
	if !in(t, s, command("exit")).Exit.Success() {
		t.Error("the session can't be used any more")
	}
}

func TestSessionEnvironment(t *testing.T) {
	w := setup(t, fake.Options{}, func(c *engine.Config) { c.Policy.Env = map[string]string{"FIXED": "1"} })
	s := openSession(t, w, tranca.Narrowing{})
	if err := s.SetEnv(map[string]string{"A": "1", "B": "2"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.SetEnv(map[string]string{"C": "3"}, []string{"A", "nothing"}); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"FIXED", "A=B", ""} {
		if err := s.SetEnv(map[string]string{bad: "2"}, nil); !errors.Is(err, tranca.ErrRefused) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	req := command("env")
	req.Narrow.Env = map[string]string{"B": "mine"}
	check := func(env string, want ...string) {
		t.Helper()
		got := strings.Split(env, "\x00")
		for _, line := range append(want, "FIXED=1", "C=3") {
			if !slices.Contains(got, line) {
				t.Errorf("%q is not in %q", line, got)
			}
		}
		if slices.Contains(got, "A=1") {
			t.Errorf("A is left: %q", got)
		}
	}
	check(string(in(t, s, req).Stdout), "B=mine")
	p := start(t, s, words("env"))
	ends(t, p, exited(0))
	out, _, _ := output(t, p, engine.FollowOptions{})
	check(out, "B=2")
}

func TestProcessesEndWithTheSession(t *testing.T) {
	w := setup(t, fake.Options{}, nil)
	s := openSession(t, w, tranca.Narrowing{})
	p := start(t, s, words("deaf"))
	says(t, p, "deaf")
	f := p.Follow(engine.FollowOptions{StdoutFrom: 2})
	defer f.Close()
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if exit, err := p.Wait(t.Context()); err != nil || exit.Reason != tranca.EndClosed {
		t.Errorf("%+v, %v", exit, err)
	}
	if c, err := f.Next(t.Context()); err != nil || string(c.Data) != "af" {
		t.Errorf("%q, %v", c.Data, err)
	}
	if _, err := f.Next(t.Context()); err != io.EOF {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"start":  second(s.Start(t.Context(), words("exit"))),
		"run":    second(s.Run(t.Context(), command("exit"))),
		"env":    s.SetEnv(nil, nil),
		"stat":   second(s.Files().Stat(t.Context(), "/")),
		"dial":   second(s.Dial(t.Context(), 80)),
		"find":   second(s.Process("p1")),
		"signal": p.Signal(t.Context(), tranca.SIGKILL, false),
		"engine": second(w.Session(t.Context(), s.ID())),
		"keep":   second(s.KeepAlive(0)),
	} {
		if !errors.Is(err, tranca.ErrGone) || !strings.Contains(err.Error(), "it was destroyed") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestSessionFilesAndPorts(t *testing.T) {
	w := setup(t, fake.Options{}, nil)
	s := openSession(t, w, tranca.Narrowing{})
	f := s.Files()
	if _, err := f.Write(t.Context(), "a", strings.NewReader("hello, "), 0o644); err != nil {
		t.Fatal(err)
	}
	r, ok := tranca.As[tranca.FileResumer](f)
	if !ok {
		t.Fatal("no writes can be resumed")
	}
	if n, err := r.WriteFrom(t.Context(), "a", strings.NewReader("world"), 7, 0o644); n != 5 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	l, ok := tranca.As[tranca.FileLinker](f)
	if !ok {
		t.Fatal("no links can be made")
	}
	if err := l.Symlink(t.Context(), "a", "b"); err != nil {
		t.Error(err)
	}
	got, err := f.Read(t.Context(), "b", 0)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(got); string(b) != "hello, world" || err != nil || got.Close() != nil {
		t.Errorf("%q, %v", b, err)
	}
	if _, ok := tranca.As[tranca.FileWatcher](f); ok {
		t.Error("a watcher where the backend has none")
	}
	if _, err := s.Dial(t.Context(), 8080); !errors.Is(err, tranca.ErrNotFound) {
		t.Error(err)
	}
	says(t, start(t, s, words("echo", "8080")), "ready")
	c, err := s.Dial(t.Context(), 8080)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, "ping"); err != nil {
		t.Error(err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Error(err)
	}
	if b, err := io.ReadAll(c); string(b) != "ping" || err != nil || c.Close() != nil {
		t.Errorf("%q, %v", b, err)
	}
}

// TestManyThingsAtOnce starts, runs, follows and ends at random, and closes
// everything in the middle of it.
func TestManyThingsAtOnce(t *testing.T) {
	w := setup(t, fake.Options{}, func(c *engine.Config) { c.MaxSessionRuns = 3 })
	s := openSession(t, w, tranca.Narrowing{})
	var done []chan struct{}
	for i := range 24 {
		c := make(chan struct{})
		done = append(done, c)
		go func() {
			defer close(c)
			for n := 0; ; n++ {
				if err := something(s, i+n); err != nil {
					if !errors.Is(err, tranca.ErrGone) {
						t.Error(err)
					}
					return
				}
			}
		}()
	}
	time.Sleep(300 * time.Millisecond)
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	for _, c := range done {
		<-c
	}
}

func something(s *engine.Session, n int) error {
	ctx := context.Background()
	if n%3 == 0 {
		res, err := s.Run(ctx, command("print", "x"))
		if err == nil && res.Exit.Reason != tranca.EndClosed && string(res.Stdout) != "x" {
			return errors.New("a run wrote " + string(res.Stdout) + " and ended by " + res.Exit.String())
		}
		return err
	}
	p, err := s.Start(ctx, tranca.StartRequest{Args: []string{"cat"}, Stdin: true, Wall: time.Duration(n%5) * time.Millisecond})
	if err != nil {
		return err
	}
	f := p.Follow(engine.FollowOptions{})
	defer f.Close()
	if err := errors.Join(p.Write(ctx, []byte("x")), p.CloseStdin(ctx)); err != nil && !errors.Is(err, tranca.ErrGone) {
		return err
	}
	if _, err := p.Wait(ctx); err != nil {
		return err
	}
	return nil
}
