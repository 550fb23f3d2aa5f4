package wire

import (
	"math/bits"
	"sync"
)

// Headroom is the room in front of a [Buf]'s bytes: for the frame's header,
// and for what a message has before a long last field.
const Headroom = 64

// Buffers up to smallBuf bytes are made to measure and left to the collector;
// larger ones come in powers of two and are kept. So a receiver spends at most
// twice what a frame costs its sender.
const (
	smallBuf   = 2 << 10
	smallShift = 11
	classes    = 8 // 2 KiB << 7 is MaxPayload
)

var pools [classes]sync.Pool

// Buf is a buffer with room in front. It has one owner, who frees it.
type Buf struct {
	store []byte
	off   int
	class int8
}

// NewBuf returns a buffer of n bytes behind its headroom. Their content is
// arbitrary. n is at most MaxPayload.
func NewBuf(n int) *Buf {
	if n <= smallBuf {
		return &Buf{store: make([]byte, Headroom+n), off: Headroom, class: -1}
	}
	class := bits.Len(uint(n-1)) - smallShift
	b, _ := pools[class].Get().(*Buf)
	if b == nil {
		b = &Buf{store: make([]byte, Headroom+smallBuf<<class), class: int8(class)}
	}
	b.off = Headroom
	b.store = b.store[:Headroom+n]
	return b
}

// Bytes returns the content. It is valid until Free.
func (b *Buf) Bytes() []byte { return b.store[b.off:] }

// Truncate keeps the first n bytes.
func (b *Buf) Truncate(n int) { b.store = b.store[:b.off+n] }

// Prepend puts p before the content. All that is prepended, with the frame's
// header, fits into Headroom.
func (b *Buf) Prepend(p []byte) {
	b.off -= len(p)
	copy(b.store[b.off:], p)
}

// Reset makes b as it came from NewBuf, with n bytes, not more than then.
func (b *Buf) Reset(n int) {
	b.off = Headroom
	b.store = b.store[:Headroom+n]
}

// Free gives the buffer back. b must not be used afterwards.
func (b *Buf) Free() {
	if b != nil && b.class >= 0 {
		pools[b.class].Put(b)
	}
}
