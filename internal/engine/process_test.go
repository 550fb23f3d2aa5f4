package engine_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"tranca"
	"tranca/internal/backend/fake"
	"tranca/internal/engine"
)

func start(t *testing.T, s *engine.Session, r tranca.StartRequest) *engine.Process {
	t.Helper()
	p, err := s.Start(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func words(args ...string) tranca.StartRequest { return tranca.StartRequest{Args: args} }

// output follows a process from the beginning to its end.
func output(t *testing.T, p *engine.Process, from engine.FollowOptions) (out, err string, dropped int64) {
	t.Helper()
	f := p.Follow(from)
	defer f.Close()
	var text [2]bytes.Buffer
	for {
		c, e := f.Next(context.Background())
		if e == io.EOF {
			return text[0].String(), text[1].String(), dropped
		}
		if e != nil {
			t.Fatal(e)
		}
		dropped += c.Dropped
		if c.Stderr {
			text[1].Write(c.Data)
		} else {
			text[0].Write(c.Data)
		}
	}
}

// says waits until a process has written something.
func says(t *testing.T, p *engine.Process, want string) {
	t.Helper()
	f := p.Follow(engine.FollowOptions{})
	defer f.Close()
	var got string
	for !strings.Contains(got, want) {
		c, err := f.Next(t.Context())
		if err != nil {
			t.Fatalf("%q, then %v; want %q", got, err, want)
		}
		got += string(c.Data)
	}
}

func ends(t *testing.T, p *engine.Process, want tranca.Exit) {
	t.Helper()
	if exit, err := p.Wait(t.Context()); err != nil || exit != want {
		t.Errorf("%+v, %v; want %+v", exit, err, want)
	}
}

func exited(code int) tranca.Exit { return tranca.Exit{Code: code, Reason: tranca.EndExited} }

func ended(reason tranca.Reason) tranca.Exit {
	return tranca.Exit{Code: -1, Signal: tranca.SIGKILL, Reason: reason}
}

func TestProcessIsReplayed(t *testing.T) {
	w := setup(t, fake.Options{}, nil)
	s := openSession(t, w, tranca.Narrowing{})
	p := start(t, s, words("print", "hello", "oops"))
	ends(t, p, exited(0))
	for range 3 {
		if out, err, dropped := output(t, p, engine.FollowOptions{}); out != "hello" || err != "oops" || dropped != 0 {
			t.Errorf("%q, %q, %d dropped", out, err, dropped)
		}
	}
	if out, err, _ := output(t, p, engine.FollowOptions{StdoutFrom: 3, StderrFrom: 99}); out != "lo" || err != "" {
		t.Errorf("%q, %q", out, err)
	}
	info := p.Info()
	if info.ID != "p1" || info.Exit == nil || *info.Exit != exited(0) || info.Ended.IsZero() || info.Stdout.Written != 5 {
		t.Errorf("%+v", info)
	}
}

// TestFollowersLoseNothing: many readers at once, each gets far more than is
// kept, in order.
func TestFollowersLoseNothing(t *testing.T) {
	w := setup(t, fake.Options{}, func(c *engine.Config) { c.Policy.Limits.Output.Size = 64 << 10 })
	s := openSession(t, w, tranca.Narrowing{})
	p := start(t, s, tranca.StartRequest{Args: []string{"cat"}, Stdin: true})
	block := strings.Repeat("0123456789abcdef", 4<<10)
	followers := make([]*engine.Follower, 4)
	for i := range followers {
		followers[i] = p.Follow(engine.FollowOptions{})
	}
	var all sync.WaitGroup
	for _, f := range followers {
		all.Go(func() {
			defer f.Close()
			var n int64
			for {
				c, err := f.Next(context.Background())
				if err == io.EOF {
					break
				}
				if err != nil || c.Dropped != 0 || c.Offset != n {
					t.Errorf("%v, %d dropped, offset %d after %d bytes", err, c.Dropped, c.Offset, n)
					return
				}
				for i, b := range c.Data {
					if b != "0123456789abcdef"[(n+int64(i))%16] {
						t.Errorf("another byte at %d", n+int64(i))
						return
					}
				}
				n += int64(len(c.Data))
			}
			if n != 40*64<<10 {
				t.Errorf("%d bytes", n)
			}
		})
	}
	for range 40 {
		if err := p.Write(t.Context(), []byte(block)); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.CloseStdin(t.Context()); err != nil {
		t.Error(err)
	}
	ends(t, p, exited(0))
	all.Wait()
}

func TestWithoutAFollowerNothingBlocks(t *testing.T) {
	w := setup(t, fake.Options{}, func(c *engine.Config) { c.Policy.Limits.Output.Size = 4096 })
	s := openSession(t, w, tranca.Narrowing{})
	p := start(t, s, words("flood", "3000000"))
	ends(t, p, exited(0))
	out, _, dropped := output(t, p, engine.FollowOptions{})
	if len(out) != 4096 || dropped != 3000000-4096 {
		t.Errorf("%d bytes, %d dropped", len(out), dropped)
	}
}

// TestTheFirstFollowerIsWaitedFor: who starts a program and then reads it loses
// nothing of what it wrote in between.
func TestTheFirstFollowerIsWaitedFor(t *testing.T) {
	w := setup(t, fake.Options{}, func(c *engine.Config) { c.Policy.Limits.Output.Size = 4096 })
	s := openSession(t, w, tranca.Narrowing{})
	p := start(t, s, words("flood", "3000000"))
	time.Sleep(100 * time.Millisecond)
	out, _, dropped := output(t, p, engine.FollowOptions{})
	if len(out) != 3000000 || dropped != 0 {
		t.Errorf("%d bytes, %d dropped", len(out), dropped)
	}
	ends(t, p, exited(0))
}

func TestFollowerThatTakesNothingIsLeftBehind(t *testing.T) {
	w := setup(t, fake.Options{}, func(c *engine.Config) {
		c.Policy.Limits.Output.Size = 4096
		c.FollowGrace = 50 * time.Millisecond
	})
	s := openSession(t, w, tranca.Narrowing{})
	p := start(t, s, tranca.StartRequest{Args: []string{"cat"}, Stdin: true})
	f := p.Follow(engine.FollowOptions{})
	defer f.Close()
	for range 10 {
		if err := p.Write(t.Context(), bytes.Repeat([]byte("x"), 100<<10)); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.CloseStdin(t.Context()); err != nil {
		t.Error(err)
	}
	ends(t, p, exited(0))
	var dropped, got int64
	for {
		c, err := f.Next(t.Context())
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		dropped += c.Dropped
		got += int64(len(c.Data))
	}
	if dropped+got != 1000<<10 || got != 4096 {
		t.Errorf("%d dropped, %d read", dropped, got)
	}
	f.Close()
	if _, err := f.Next(t.Context()); !errors.Is(err, tranca.ErrClosed) {
		t.Error(err)
	}
}

// TestStdin: many writers at once, and no write is mixed with another.
func TestStdinIsNeverMixed(t *testing.T) {
	w := setup(t, fake.Options{}, nil)
	s := openSession(t, w, tranca.Narrowing{})
	p := start(t, s, tranca.StartRequest{Args: []string{"cat"}, Stdin: true})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if err := p.Write(t.Context(), bytes.Repeat([]byte{byte('a' + i)}, 70_000)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for range 2 {
		if err := p.CloseStdin(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := p.Write(t.Context(), []byte("late")); !errors.Is(err, tranca.ErrClosed) && !errors.Is(err, tranca.ErrGone) {
		t.Error(err)
	}
	ends(t, p, exited(0))
	if err := p.Write(t.Context(), []byte("late")); !errors.Is(err, tranca.ErrGone) {
		t.Error(err)
	}
	out, _, _ := output(t, p, engine.FollowOptions{})
	if len(out) != 8*70_000 {
		t.Fatalf("%d bytes", len(out))
	}
	for i := 0; i < len(out); i += 70_000 {
		if strings.Count(out[i:i+70_000], out[i:i+1]) != 70_000 {
			t.Fatalf("writes are mixed at %d", i)
		}
	}
}

func TestStdinOfOneThatDoesNotRead(t *testing.T) {
	w := setup(t, fake.Options{}, nil)
	s := openSession(t, w, tranca.Narrowing{})
	if err := start(t, s, words("sleep", "60")).Write(t.Context(), []byte("x")); !errors.Is(err, tranca.ErrInvalid) {
		t.Errorf("no input: %v", err)
	}
	p := start(t, s, tranca.StartRequest{Args: []string{"sleep", "60"}, Stdin: true})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := p.Write(ctx, []byte("nobody reads")); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	wrote := make(chan error, 1)
	go func() { wrote <- p.Write(t.Context(), []byte("nobody reads")) }()
	time.Sleep(20 * time.Millisecond)
	if err := p.Signal(t.Context(), tranca.SIGTERM, true); err != nil {
		t.Error(err)
	}
	if err := <-wrote; !errors.Is(err, tranca.ErrGone) {
		t.Error(err)
	}
	ends(t, p, tranca.Exit{Code: -1, Signal: tranca.SIGTERM, Reason: tranca.EndSignaled})
	if err := p.Signal(t.Context(), tranca.SIGTERM, false); !errors.Is(err, tranca.ErrGone) {
		t.Error(err)
	}
}

func TestTerminal(t *testing.T) {
	w := setup(t, fake.Options{}, nil)
	s := openSession(t, w, tranca.Narrowing{})
	p := start(t, s, tranca.StartRequest{Args: []string{"size"}, Terminal: &tranca.TerminalSize{Rows: 24, Columns: 80}})
	says(t, p, "24x80")
	if err := p.Resize(t.Context(), tranca.TerminalSize{Rows: 50, Columns: 132}); err != nil {
		t.Error(err)
	}
	says(t, p, "50x132")
	if got := p.Info().Terminal; got == nil || got.Rows != 50 {
		t.Errorf("%+v", got)
	}
	if err := p.Resize(t.Context(), tranca.TerminalSize{Rows: 50}); !errors.Is(err, tranca.ErrInvalid) {
		t.Error(err)
	}
	plain := start(t, s, words("sleep", "60"))
	if err := plain.Resize(t.Context(), tranca.TerminalSize{Rows: 1, Columns: 1}); !errors.Is(err, tranca.ErrUnsupported) {
		t.Error(err)
	}
}

func TestProcessWall(t *testing.T) {
	w := setup(t, fake.Options{}, nil)
	s := openSession(t, w, tranca.Narrowing{})
	beside := start(t, s, words("deaf"))
	says(t, beside, "deaf")
	p := start(t, s, tranca.StartRequest{Args: []string{"deaf"}, Wall: 30 * time.Millisecond})
	ends(t, p, ended(tranca.EndWall))
	if beside.Info().Exit != nil {
		t.Error("the one beside it has ended too")
	}
	if err := beside.Signal(t.Context(), tranca.SIGKILL, false); err != nil {
		t.Error(err)
	}
	ends(t, beside, ended(tranca.EndSignaled))
	alone := start(t, s, tranca.StartRequest{Args: []string{"deaf"}, Wall: 30 * time.Millisecond})
	ends(t, alone, ended(tranca.EndWall))
	if !in(t, s, command("exit")).Exit.Success() {
		t.Error("the session can't be used any more")
	}
}

func TestFindingProcesses(t *testing.T) {
	w := setup(t, fake.Options{}, nil)
	s := openSession(t, w, tranca.Narrowing{})
	tagged := func(tag string) *engine.Process {
		return start(t, s, tranca.StartRequest{Args: []string{"sleep", "60"}, Tag: tag})
	}
	other, first, second := tagged("db"), tagged("web"), tagged("web")
	pid := func(p *engine.Process) string { return itoa(p.Info().PID) }
	for selector, want := range map[string]*engine.Process{
		"p1": other, "p2": first, "tag=web": first, "tag=db": other, pid(second): second,
	} {
		if got, err := s.Process(selector); got != want || err != nil {
			t.Errorf("%s: %v, %v", selector, got, err)
		}
	}
	if err := first.Signal(t.Context(), tranca.SIGKILL, false); err != nil {
		t.Fatal(err)
	}
	ends(t, first, ended(tranca.EndSignaled))
	if got, err := s.Process("tag=web"); got != second || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	if got := s.Processes("web"); len(got) != 2 || got[0].ID != "p2" || got[1].ID != "p3" {
		t.Errorf("%+v", got)
	}
	for selector, want := range map[string]error{
		"p9": tranca.ErrNotFound, "p0": tranca.ErrNotFound, "p01": tranca.ErrNotFound, "": tranca.ErrNotFound,
		"tag=": tranca.ErrNotFound, "../p1": tranca.ErrNotFound, "-1": tranca.ErrNotFound, pid(first): tranca.ErrGone,
	} {
		if _, err := s.Process(selector); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", selector, err, want)
		}
	}
	if info := s.Info(); info.Processes != 2 {
		t.Errorf("%d run", info.Processes)
	}
}

// TestEndedProcessesAreForgotten: the last 64 are kept, and of their output no
// more than a MiB.
func TestEndedProcessesAreForgotten(t *testing.T) {
	w := setup(t, fake.Options{}, nil)
	s := openSession(t, w, tranca.Narrowing{})
	for range 70 {
		p := start(t, s, words("flood", "100000"))
		ends(t, p, exited(0))
	}
	all := s.Processes("")
	var kept int64
	for _, p := range all {
		kept += p.Stdout.Written - p.Stdout.Dropped
	}
	if len(all) != 64 || all[0].ID != "p7" || kept > 1<<20 || kept < 900_000 {
		t.Errorf("%d are kept from %s on, %d bytes", len(all), all[0].ID, kept)
	}
	if _, err := s.Process("p3"); !errors.Is(err, tranca.ErrGone) {
		t.Error(err)
	}
	if p, err := s.Process("p7"); err != nil {
		t.Error(err)
	} else if out, _, dropped := output(t, p, engine.FollowOptions{}); out != "" || dropped != 100000 {
		t.Errorf("%d bytes, %d dropped", len(out), dropped)
	}
}

// TestOutputEndsAProcess where the policy says so, and only there.
func TestOutputEndsAProcess(t *testing.T) {
	for _, kill := range []bool{true, false} {
		w := setup(t, fake.Options{}, func(c *engine.Config) {
			c.Policy.Limits.Output.Size = 10_000
			if kill {
				c.Policy.Limits.Output.OnExceed = tranca.ExceedKill
			}
		})
		s := openSession(t, w, tranca.Narrowing{})
		ends(t, start(t, s, words("flood", "10000")), exited(0))
		exit, err := start(t, s, words("flood", "10000000", "stderr")).Wait(t.Context())
		want := tranca.EndExited
		if kill {
			want = tranca.EndOutput
		}
		if err != nil || exit.Reason != want {
			t.Errorf("%+v, %v; want %s", exit, err, want)
		}
	}
}

// TestArgumentsAreForgotten: of programs that have ended no more than a MiB of
// arguments is kept, but the last one in any case.
func TestArgumentsAreForgotten(t *testing.T) {
	w := setup(t, fake.Options{}, nil)
	s := openSession(t, w, tranca.Narrowing{})
	large := strings.Repeat("x", 100<<10)
	for range 4 {
		ends(t, start(t, s, words("exit", "0", large, large, large, large)), exited(0))
	}
	ends(t, start(t, s, words("exit", "0")), exited(0))
	if all := s.Processes(""); len(all) != 3 || all[0].ID != "p3" {
		t.Errorf("%d are kept", len(all))
	}
}

func TestBadStarts(t *testing.T) {
	w := setup(t, fake.Options{}, func(c *engine.Config) {
		c.MaxProcesses = 2
		c.Policy.Env = map[string]string{"FIXED": "1"}
	})
	s := openSession(t, w, tranca.Narrowing{})
	for name, tc := range map[string]struct {
		r    tranca.StartRequest
		want error
	}{
		"nothing":         {tranca.StartRequest{}, tranca.ErrInvalid},
		"NUL":             {words("print", "a\x00"), tranca.ErrInvalid},
		"no program":      {words("/nowhere"), tranca.ErrNotFound},
		"negative wall":   {tranca.StartRequest{Args: []string{"exit"}, Wall: -1}, tranca.ErrInvalid},
		"long tag":        {tranca.StartRequest{Args: []string{"exit"}, Tag: strings.Repeat("x", 257)}, tranca.ErrInvalid},
		"tag of controls": {tranca.StartRequest{Args: []string{"exit"}, Tag: "a\nb"}, tranca.ErrInvalid},
		"tag of bytes":    {tranca.StartRequest{Args: []string{"exit"}, Tag: "a\xff"}, tranca.ErrInvalid},
		"no columns":      {tranca.StartRequest{Args: []string{"exit"}, Terminal: &tranca.TerminalSize{Rows: 1}}, tranca.ErrInvalid},
		"fixed variable":  {tranca.StartRequest{Args: []string{"exit"}, Env: map[string]string{"FIXED": "2"}}, tranca.ErrRefused},
		"no folder":       {tranca.StartRequest{Args: []string{"exit"}, Dir: "/nowhere"}, tranca.ErrNotFound},
	} {
		if p, err := s.Start(t.Context(), tc.r); p != nil || !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
	start(t, s, words("sleep", "60"))
	start(t, s, words("sleep", "60"))
	if _, err := s.Start(t.Context(), words("exit")); !errors.Is(err, tranca.ErrBusy) {
		t.Errorf("a third of two: %v", err)
	}
	if got := s.Info().Processes; got != 2 {
		t.Errorf("%d run", got)
	}
}
