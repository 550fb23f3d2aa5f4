package host

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"tranca"
	"tranca/internal/guest/message"
)

// script is a guest that says hostile bytes once it was asked something, and
// takes everything.
type script struct {
	mu    sync.Mutex
	rest  []byte
	asked chan struct{}
	once  sync.Once
}

func (s *script) Read(p []byte) (int, error) {
	<-s.asked
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

func (s *script) Write(p []byte) (int, error) {
	s.once.Do(func() { close(s.asked) })
	return len(p), nil
}

func (s *script) Close() error {
	s.once.Do(func() { close(s.asked) })
	return nil
}

// classes are the errors that a guest may cause.
var classes = []error{
	tranca.ErrInvalid, tranca.ErrRefused, tranca.ErrUnavailable, tranca.ErrNotFound, tranca.ErrExists,
	tranca.ErrGone, tranca.ErrBusy, tranca.ErrClosed, tranca.ErrUnsupported, tranca.ErrProtocol, tranca.ErrNoSpace,
}

func classified(t *testing.T, what string, err error) {
	t.Helper()
	for _, c := range classes {
		if err == nil || err == io.EOF || errors.Is(err, c) {
			return
		}
	}
	t.Fatalf("%s: %v belongs to no class", what, err)
}

// FuzzHostSession plays hostile bytes to each of the host's calls: nothing
// panics or hangs, every error has a class, and an exit makes sense.
func FuzzHostSession(f *testing.F) {
	f.Add(byte(0), []byte(hello+msg(1, startEvent(7))+msg(2, output("o"))+end(2)+end(3)+msg(1, endEvent(3, true, 0))+end(1)))
	for i, tt := range badGuests {
		if len(tt.after) < 1<<16 {
			f.Add(byte(i), []byte(tt.after))
		}
	}
	page := message.ListDirResponse{Entries: []message.EntryInfo{{Name: "x", Path: "/x", Type: message.FileTypeSymlink}}}
	f.Add(byte(1), []byte(hello+msg(1, string(page.Append(nil)))+end(1)))
	piece := message.ReadResponse{Entry: &message.EntryInfo{Name: "x"}}
	f.Add(byte(2), []byte(hello+msg(1, string(piece.Append(nil)))+msg(1, "\x12\x01x")+end(1)))
	f.Add(byte(3), []byte(hello+msg(1, "\x08\x03")+end(1)))
	typed := event(message.ProcessEvent{Data: &message.DataEvent{PTY: []byte("\x1b[m")}})
	f.Add(byte(5), []byte(hello+msg(1, startEvent(7))+msg(2, typed)+end(2)+end(3)+msg(1, endEvent(3, true, 0))+end(1)))
	f.Add(byte(0), []byte(hello+msg(1, startEvent(7))+msg(1, event(message.ProcessEvent{Ended: true}))+end(2)+end(3)+msg(1, endEvent(3, true, 0))+end(1)))
	stopped := message.WriteResponse{Size: 2, Code: 8, Reason: "full"}
	f.Add(byte(6), []byte(hello+msg(1, string(stopped.Append(nil)))+end(1)))
	f.Add(byte(7), []byte(hello+msg(1, "")+end(1)))
	f.Add(byte(8), []byte(hello+msg(1, "")+msg(1, "\x12\x01x")+msg(1, "")+end(1)))
	f.Add(byte(4), []byte(hello+frame(5, 0, 1, "\x00\x00\x00\x05none")))
	f.Fuzz(func(t *testing.T, what byte, b []byte) {
		m := &fakeMachine{stream: &script{rest: b, asked: make(chan struct{})}, limit: make(chan tranca.Reason, 1)}
		sb := open(t, m)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		playCall(ctx, t, sb, what)
		if ctx.Err() != nil {
			t.Fatal("a call hung")
		}
		if err := sb.Close(ctx); err != nil {
			t.Fatal(err)
		}
	})
}

func playCall(ctx context.Context, t *testing.T, sb *sandbox, what byte) {
	switch what % 9 {
	case 0, 5:
		cmd := tranca.Command{Args: []string{"x"}, Stdout: io.Discard}
		if what%9 == 5 {
			cmd.Terminal = &size
		}
		p, err := sb.Start(ctx, cmd)
		classified(t, "start", err)
		if err != nil {
			return
		}
		exit, err := p.Wait(ctx)
		classified(t, "wait", err)
		known := exit.Reason == tranca.EndExited && exit.Code >= 0 && exit.Code <= 255 && exit.Signal == 0 ||
			exit.Reason == tranca.EndSignaled && exit.Code == -1 && exit.Signal >= 1 && exit.Signal <= 64
		if known != (err == nil) {
			t.Fatalf("exit %+v with %v", exit, err)
		}
	case 1:
		infos, err := sb.Files().List(ctx, "/", 2)
		classified(t, "list", err)
		for _, i := range infos {
			_, err := i.Modified.MarshalText()
			classified(t, "the time of "+i.Name, err)
		}
	case 2:
		r, err := sb.Files().Read(ctx, "/x", 0)
		classified(t, "read", err)
		if err == nil {
			_, err = io.Copy(io.Discard, r)
			classified(t, "reading", err)
			r.Close()
		}
	case 3:
		_, err := sb.Files().Write(ctx, "/x", io.LimitReader(zeros{}, 3), 0o600)
		classified(t, "write", err)
	case 4:
		_, err := sb.Files().Stat(ctx, "/x")
		classified(t, "stat", err)
	default:
		playAbility(ctx, t, sb, what)
	}
}

// playAbility is playCall for what a sandbox may do besides.
func playAbility(ctx context.Context, t *testing.T, sb *sandbox, what byte) {
	f := files{sb}
	switch what % 9 {
	case 6:
		n, err := f.WriteFrom(ctx, "/x", io.LimitReader(zeros{}, 3), 7, 0o600)
		classified(t, "resumed write", err)
		if n < 0 || n > 3 {
			t.Fatalf("%d bytes of 3 were written", n)
		}
	case 7:
		classified(t, "link", f.Symlink(ctx, "t", "/x"))
	case 8:
		c, err := sb.Dial(ctx, 80)
		classified(t, "dial", err)
		if err != nil {
			return
		}
		defer c.Close()
		_, err = c.Write([]byte("x"))
		classified(t, "writing to a port", err)
		_, err = io.Copy(io.Discard, c)
		classified(t, "reading from a port", err)
	}
}
