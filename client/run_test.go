package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"tranca"
)

// buffer takes live output.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
	// told has something after each write.
	told chan struct{}
}

func newBuffer() *buffer { return &buffer{told: make(chan struct{}, 1)} }

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case b.told <- struct{}{}:
	default:
	}
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func exited(code int) tranca.Exit { return tranca.Exit{Reason: tranca.EndExited, Code: code} }

func TestRun(t *testing.T) {
	start(t).each(func(t *testing.T, c *Client) {
		out, errs := newBuffer(), newBuffer()
		res, err := c.Run(t.Context(), tranca.Request{Code: "print out err\nexit 3", Stdout: out, Stderr: errs})
		if err != nil {
			t.Fatal(err)
		}
		wantExit(t, res.Exit, exited(3))
		if string(res.Stdout) != out.String() || string(res.Stderr) != errs.String() || !strings.HasPrefix(out.String(), "out") || !strings.HasPrefix(errs.String(), "err") {
			t.Errorf("kept %q %q, live %q %q", res.Stdout, res.Stderr, out, errs)
		}
		if res.ID == "" || res.Backend != "fake" || res.Limits.Wall != 30*time.Second || len(res.Enforcement) == 0 || res.Policy.Digest == "" || res.Usage.WallMS < 0 {
			t.Errorf("%+v", res)
		}
	})
}

func TestRunKeepsEveryByte(t *testing.T) {
	start(t).each(func(t *testing.T, c *Client) {
		odd := "\xff\x00 \xc3é"
		for name, req := range map[string]tranca.Request{
			"input":     {Code: "cat", Stdin: strings.NewReader(odd)},
			"byte wise": {Code: "cat", Stdin: iotest.OneByteReader(strings.NewReader(odd))},
			"arguments": {Command: []string{"args", odd[:1]}, Args: []string{odd[2:]}},
		} {
			want := odd
			if name == "arguments" {
				want = odd[:1] + "\x00" + odd[2:]
			}
			res, err := c.Run(t.Context(), req)
			if err != nil || string(res.Stdout) != want {
				t.Errorf("%s: %+v, %v", name, res, err)
			}
		}
	})
}

// TestInputAndOutputFlowAtOnce: each line goes there and back before the next
// one is typed.
func TestInputAndOutputFlowAtOnce(t *testing.T) {
	start(t).each(func(t *testing.T, c *Client) {
		stdin, typed := io.Pipe()
		shown, stdout := io.Pipe()
		ended := make(chan error, 1)
		go func() {
			res, err := c.Run(t.Context(), tranca.Request{Code: "cat", Stdin: stdin, Stdout: stdout})
			if err == nil && res.Exit != exited(0) {
				err = errors.New(res.Exit.String())
			}
			ended <- err
		}()
		for i := range 50 {
			if _, err := typed.Write([]byte{byte(i)}); err != nil {
				t.Fatal(err)
			}
			var b [1]byte
			if _, err := io.ReadFull(shown, b[:]); err != nil || b[0] != byte(i) {
				t.Fatalf("%d came back as %d: %v", i, b[0], err)
			}
		}
		typed.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestLargeInputAndOutput(t *testing.T) {
	const n = 32 << 20
	start(t).each(func(t *testing.T, c *Client) {
		res, err := c.Run(t.Context(), tranca.Request{Command: []string{"cat"}, Stdin: io.LimitReader(zeros{}, n)})
		if err != nil || len(res.Stdout) != 1<<20 || !res.StdoutTruncated {
			t.Errorf("%v, %v", res, err)
		}
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestCancel: the context ends, and the result says so all the same, also
// where the program takes none of its input.
func TestCancel(t *testing.T) {
	start(t).each(func(t *testing.T, c *Client) {
		s := create(t, c)
		for name, run := range map[string]func(context.Context, tranca.Request) (*tranca.Result, error){"fresh": c.Run, "in a sandbox": s.Run} {
			for input, stdin := range map[string]io.Reader{"no input": nil, "input that nobody takes": io.LimitReader(zeros{}, 1<<30)} {
				t.Run(name+", "+input, func(t *testing.T) {
					out := newBuffer()
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					go func() { <-out.told; cancel() }()
					res, err := run(ctx, tranca.Request{Code: "print started\nsleep 3600", Stdin: stdin, Stdout: out})
					if err != nil {
						t.Fatal(err)
					}
					wantExit(t, res.Exit, tranca.Exit{Code: -1, Signal: res.Exit.Signal, Reason: tranca.EndClosed})
					if !strings.HasPrefix(string(res.Stdout), "started") || string(res.Stdout) != out.String() {
						t.Errorf("kept %q, live %q", res.Stdout, out)
					}
				})
			}
		}
	})
}

// TestAWriterThatHangs does not hold up the run, and is left behind.
func TestAWriterThatHangs(t *testing.T) {
	c := start(t).client()
	hung, w := io.Pipe()
	defer hung.Close()
	res, err := c.Run(t.Context(), tranca.Request{Code: "print out", Stdout: w})
	if err != nil || !strings.HasPrefix(string(res.Stdout), "out") || len(res.Notes) != 1 || !strings.Contains(res.Notes[0], "left behind") {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestAWriterThatFails is no failure of the run.
func TestAWriterThatFails(t *testing.T) {
	c := start(t).client()
	r, w := io.Pipe()
	r.Close()
	res, err := c.Run(t.Context(), tranca.Request{Code: "print out", Stdout: w})
	if err != nil || !strings.HasPrefix(string(res.Stdout), "out") || len(res.Notes) != 0 {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestInputThatFailsEnds(t *testing.T) {
	c := start(t).client()
	stdin := io.MultiReader(strings.NewReader("some"), iotest.ErrReader(errors.New("why")))
	res, err := c.Run(t.Context(), tranca.Request{Code: "cat", Stdin: stdin})
	if err != nil || string(res.Stdout) != "some" || !res.Exit.Success() {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestAbandonedInput: a Read that never returns does not keep anybody.
func TestAbandonedInput(t *testing.T) {
	start(t).each(func(t *testing.T, c *Client) {
		stdin, typed := io.Pipe()
		defer typed.Close()
		res, err := c.Run(t.Context(), tranca.Request{Code: "print out", Stdin: stdin})
		if err != nil || !res.Exit.Success() {
			t.Errorf("%+v, %v", res, err)
		}
	})
}

func TestLimitsOfARun(t *testing.T) {
	start(t).each(func(t *testing.T, c *Client) {
		res, err := c.Run(t.Context(), tranca.Request{Code: "sleep 3600", Profile: "strict"})
		if err != nil || res.Exit.Reason != tranca.EndWall || res.Limits.Wall != 200*time.Millisecond {
			t.Errorf("%+v, %v", res, err)
		}
	})
}
