package local_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"tranca"
	"tranca/internal/backend/fake"
	"tranca/internal/require"
	"tranca/local"
)

// openSession opens a session on the process backend. What this host can't
// enforce is waived.
func openSession(t *testing.T, change func(*tranca.Policy)) (s local.Session, waived []tranca.Item) {
	t.Helper()
	p := local.DefaultPolicy()
	p.Floor, p.Backend = tranca.LevelProcess, "process"
	if change != nil {
		change(&p)
	}
	s, err := open(t, local.WithPolicy(p)).Open(t.Context(), tranca.Narrowing{})
	var refused *tranca.RefusalError
	if errors.As(err, &refused) && !refused.Unavailable {
		for _, problem := range refused.Problems {
			p.Waive = append(p.Waive, problem.Item)
		}
		s, err = open(t, local.WithPolicy(p)).Open(t.Context(), tranca.Narrowing{})
	}
	require.Check(t, "process", !errors.Is(err, tranca.ErrUnavailable), fmt.Sprint(err))
	if err != nil {
		t.Fatal(err)
	}
	return s, p.Waive
}

func start(t *testing.T, s local.Session, r tranca.StartRequest) local.Process {
	t.Helper()
	p, err := s.Start(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// sh is a program of a shell.
func sh(code string) tranca.StartRequest {
	return tranca.StartRequest{Args: []string{"sh", "-c", code}}
}

// all follows a process to its end.
func all(t *testing.T, p local.Process) string {
	t.Helper()
	f := p.Follow(0, 0)
	defer f.Close()
	var b bytes.Buffer
	for {
		c, err := f.Next(t.Context())
		if err == io.EOF {
			return b.String()
		}
		if err != nil || c.Dropped != 0 {
			t.Fatalf("%v, %d dropped", err, c.Dropped)
		}
		b.Write(c.Data)
	}
}

// says waits until a process has written something.
func says(t *testing.T, p local.Process, want string) {
	t.Helper()
	f := p.Follow(0, 0)
	defer f.Close()
	for got := ""; !strings.Contains(got, want); {
		c, err := f.Next(t.Context())
		if err != nil {
			t.Fatalf("%q, then %v", got, err)
		}
		got += string(c.Data)
	}
}

func TestProcessesBesideRuns(t *testing.T) {
	s, _ := openSession(t, nil)
	server := start(t, s, tranca.StartRequest{Args: []string{"sh", "-c", "echo up; read line; echo got $line; sleep 1000"}, Stdin: true, Tag: "server"})
	says(t, server, "up")
	for range 3 {
		res, err := s.Run(t.Context(), tranca.Request{Language: "sh", Code: "sleep 4321 & echo ran"})
		if err != nil || string(res.Stdout) != "ran\n" || !res.Exit.Success() {
			t.Fatalf("%+v, %v", res, err)
		}
	}
	left, err := s.Run(t.Context(), tranca.Request{Code: `
import glob
def words(name):
    try: return open(name, 'rb').read()
    except OSError: return b''
print(sum(b'4321' in words(name) for name in glob.glob('/proc/*/cmdline')))`})
	if err != nil || string(left.Stdout) != "0\n" {
		t.Errorf("what runs left beside the server: %q %q, %v", left.Stdout, left.Stderr, err)
	}
	if err := server.Write(t.Context(), []byte("a line\n")); err != nil {
		t.Error(err)
	}
	says(t, server, "got a line")
	found, err := s.Process("tag=server")
	if err != nil || found.Info().ID != server.Info().ID || found.Info().Exit != nil {
		t.Errorf("%v", err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if exit, err := server.Wait(t.Context()); err != nil || exit.Reason != tranca.EndClosed {
		t.Errorf("%+v, %v", exit, err)
	}
}

// TestStopsBesideOthers: wall clock, output and a caller that goes end one
// program and not those beside it, also one that has left its process group.
func TestStopsBesideOthers(t *testing.T) {
	s, _ := openSession(t, func(p *tranca.Policy) {
		p.Limits.Output = tranca.Output{Size: 64 << 10, OnExceed: tranca.ExceedKill}
	})
	beside := start(t, s, sh("echo up; sleep 1000"))
	says(t, beside, "up")
	forever := "import os,time\ntry: os.setsid()\nexcept OSError: pass\nprint(1, flush=True)\nwhile 1: time.sleep(1)"
	for name, tc := range map[string]struct {
		code string
		wall time.Duration
		stop bool
		want tranca.Reason
	}{
		"wall":   {forever, time.Second, false, tranca.EndWall},
		"output": {"while 1: print('x' * 1000)", 0, false, tranca.EndOutput},
		"caller": {forever, 0, true, tranca.EndClosed},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		req := tranca.Request{Code: tc.code, Narrow: tranca.Narrowing{Wall: tc.wall}}
		if tc.stop {
			time.AfterFunc(500*time.Millisecond, cancel)
		}
		res, err := s.Run(ctx, req)
		cancel()
		if err != nil || res.Exit.Reason != tc.want {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
	own := start(t, s, tranca.StartRequest{Args: []string{"python3", "-c", forever}, Wall: time.Second})
	if exit, err := own.Wait(t.Context()); err != nil || exit.Reason != tranca.EndWall {
		t.Errorf("%+v, %v", exit, err)
	}
	if beside.Info().Exit != nil {
		t.Errorf("the one beside them has ended: %+v", beside.Info().Exit)
	}
}

// TestFollowALot: far more than is kept comes through whole.
func TestFollowALot(t *testing.T) {
	s, _ := openSession(t, nil)
	p := start(t, s, tranca.StartRequest{Args: []string{"sh", "-c", "read go; head -c 50000000 /dev/zero"}, Stdin: true})
	got := make(chan string)
	go func() { got <- all(t, p) }()
	if err := p.Write(t.Context(), []byte("go\n")); err != nil {
		t.Fatal(err)
	}
	if out := <-got; len(out) != 50_000_000 || strings.Trim(out, "\x00") != "" {
		t.Errorf("%d bytes", len(out))
	}
	if exit, err := p.Wait(t.Context()); err != nil || !exit.Success() {
		t.Errorf("%+v, %v", exit, err)
	}
}

// TestMemoryEndsAll: the ceiling of a session is that of all its programs.
func TestMemoryEndsAll(t *testing.T) {
	s, waived := openSession(t, nil)
	require.Check(t, "cgroup", !slices.Contains(waived, tranca.ItemMemory), "the memory of a tree is not bounded here")
	p := start(t, s, sh("echo up; sleep 1000"))
	says(t, p, "up")
	res, err := s.Run(t.Context(), tranca.Request{Code: "b = bytearray(4 << 30)\nfor i in range(0, len(b), 4096): b[i] = 1"})
	if err != nil {
		t.Fatal(err)
	}
	if res.Exit.Reason != tranca.EndMemory {
		t.Errorf("%+v", res.Exit)
	}
	if exit, err := p.Wait(t.Context()); err != nil || exit.Reason != tranca.EndMemory {
		t.Errorf("%+v, %v", exit, err)
	}
}

func TestProfilesAndBounds(t *testing.T) {
	small := local.DefaultPolicy()
	small.Limits.Output.Size = 4096
	most := local.DefaultPolicy().Limits.Memory
	l := open(t, local.WithBackend(fake.New(fake.Options{})), local.WithProfile("small", small),
		local.WithMaxSandboxes(5), local.WithMaxTotal(most, 0))
	res, err := l.RunRequest(t.Context(), tranca.Request{Code: "flood 5000", Profile: "small"})
	if err != nil || len(res.Stdout) != 4096 {
		t.Errorf("%+v, %v", res, err)
	}
	if _, err := l.Open(t.Context(), tranca.Narrowing{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := l.Open(ctx, tranca.Narrowing{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("more memory than all may have: %v", err)
	}
	for _, o := range []local.Option{local.WithMaxTotal(-1, 0), local.WithMaxSandboxes(0)} {
		if _, err := local.New(o); !errors.Is(err, tranca.ErrInvalid) {
			t.Error(err)
		}
	}
}
