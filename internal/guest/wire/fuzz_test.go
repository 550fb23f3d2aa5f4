package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
)

// feeder is a byte stream that gives hostile bytes and takes everything.
type feeder struct {
	io.Reader
	closed chan struct{}
}

func (f *feeder) Write(p []byte) (int, error) { return len(p), nil }

func (f *feeder) Close() error {
	close(f.closed)
	return nil
}

func seed(frames ...[]byte) []byte {
	return bytes.Join(append([][]byte{appendHello(nil)}, frames...), nil)
}

func raw(k kind, flags uint8, stream uint32, payload string) []byte {
	return append(header{k, flags, stream, uint32(len(payload))}.append(nil), payload...)
}

func addSeeds(f *testing.F) {
	f.Add([]byte{})
	f.Add(seed())
	f.Add(seed(raw(kindMsg, 0, 1, "m"), raw(kindMsg, 1, 1, "m"), raw(kindMsg, 0, 1, "m"), raw(kindEnd, 0, 1, "")))
	f.Add(seed(raw(kindReset, 0, 2, "\x00\x00\x00\x05text"), raw(kindMsg, 0, 3, ""), raw(kindCredit, 0, 1, "\x00\x00\x00\x80")))
	f.Add(seed(raw(kindOpen, 2, 1, "/a/B"), raw(kindMsg, 0, 1, "x"), raw(kindEnd, 0, 1, "")))
	f.Add(seed(raw(kindOpen, 0, 1, "/a/B"), raw(kindReset, 0, 1, "\x00\x00\x00\x01"), raw(kindOpen, 0, 2, "/a/B")))
}

// FuzzFrames reads hostile bytes on the side that opens: nothing panics or
// hangs, and the session ends with one of the errors that it promises.
func FuzzFrames(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		s := New(&feeder{Reader: bytes.NewReader(b), closed: make(chan struct{})}, Config{MaxMessage: 1000})
		c, err := s.Open(context.Background(), "/a/B", 2, []byte("x"), false)
		if err != nil {
			t.Fatal(err)
		}
		checkEnd(t, s.Run())
		for _, st := range append(c.Sides, c.Stream) {
			total := 0
			for {
				m, err := st.Recv(context.Background())
				if err != nil {
					break
				}
				if len(m.Bytes()) > 1000 {
					t.Fatalf("a message of %d bytes", len(m.Bytes()))
				}
				total += cost(len(m.Bytes()))
				m.Free()
			}
			if total > Window {
				t.Fatalf("%d bytes were kept", total)
			}
		}
		c.Close()
	})
}

// FuzzAnswers reads hostile bytes on the side that answers.
func FuzzAnswers(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		s := New(&feeder{Reader: bytes.NewReader(b), closed: make(chan struct{})}, Config{
			MaxMessage: 1000,
			Handler: func(c *Call) {
				for {
					m, err := c.Recv(context.Background())
					if err != nil {
						_ = c.Send(context.Background(), []byte("bye"), true)
						return
					}
					m.Free()
				}
			},
		})
		checkEnd(t, s.Run())
	})
}

func checkEnd(t *testing.T, err error) {
	t.Helper()
	var broke *ProtocolError
	if !errors.Is(err, ErrEnded) && !errors.As(err, &broke) {
		t.Fatalf("the session ended with %v", err)
	}
}
