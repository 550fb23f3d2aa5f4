package engine

import (
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
