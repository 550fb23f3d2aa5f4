package engine

import (
	"bytes"
	"io"
	"testing"
	"time"
)

// BenchmarkFollow measures what replay adds to a stream with one reader.
func BenchmarkFollow(b *testing.B) {
	o := newOutput(1<<20, time.Minute)
	f := o.follow(FollowOptions{}, func() func() { return func() {} })
	chunk := make([]byte, 32<<10)
	b.SetBytes(int64(len(chunk)))
	done := make(chan int64)
	go func() {
		var n int64
		for {
			c, err := f.Next(b.Context())
			if err == io.EOF {
				done <- n
				return
			}
			n += int64(len(c.Data))
		}
	}()
	for range b.N {
		o.write(stdout, chunk)
	}
	o.end()
	if n := <-done; n != int64(b.N)*int64(len(chunk)) {
		b.Errorf("%d bytes", n)
	}
}

// TestFollowHeadroom shows that the room in front of a piece is the reader's,
// and that a piece says whether another one is there.
func TestFollowHeadroom(t *testing.T) {
	const room = 5
	o := newOutput(1<<20, time.Minute)
	f := o.follow(FollowOptions{Headroom: room}, func() func() { return func() {} })
	defer f.Close()
	want := bytes.Repeat([]byte("0123456789"), (2*followChunk+30)/10)
	o.write(stdout, want)
	o.write(stderr, []byte("e"))
	var got [streams][]byte
	for more := true; more; {
		c, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Headed) != room+len(c.Data) || len(c.Data) > 0 && &c.Headed[room] != &c.Data[0] {
			t.Fatalf("%d bytes of data in %d", len(c.Data), len(c.Headed))
		}
		copy(c.Headed, "xxxxx")
		which := stdout
		if c.Stderr {
			which = stderr
		}
		got[which] = append(got[which], c.Data...)
		more = c.More
	}
	if !bytes.Equal(got[stdout], want) || string(got[stderr]) != "e" {
		t.Errorf("%d and %d bytes came", len(got[stdout]), len(got[stderr]))
	}
}
