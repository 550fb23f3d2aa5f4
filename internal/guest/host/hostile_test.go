package host

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"tranca"
	"tranca/internal/guest/message"
)

// guest is a guest agent that a test writes by hand, byte by byte.
type guest struct {
	t    testing.TB
	conn io.ReadWriteCloser
	once sync.Once
	gone chan struct{}
	// opened delivers the stream numbers of the host's open frames.
	opened chan uint32
}

func newGuest(t testing.TB, conn io.ReadWriteCloser) *guest {
	g := &guest{t: t, conn: conn, gone: make(chan struct{}), opened: make(chan uint32, 16)}
	go func() {
		defer close(g.gone)
		var raw [12]byte
		for {
			if _, err := io.ReadFull(conn, raw[:]); err != nil {
				return
			}
			payload := make([]byte, binary.BigEndian.Uint32(raw[8:]))
			if _, err := io.ReadFull(conn, payload); err != nil {
				return
			}
			if raw[0] == 2 {
				g.opened <- binary.BigEndian.Uint32(raw[4:])
			}
		}
	}()
	t.Cleanup(g.close)
	return g
}

func (g *guest) close() {
	g.once.Do(func() { g.conn.Close() })
	<-g.gone
}

func (g *guest) write(frames ...string) {
	_, _ = io.WriteString(g.conn, strings.Join(frames, ""))
}

// frame makes one by the package documentation, not by the code under test.
func frame(kind, flags byte, stream uint32, payload string) string {
	b := []byte{kind, flags, 0, 0}
	b = binary.BigEndian.AppendUint32(b, stream)
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	return string(b) + payload
}

var hello = frame(1, 0, 0, "tranca\x00\x01")

func msg(stream uint32, payload string) string { return frame(3, 0, stream, payload) }
func end(stream uint32) string                 { return frame(4, 0, stream, "") }

func event(e message.ProcessEvent) string {
	m := message.StartResponse{Event: e}
	return string(m.Append(nil))
}

func startEvent(pid uint32) string {
	return event(message.ProcessEvent{Start: &message.StartEvent{PID: pid}})
}

func endEvent(code int32, exited bool, sig uint32) string {
	return event(message.ProcessEvent{End: &message.EndEvent{ExitCode: code, Exited: exited, Signal: sig}})
}

func output(s string) string {
	return event(message.ProcessEvent{Data: &message.DataEvent{Stdout: []byte(s)}})
}

// answerStart answers the first call as a start.
func (g *guest) answerStart(pid uint32) {
	go func() {
		select {
		case n := <-g.opened:
			g.write(hello, msg(n, startEvent(pid)))
		case <-g.gone:
		}
	}()
}

