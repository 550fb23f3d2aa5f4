package engine

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"tranca"
)

// followChunk bounds one piece that a follower is given: what costs a wake of
// everybody on the way should carry much.
const followChunk = 256 << 10

// hurried is how long a program that is being stopped still waits for a reader.
const hurried = 500 * time.Millisecond

// firstReader is how long a program waits, once its output is as much as is
// kept, for somebody who has just started it and is about to read.
const firstReader = 2 * time.Second

// output keeps the last bytes of both output streams of a process for replay
// and lets any number of readers follow. It holds the program back, by blocking
// its writes, while a reader that takes what comes would lose something; a
// reader that takes nothing for the grace time is left behind, until it comes
// again. The first reader is waited for a little; where nobody comes nothing
// blocks.
type output struct {
	mu      sync.Mutex
	rings   [streams]ring
	grace   time.Duration
	readers []*Follower
	// expected stands among the readers for the first one, until it comes.
	expected *Follower
	ended    bool
	changed  signal
	// over is closed when a stream has had more than is kept of it.
	over     chan struct{}
	overOnce sync.Once
}

func newOutput(keep int64, grace time.Duration) *output {
	o := &output{grace: grace, over: make(chan struct{})}
	o.expected = &Follower{o: o, took: time.Now()}
	o.readers = []*Follower{o.expected}
	for i := range o.rings {
		o.rings[i].max = int(keep)
	}
	return o
}

func (o *output) write(which stream, p []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var blocked time.Time
	for len(p) > 0 && !o.ended {
		room := o.room(which, len(p))
		if room == 0 {
			if blocked.IsZero() {
				blocked = time.Now()
			}
			o.await(which, blocked)
			continue
		}
		blocked = time.Time{}
		o.rings[which].add(p[:room])
		p = p[room:]
		o.changed.tell()
		if r := &o.rings[which]; r.end > int64(r.max) {
			o.overOnce.Do(func() { close(o.over) })
		}
	}
}

// exceeded reports whether a stream has had more than is kept of it.
func (o *output) exceeded() bool {
	select {
	case <-o.over:
		return true
	default:
		return false
	}
}

// room returns how many of n bytes can be added so that no reader that keeps up
// loses any.
func (o *output) room(which stream, n int) int {
	r := &o.rings[which]
	for _, f := range o.readers {
		if !f.left {
			n = min(n, int(max(int64(r.max)-f.unread(which), 0)))
		}
	}
	return n
}

// await waits for a change, and leaves readers behind that have taken nothing
// for the grace time, counted from when the write was blocked at the earliest.
func (o *output) await(which stream, blocked time.Time) {
	r := &o.rings[which]
	now, wait := time.Now(), o.grace
	for _, f := range o.readers {
		if f.left || f.unread(which) < int64(r.max) {
			continue
		}
		since, grace := f.took, o.grace
		if since.Before(blocked) {
			since = blocked
		}
		if f == o.expected {
			grace = min(grace, firstReader)
		}
		left := grace - now.Sub(since)
		if left <= 0 {
			f.left = true
			return
		}
		wait = min(wait, left)
	}
	change := o.changed.wait()
	o.mu.Unlock()
	defer o.mu.Lock()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-change:
	case <-timer.C:
	}
}

// hurry lets a program that is being stopped wait no longer for a slow reader.
func (o *output) hurry() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.grace = min(o.grace, hurried)
	o.changed.tell()
}

// end ends both streams. What is kept can still be read.
func (o *output) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	for i := range o.rings {
		o.rings[i].seal()
	}
	o.changed.tell()
}

// kept returns how many bytes are held, and whether a reader is still taking
// them.
func (o *output) kept() (bytes int64, read bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.rings {
		bytes += int64(len(o.rings[i].buf))
	}
	for _, f := range o.readers {
		read = read || f != o.expected && time.Since(f.took) < o.grace
	}
	return bytes, read
}

// drop forgets what is kept; readers are told how much they missed.
func (o *output) drop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.rings {
		o.rings[i].drop()
	}
	o.changed.tell()
}

func (o *output) info(which stream) tranca.StreamInfo {
	o.mu.Lock()
	defer o.mu.Unlock()
	return tranca.StreamInfo{Written: o.rings[which].end, Dropped: o.rings[which].start}
}

