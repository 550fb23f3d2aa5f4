package agent

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tranca/internal/guest/message"
	"tranca/internal/guest/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs an agent and returns a session to it.
func serve(t testing.TB, cfg Config) *wire.Session {
	t.Helper()
	if cfg.Launcher == nil {
		cfg.Launcher = Direct{}
	}
	if cfg.Workdir == "" {
		cfg.Workdir = t.TempDir()
	}
	if cfg.Env == nil {
		cfg.Env = []string{"PATH=/usr/bin:/bin"}
	}
	cfg.Files = true
	return serveConfig(t, cfg)
}

// serveConfig runs an agent with nothing filled in.
func serveConfig(t testing.TB, cfg Config) *wire.Session {
	t.Helper()
	ours, theirs := net.Pipe()
	s := wire.New(ours, wire.Config{})
	var runs sync.WaitGroup
	runs.Go(func() { _ = s.Run() })
	runs.Go(func() {
		if err := Serve(theirs, cfg); err != nil {
			t.Errorf("serving: %v", err)
		}
	})
	t.Cleanup(func() {
		s.Fail(wire.ErrEnded)
		runs.Wait()
	})
	return s
}

// own makes file work the test's own.
func own(cfg Config) Config {
	cfg.FSUID, cfg.FSGID = uint32(os.Geteuid()), uint32(os.Getegid())
	return cfg
}

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// ask makes a unary call. It returns the code of a refusal, or 0.
func ask(t testing.TB, s *wire.Session, method string, req appender, answer unmarshaler) wire.Code {
	t.Helper()
	c, err := s.Open(within(t), method, 0, req.Append(nil), true)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return codeIn(t, receiveFrom(t, c.Stream, answer))
}

func receiveFrom(t testing.TB, st *wire.Stream, answer unmarshaler) error {
	t.Helper()
	b, err := st.Recv(within(t))
	if err != nil {
		return err
	}
	defer b.Free()
	return answer.Unmarshal(b.Bytes())
}

func codeIn(t testing.TB, err error) wire.Code {
	t.Helper()
	if err == nil {
		return 0
	}
	var told *wire.Error
	if !errors.As(err, &told) {
		t.Fatalf("got %v", err)
	}
	return told.Code
}

// begin starts a program and returns its call and pid.
func begin(t testing.TB, s *wire.Session, args ...string) (*wire.Call, uint32) {
	t.Helper()
	req := message.StartRequest{Process: message.ProcessConfig{Cmd: args[0], Args: args[1:]}, Tag: "tag-" + args[0]}
	c, err := s.Open(within(t), message.MethodStart, 2, req.Append(nil), false)
	if err != nil {
		t.Fatal(err)
	}
	var first message.StartResponse
	if err := receiveFrom(t, c.Stream, &first); err != nil || first.Event.Start == nil {
		t.Fatalf("start of %q: %+v %v", args, first, err)
	}
	return c, first.Event.Start.PID
}

// finish takes a program's end.
func finish(t testing.TB, c *wire.Call) message.EndEvent {
	t.Helper()
	defer c.Close()
	for {
		var last message.StartResponse
		if err := receiveFrom(t, c.Stream, &last); err != nil || (last.Event.End == nil && !last.Event.Ended) {
			t.Fatalf("end: %+v %v", last, err)
		}
		if last.Event.End != nil {
			return *last.Event.End
		}
	}
}