func open(t testing.TB, m *fakeMachine) *sandbox {
	t.Helper()
	sb, err := New(m, tranca.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	return sb.(*sandbox)
}

// badGuests are what guests say after the host has opened stream 1 with its side
// streams 2 and 3.
var badGuests = []struct {
	name  string
	after string
}{
	{"garbage", strings.Repeat("garbage!", 10)},
	{"zeros", strings.Repeat("\x00", 100)},
	{"no hello", msg(1, startEvent(7))},
	{"two hellos", hello + hello},
	{"another magic", frame(1, 0, 0, "tronca\x00\x01")},
	{"another version", frame(1, 0, 0, "tranca\x00\x02")},
	{"a hello on a stream", frame(1, 0, 1, "tranca\x00\x01")},
	{"reserved bytes", hello + "\x03\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00"},
	{"an unknown kind", hello + frame(7, 0, 1, "")},
	{"unknown flags", hello + frame(3, 2, 1, "")},
	{"a frame too long", hello + "\x03\x00\x00\x00\x00\x00\x00\x01\x00\x04\x00\x01"},
	{"a frame of 4 GiB", hello + "\x03\x00\x00\x00\x00\x00\x00\x01\xff\xff\xff\xff"},
	{"an open of its own", hello + frame(2, 0, 4, "/x/Y")},
	{"a message on no stream", hello + msg(9, "")},
	{"an end on no stream", hello + end(4)},
	{"a reset on no stream", hello + frame(5, 0, 4, "\x00\x00\x00\x05x")},
	{"a credit on no stream", hello + frame(6, 0, 4, "\x00\x00\x00\x05")},
	{"a credit of nothing", hello + frame(6, 0, 1, "\x00\x00\x00\x00")},
	{"a credit not spent", hello + frame(6, 0, 1, "\x7f\xff\xff\xff")},
	{"a reset too short", hello + frame(5, 0, 1, "\x00")},
	{"a reset too long", hello + frame(5, 0, 1, strings.Repeat("x", 600))},
	{"an end with a payload", hello + frame(4, 0, 1, "x")},
	{"a message that is none", hello + msg(1, "\xff\xff\xff")},
	{"an empty event", hello + msg(1, "")},
	{"two events in one", hello + msg(1, startEvent(7)+startEvent(7))},
	{"an end before the start", hello + msg(1, endEvent(0, true, 0))},
	{"output before the start", hello + msg(1, output("x"))},
	{"a start with no pid", hello + msg(1, startEvent(0))},
	{"a start with a huge pid", hello + msg(1, startEvent(1<<31))},
	{"no event at all", hello + end(1)},
	{"a truncated frame", hello + msg(1, startEvent(7)) + "\x03\x00\x00"},
	{"a truncated payload", hello + msg(1, startEvent(7)) + "\x03\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x09abc"},
	{"a second start", hello + msg(1, startEvent(7)) + msg(1, startEvent(7))},
	{"output on the main stream", hello + msg(1, startEvent(7)) + msg(1, output("x"))},
	{"output on the wrong stream", hello + msg(1, startEvent(7)) + msg(3, output("x"))},
	{"output that is none", hello + msg(1, startEvent(7)) + msg(2, endEvent(0, true, 0))},
	{"output that was given up", hello + msg(1, startEvent(7)) + frame(5, 0, 2, "\x00\x00\x00\x0dx")},
	{"an end before the output's", hello + msg(1, startEvent(7)) + end(2) + msg(1, endEvent(0, true, 0))},
	{"output after its end", hello + msg(1, startEvent(7)) + end(2) + msg(2, output("x"))},
	{"two ends of output", hello + msg(1, startEvent(7)) + end(2) + end(2)},
	{"no end", hello + msg(1, startEvent(7)) + end(2) + end(3) + end(1)},
	{"two ends", hello + msg(1, startEvent(7)) + end(2) + end(3) + msg(1, endEvent(0, true, 0)) + msg(1, endEvent(0, true, 0))},
	{"an exit code of 256", hello + msg(1, startEvent(7)) + end(2) + end(3) + msg(1, endEvent(256, true, 0)) + end(1)},
	{"a negative exit code", hello + msg(1, startEvent(7)) + end(2) + end(3) + msg(1, endEvent(-5, true, 0)) + end(1)},
	{"signal 65", hello + msg(1, startEvent(7)) + end(2) + end(3) + msg(1, endEvent(-1, false, 65)) + end(1)},
	{"a message in pieces past the bound", hello + strings.Repeat(frame(3, 1, 1, strings.Repeat("x", 200_000)), 2)},
	{"an end inside a message", hello + frame(3, 1, 1, "x") + end(1)},
	{"more than the window", hello + msg(1, startEvent(7)) + strings.Repeat(msg(1, string(make([]byte, 256<<10))), 5)},
	{"more small frames than the window", hello + strings.Repeat(msg(3, ""), 9000)},
}

// Every guest that breaks the rules gets the same: ErrProtocol, and a closed
// machine. goleak sees to it that nothing stays behind.
func TestHostileGuests(t *testing.T) {
	for _, tt := range badGuests {
		t.Run(tt.name, func(t *testing.T) {
			ours, theirs := socketPair(t)
			g := newGuest(t, theirs)
			m := &fakeMachine{stream: ours, limit: make(chan tranca.Reason, 1)}
			sb := open(t, m)
			go func() {
				<-g.opened
				g.write(tt.after)
				// So that a truncated frame is seen as one.
				if strings.Contains(tt.name, "truncated") {
					theirs.Close()
				}
			}()
			p, err := sb.Start(within(t), tranca.Command{Args: []string{"x"}, Stdout: blockedBriefly{}})
			if err == nil {
				_, err = p.Wait(within(t))
			}
			if !errors.Is(err, tranca.ErrProtocol) {
				t.Errorf("got %v", err)
			}
			if err := sb.Ping(within(t)); !errors.Is(err, tranca.ErrProtocol) {
				t.Errorf("afterwards: %v", err)
			}
			if err := sb.Close(within(t)); err != nil {
				t.Error(err)
			}
			if _, _, closed := m.counts(); closed != 1 {
				t.Errorf("the machine was closed %d times", closed)
			}
		})
	}
}

// blockedBriefly lets a flood get ahead of its reader.
type blockedBriefly struct{}

func (blockedBriefly) Write(p []byte) (int, error) {
	time.Sleep(time.Millisecond)
	return len(p), nil
}

func TestStartGivenUp(t *testing.T) {
	ours, theirs := socketPair(t)
	g := newGuest(t, theirs)
	m := &fakeMachine{stream: ours, limit: make(chan tranca.Reason, 1)}
	sb := open(t, m)
	defer sb.Close(context.Background())
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-g.opened
		g.write(hello)
		cancel()
	}()
	if _, err := sb.Start(ctx, tranca.Command{Args: []string{"x"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, killed, _ := m.counts(); killed != 1 {
		t.Errorf("Kill was called %d times for a start of which nothing is known", killed)
	}
}

func TestHostileListing(t *testing.T) {
	entry := func(name, path string) string {
		m := message.ListDirResponse{Entries: []message.EntryInfo{{Name: name, Path: path, Type: message.FileTypeFile}}}
		return string(m.Append(nil))
	}
	for name, answer := range map[string]string{
		"a name with a slash": entry("../../etc/passwd", "/work/x"),
		"a parent as name":    entry("..", "/work/.."),
		"an empty name":       entry("", "/work/x"),
		"a NUL in a name":     entry("a\x00b", "/work/x"),
		"a long name":         entry(strings.Repeat("n", 256), "/work/x"),
		"an empty page":       "",
		"a negative size": string((&message.ListDirResponse{Entries: []message.EntryInfo{
			{Name: "x", Path: "/x", Size: -1}}}).Append(nil)),
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := socketPair(t)
			g := newGuest(t, theirs)
			sb := open(t, &fakeMachine{stream: ours, limit: make(chan tranca.Reason, 1)})
			defer sb.Close(context.Background())
			go func() { g.write(hello, msg(<-g.opened, answer)) }()
			if _, err := sb.Files().List(within(t), ".", 1); !errors.Is(err, tranca.ErrProtocol) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A text of the guest reaches a screen only as printable characters, cut.
func TestGuestTextIsTamed(t *testing.T) {
	ours, theirs := socketPair(t)
	g := newGuest(t, theirs)
	sb := open(t, &fakeMachine{stream: ours, limit: make(chan tranca.Reason, 1)})
	defer sb.Close(context.Background())
	go func() {
		n := <-g.opened
		g.write(hello, frame(5, 0, n, "\x00\x00\x00\x05\x1b[2J\x9b\xff"+strings.Repeat("y", 500)))
	}()
	err := sb.Ping(within(t))
	if !errors.Is(err, tranca.ErrNotFound) || strings.ContainsAny(err.Error(), "\x1b\x9b\xff") || len(err.Error()) > 400 {
		t.Errorf("got %q", err)
	}
}