// FollowOptions say where a follower begins.
type FollowOptions struct {
	// StdoutFrom and StderrFrom are offsets in bytes from the beginning of each
	// stream. What is no longer kept is told as dropped; an offset that is not
	// reached yet is waited for.
	StdoutFrom, StderrFrom int64
	// Headroom is how many bytes are free in front of each piece, for whoever
	// puts a header there.
	Headroom int
}

// Chunk is a piece of one output stream.
type Chunk struct {
	Stderr bool
	// Data is valid until the next call of Next. It may be empty where only
	// Dropped is told.
	Data []byte
	// Offset is that of Data's first byte in its stream.
	Offset int64
	// Dropped says that so many bytes before Data are not kept any more.
	Dropped int64
	// Headed is Data with the headroom in front, which is the reader's to
	// write.
	Headed []byte
	// More says that the next piece is there already.
	More bool
}

// Follower reads the output of a process from some offset on. Close it. One
// goroutine uses it at a time; any number of followers may read one process.
type Follower struct {
	o    *output
	busy func() (done func())

	// o.mu guards these.
	at     [streams]int64
	took   time.Time
	left   bool // it fell behind: the program does not wait for it
	closed bool
	turn   stream

	headroom int
	buf      []byte
}

func (o *output) follow(opts FollowOptions, busy func() func()) *Follower {
	f := &Follower{o: o, busy: busy, took: time.Now(), headroom: opts.Headroom}
	f.buf = make([]byte, f.headroom)
	f.at = [streams]int64{max(opts.StdoutFrom, 0), max(opts.StderrFrom, 0)}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.expected != nil {
		o.readers, o.expected = nil, nil
	}
	o.readers = append(o.readers, f)
	o.changed.tell()
	return f
}

// Next returns the next piece of output, in the order it came within each
// stream. The error is [io.EOF] after the end of the process and all its
// output, that of ctx, or wraps [tranca.ErrClosed] after Close. While Next is
// called in time, the program waits rather than that output is lost; a follower
// that takes nothing for long is left behind and told what it missed.
func (f *Follower) Next(ctx context.Context) (Chunk, error) {
	defer f.busy()()
	f.o.mu.Lock()
	defer f.o.mu.Unlock()
	for {
		if f.closed {
			return Chunk{}, fmt.Errorf("%w: the follower", tranca.ErrClosed)
		}
		if c, ok := f.take(); ok {
			return c, nil
		}
		if f.o.ended {
			return Chunk{}, io.EOF
		}
		if err := f.await(ctx); err != nil {
			return Chunk{}, err
		}
	}
}

// await waits for a change, with the output's mutex let go.
func (f *Follower) await(ctx context.Context) error {
	change := f.o.changed.wait()
	f.o.mu.Unlock()
	defer f.o.mu.Lock()
	select {
	case <-change:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// take takes a piece that is there, of each stream in turn.
func (f *Follower) take() (Chunk, bool) {
	for range streams {
		which := f.turn
		f.turn = (f.turn + 1) % streams
		r := &f.o.rings[which]
		c := Chunk{Stderr: which == stderr}
		if at := f.at[which]; at < r.start {
			c.Dropped = r.start - at
			f.at[which] = r.start
		}
		c.Offset = f.at[which]
		piece := r.from(c.Offset)
		if len(piece) == 0 && c.Dropped == 0 {
			continue
		}
		// The ring may be overwritten as soon as the mutex is let go.
		f.buf = append(f.buf[:f.headroom], piece[:min(len(piece), followChunk)]...)
		c.Headed, c.Data = f.buf, f.buf[f.headroom:]
		f.at[which] += int64(len(c.Data))
		c.More = f.unread(stdout) > 0 || f.unread(stderr) > 0
		f.took, f.left = time.Now(), false
		f.o.changed.tell()
		return c, true
	}
	return Chunk{}, false
}

// unread is how much of a stream is there that it has not taken.
func (f *Follower) unread(which stream) int64 {
	return max(f.o.rings[which].end-f.at[which], 0)
}

// Close lets the program go on without this reader. Idempotent.
func (f *Follower) Close() {
	f.o.mu.Lock()
	defer f.o.mu.Unlock()
	f.closed = true
	f.o.readers = slices.DeleteFunc(f.o.readers, func(o *Follower) bool { return o == f })
	f.o.changed.tell()
}
