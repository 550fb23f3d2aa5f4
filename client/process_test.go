package client

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"tranca"
)

func launch(t *testing.T, s *Sandbox, o tranca.StartRequest) *Process {
	t.Helper()
	p, err := s.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// follow reads all output of a process.
func follow(t *testing.T, p *Process, o FollowOptions) (stdout, stderr string) {
	t.Helper()
	f := p.Follow(o)
	defer f.Close()
	at := [2]int64{o.StdoutFrom, o.StderrFrom}
	var out [2]strings.Builder
	for {
		c, err := f.Next(t.Context())
		if err == io.EOF {
			return out[0].String(), out[1].String()
		}
		if err != nil {
			t.Fatal(err)
		}
		which := 0
		if c.Stderr {
			which = 1
		}
		if c.Dropped != 0 || c.Offset != at[which] {
			t.Fatalf("at %d: %d dropped, want %d", c.Offset, c.Dropped, at[which])
		}
		at[which] += int64(len(c.Data))
		out[which].Write(c.Data)
	}
}

func TestProcesses(t *testing.T) {
	start(t).each(func(t *testing.T, c *Client) {
		ctx, s := t.Context(), create(t, c)
		p := launch(t, s, tranca.StartRequest{Args: []string{"cat"}, Tag: "a b", Stdin: true})
		for _, selector := range []string{string(p.ID()), "tag=a b"} {
			if found, err := s.Process(ctx, selector); err != nil || found.ID() != p.ID() {
				t.Errorf("%s: %v", selector, err)
			}
		}
		if all, err := s.Processes(ctx, "a b"); err != nil || len(all) != 1 || all[0].Args[0] != "cat" {
			t.Errorf("%+v, %v", all, err)
		}
		if all, err := s.Processes(ctx, "other"); err != nil || len(all) != 0 {
			t.Errorf("%+v, %v", all, err)
		}
		if err := p.Write(ctx, []byte("one ")); err != nil {
			t.Fatal(err)
		}
		in := p.Stdin(ctx)
		for _, text := range []string{"two ", "three"} {
			if _, err := io.WriteString(in, text); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(in.Close(), p.CloseStdin(ctx)); err != nil {
			t.Fatal(err)
		}
		if exit, err := p.Wait(ctx); err != nil || exit != exited(0) {
			t.Errorf("%+v, %v", exit, err)
		}
		if out, errs := follow(t, p, FollowOptions{}); out != "one two three" || errs != "" {
			t.Errorf("%q %q", out, errs)
		}
		if out, _ := follow(t, p, FollowOptions{StdoutFrom: 4}); out != "two three" {
			t.Errorf("from 4: %q", out)
		}
		o, err := p.Output(ctx)
		if err != nil || string(o.Stdout) != "one two three" || o.StdoutDropped != 0 {
			t.Errorf("%+v, %v", o, err)
		}
		if err := p.Write(ctx, []byte("more")); !errors.Is(err, tranca.ErrClosed) && !errors.Is(err, tranca.ErrGone) {
			t.Errorf("input after the end: %v", err)
		}
		if info, err := p.Refresh(ctx); err != nil || info.Exit == nil || info.Stdout.Written != 13 {
			t.Errorf("%+v, %v", info, err)
		}
	})
}

func TestSignalsAndWaits(t *testing.T) {
	start(t).each(func(t *testing.T, c *Client) {
		s := create(t, c)
		p := launch(t, s, tranca.StartRequest{Args: []string{"sleep", "3600"}})
		short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := p.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a wait that is given up: %v", err)
		}
		if err := p.Write(t.Context(), []byte("x")); !errors.Is(err, tranca.ErrInvalid) {
			t.Errorf("input for a program without one: %v", err)
		}
		if err := p.Resize(t.Context(), tranca.TerminalSize{Rows: 1, Columns: 1}); !errors.Is(err, tranca.ErrUnsupported) {
			t.Errorf("a size for a program without a terminal: %v", err)
		}
		waited := make(chan tranca.Exit)
		go func() {
			exit, err := p.Wait(t.Context())
			if err != nil {
				t.Error(err)
			}
			waited <- exit
		}()
		if err := p.Signal(t.Context(), tranca.SIGTERM, false); err != nil {
			t.Fatal(err)
		}
		wantExit(t, <-waited, tranca.Exit{Code: -1, Signal: tranca.SIGTERM, Reason: tranca.EndSignaled})
		if err := p.Signal(t.Context(), tranca.SIGTERM, true); !errors.Is(err, tranca.ErrGone) {
			t.Errorf("a signal after the end: %v", err)
		}
	})
}

func TestTerminal(t *testing.T) {
	start(t).each(func(t *testing.T, c *Client) {
		s := create(t, c)
		p := launch(t, s, tranca.StartRequest{Args: []string{"size"}, Terminal: &tranca.TerminalSize{Rows: 24, Columns: 80}})
		f := p.Follow(FollowOptions{})
		defer f.Close()
		for _, want := range []string{"24x80\n", "50x132\n"} {
			if c, err := f.Next(t.Context()); err != nil || string(c.Data) != want {
				t.Errorf("%q, %v", c.Data, err)
			}
			if err := p.Resize(t.Context(), tranca.TerminalSize{Rows: 50, Columns: 132}); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Resize(t.Context(), tranca.TerminalSize{}); !errors.Is(err, tranca.ErrInvalid) {
			t.Errorf("no size: %v", err)
		}
	})
}

func TestFollowersComeAndGo(t *testing.T) {
	start(t).each(func(t *testing.T, c *Client) {
		s := create(t, c)
		p := launch(t, s, tranca.StartRequest{Args: []string{"cat"}, Stdin: true})
		f := p.Follow(FollowOptions{})
		short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if _, err := f.Next(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("nothing comes: %v", err)
		}
		if err := p.Write(t.Context(), []byte("x")); err != nil {
			t.Fatal(err)
		}
		if c, err := f.Next(t.Context()); err != nil || string(c.Data) != "x" {
			t.Errorf("after a wait that was given up: %q, %v", c.Data, err)
		}
		f.Close()
		f.Close()
		if _, err := f.Next(t.Context()); !errors.Is(err, tranca.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		if err := p.CloseStdin(t.Context()); err != nil {
			t.Fatal(err)
		}
		if out, _ := follow(t, p, FollowOptions{}); out != "x" {
			t.Errorf("%q", out)
		}
	})
}

// TestStdinOfAProgramThatEnds fails instead of blocking.
func TestStdinOfAProgramThatEnds(t *testing.T) {
	start(t).each(func(t *testing.T, c *Client) {
		s := create(t, c)
		p := launch(t, s, tranca.StartRequest{Args: []string{"sleep", "3600"}, Stdin: true})
		in := p.Stdin(t.Context())
		ended := make(chan error)
		go func() {
			_, err := io.Copy(in, io.LimitReader(zeros{}, 1<<30))
			ended <- err
		}()
		if err := p.Signal(t.Context(), tranca.SIGKILL, false); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, tranca.ErrGone) && !errors.Is(err, io.ErrClosedPipe) && !errors.Is(err, tranca.ErrUnavailable) {
			t.Errorf("it ended with %v", err)
		}
		_ = in.Close()
	})
}

func TestPorts(t *testing.T) {
	start(t).each(func(t *testing.T, c *Client) {
		s := create(t, c)
		p := launch(t, s, tranca.StartRequest{Args: []string{"echo", "8080"}})
		f := p.Follow(FollowOptions{})
		defer f.Close()
		if _, err := f.Next(t.Context()); err != nil { // it listens
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		conn, err := s.Dial(ctx, 8080)
		if err != nil {
			t.Fatal(err)
		}
		cancel() // bounds the dial only
		go func() {
			_, _ = io.WriteString(conn, "there and back")
			_ = conn.CloseWrite()
		}()
		if got, err := io.ReadAll(conn); err != nil || string(got) != "there and back" {
			t.Errorf("%q, %v", got, err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		for port, want := range map[int]error{8081: tranca.ErrNotFound, 0: tranca.ErrInvalid, 70000: tranca.ErrInvalid} {
			if _, err := s.Dial(t.Context(), port); !errors.Is(err, want) {
				t.Errorf("port %d: %v", port, err)
			}
		}
	})
}
