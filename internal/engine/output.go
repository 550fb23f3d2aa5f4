package engine

import (
	"io"
	"sync"
	"time"
	"unicode/utf8"
)

// liveChunk bounds one write to a live copy, so that a slow reader is seen to
// make progress.
const liveChunk = 64 << 10

// capture keeps the first bytes of one output stream, drops the rest, and
// never blocks or slows the program. A live copy of what is kept goes to an
// optional writer from a goroutine of its own, which reads from the kept bytes
// themselves: so a slow reader needs no buffer beyond them, and loses nothing
// while the run lasts.
type capture struct {
	limit    int64
	onExceed func() // called once, when the first byte is dropped

	mu       sync.Mutex
	kept     []byte
	exceeded bool
	ended    bool          // no more is kept
	left     bool          // the live copy was left behind
	wake     chan struct{} // something to do for the copier
	idle     chan struct{} // closed when the copier is done
	sent     int
}

func newCapture(limit int64, live io.Writer, onExceed func()) *capture {
	c := &capture{limit: limit, onExceed: onExceed, idle: make(chan struct{})}
	if live == nil {
		close(c.idle)
		return c
	}
	c.wake = make(chan struct{}, 1)
	go c.copyTo(live)
	return c
}

// Write keeps what fits. It takes every byte and never fails.
func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	room := c.limit - int64(len(c.kept))
	first := int64(len(p)) > room && !c.exceeded
	if c.ended {
		room, first = 0, false
	}
	if first {
		c.exceeded = true
	}
	c.kept = append(c.kept, p[:min(int64(len(p)), room)]...)
	c.mu.Unlock()
	c.poke()
	if first && c.onExceed != nil {
		c.onExceed()
	}
	return len(p), nil
}

// poke tells the copier that there is something to do.
func (c *capture) poke() {
	if c.wake == nil {
		return
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// copyTo writes what is kept until the stream has ended and all is sent, or a
// write fails: a reader that went away is no failure of the run.
func (c *capture) copyTo(w io.Writer) {
	defer close(c.idle)
	for {
		chunk, ended := c.next()
		if len(chunk) == 0 {
			if ended {
				return
			}
			<-c.wake
			continue
		}
		n, err := w.Write(chunk)
		if err != nil || n < len(chunk) {
			return
		}
		c.mu.Lock()
		c.sent += n
		c.mu.Unlock()
	}
}

func (c *capture) next() (chunk []byte, ended bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left {
		return nil, true
	}
	// Bytes once kept never change, also where a later append moves them.
	return c.kept[c.sent:min(len(c.kept), c.sent+liveChunk)], c.ended
}

// finish ends the stream and waits until the live copy has taken all of it. A
// reader that takes nothing for the grace time is left behind: then finish
// returns how many bytes it did not get. A write that hangs is abandoned; no
// other follows it.
func (c *capture) finish(grace time.Duration) (missed int) {
	c.mu.Lock()
	c.ended = true
	last := c.sent
	c.mu.Unlock()
	c.poke()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	for {
		select {
		case <-c.idle:
			return 0
		case <-timer.C:
		}
		sent, all := c.progress(last)
		if sent == last {
			return all - sent
		}
		last = sent
		timer.Reset(grace)
	}
}

// progress returns how much the live copy has taken of how much. One that has
// taken no more than last time gets nothing from then on.
func (c *capture) progress(last int) (sent, all int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = c.left || c.sent == last
	return c.sent, len(c.kept)
}

// bytes returns what was kept and whether more was dropped. Where the bound
// cuts through a character of text that is otherwise whole, the part of it is
// dropped too: text stays text. Call it after finish.
func (c *capture) bytes() ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.exceeded {
		return c.kept, false
	}
	return wholeRunes(c.kept), true
}

// wholeRunes returns b without an incomplete character at its end, where that
// is all that keeps b from being valid UTF-8.
func wholeRunes(b []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		tail := b[len(b)-n:]
		if !utf8.RuneStart(tail[0]) {
			continue
		}
		if utf8.FullRune(tail) || !utf8.Valid(b[:len(b)-n]) {
			return b
		}
		return b[:len(b)-n]
	}
	return b
}
