package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tranca"
	"tranca/internal/require"
	"tranca/internal/terminal"
)

func TestAStreamNeverMakesTheRunWait(t *testing.T) {
	reader, writer := io.Pipe()
	s := newStream(writer, func(err error) { t.Errorf("failed: %v", err) })
	var want bytes.Buffer
	// Nobody reads yet: each of these would block for ever in a plain pipe.
	for i := range 1000 {
		p := bytes.Repeat([]byte{byte(i)}, 100)
		want.Write(p)
		if n, err := s.Write(p); n != len(p) || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
	}
	got := make([]byte, want.Len())
	if _, err := io.ReadFull(reader, got); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("Close: %v; the bytes are the same: %v", err, bytes.Equal(got, want.Bytes()))
	}
}

func TestAStreamWhoseReaderIsGoneDropsTheRest(t *testing.T) {
	reader, writer := io.Pipe()
	gone := errors.New("gone")
	told := make(chan error, 1)
	s := newStream(writer, func(err error) { told <- err })
	if _, err := s.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	reader.CloseWithError(gone)
	if err := <-told; !errors.Is(err, gone) {
		t.Errorf("told %v", err)
	}
	if _, err := s.Write([]byte("y")); !errors.Is(err, gone) {
		t.Errorf("Write after it: %v", err)
	}
	if err := s.Close(); !errors.Is(err, gone) {
		t.Errorf("Close: %v", err)
	}
}

// TestAReaderThatNeverReads: what fits into the pipe is in it, for a reader
// that comes when tranca is gone; what does not is said to be lost.
func TestAReaderThatNeverReads(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	want := bytes.Repeat([]byte("0123456789"), 50_000)
	s := newStream(w, func(error) {})
	_, _ = s.Write(want)
	if err := s.finish(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	unread, writer := io.Pipe()
	s = newStream(writer, func(error) {})
	_, _ = s.Write(want)
	var lost *unreadError
	if err := s.finish(t.Context(), 10*time.Millisecond); !errors.As(err, &lost) || lost.lost != len(want) {
		t.Errorf("%v", err)
	}
	if _, err := s.Write([]byte("x")); err == nil {
		t.Error("it takes more")
	}
	unread.Close()
	<-s.done
}

// openPTY returns both ends of a pseudo terminal that passes bytes unchanged.
func openPTY(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.Check(t, "pty", err == nil, "/dev/ptmx can't be opened")
	t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.Check(t, "pty", err == nil, "/dev/pts has no such terminal")
	t.Cleanup(func() { slave.Close() })
	attr, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	attr.Oflag &^= unix.OPOST
	if err := unix.IoctlSetTermios(int(slave.Fd()), unix.TCSETS, attr); err != nil {
		t.Fatal(err)
	}
	return master, slave
}

func TestOutputIsShieldedOnATerminalAndRawElsewhere(t *testing.T) {
	const hostile, shown = "\x1b[2Jx\u009b", "^[[2Jx<U+009B>"
	r := &recorder{answer: func(_ context.Context, req tranca.Request) (*tranca.Result, error) {
		for _, b := range []byte(hostile) { // cut everywhere
			if _, err := req.Stdout.Write([]byte{b}); err != nil {
				return nil, err
			}
		}
		return &tranca.Result{Exit: tranca.Exit{Reason: tranca.EndExited}}, nil
	}}
	if got := try(t, r, nil, "run", "-c", "x"); got.stdout != hostile {
		t.Errorf("into a pipe: %q", got.stdout)
	}
	master, slave := openPTY(t)
	if !terminal.Is(slave) {
		t.Fatal("the pseudo terminal is none")
	}
	status := Main(t.Context(), worldOf(r, nil, slave, io.Discard), []string{"tranca", "run", "-c", "x"})
	got := make([]byte, len(shown))
	if _, err := io.ReadFull(master, got); err != nil || status != 0 || string(got) != shown {
		t.Errorf("on a terminal: %q, status %d, %v", got, status, err)
	}
}

// writerFunc is a writer.
type writerFunc func(p []byte) (int, error)

func (w writerFunc) Write(p []byte) (int, error) { return w(p) }

func TestAStreamWithoutRoomWaitsForItsReader(t *testing.T) {
	const room, piece = 100, 8
	most, got := 0, 0
	var s *stream
	started := make(chan struct{})
	dst := writerFunc(func(p []byte) (int, error) {
		<-started
		time.Sleep(time.Millisecond) // a writer that does not wait is far ahead by then
		most = max(most, s.held())
		got += len(p)
		return len(p), nil
	})
	s = newStream(dst, func(error) {})
	s.room = room
	close(started)
	for range 1000 {
		if _, err := s.Write(make([]byte, piece)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got != 1000*piece || most > room+piece {
		t.Errorf("%d bytes came, at most %d were held", got, most)
	}
}

// held is how much waits or is being written.
func (s *stream) held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting) + s.writing
}

func TestAnAbandonedStreamFreesItsWriter(t *testing.T) {
	release := make(chan struct{})
	s := newStream(writerFunc(func(p []byte) (int, error) {
		<-release
		return len(p), nil
	}), func(error) {})
	defer close(release)
	s.room = 1
	why := errors.New("why")
	wrote := make(chan error)
	go func() {
		var err error
		for err == nil {
			_, err = s.Write([]byte("xx"))
		}
		wrote <- err
	}()
	s.abandon(why)
	if err := <-wrote; err != why {
		t.Errorf("got %v", err)
	}
}
