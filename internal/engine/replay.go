package engine

// ring keeps the last bytes of one output stream, by their offset in it. Its
// memory grows with what was written, up to the bound. Not safe for concurrent
// use.
type ring struct {
	max        int
	buf        []byte // the byte at offset o is buf[o % len(buf)]
	start, end int64  // the offsets that are kept
}

// add appends p and drops the oldest bytes beyond the bound.
func (r *ring) add(p []byte) {
	if skip := len(p) - r.max; skip > 0 {
		r.end += int64(skip)
		r.start = r.end
		p = p[skip:]
	}
	r.grow(int(r.end-r.start) + len(p))
	for len(p) > 0 {
		n := copy(r.buf[r.end%int64(len(r.buf)):], p)
		r.end += int64(n)
		p = p[n:]
	}
	r.start = max(r.start, r.end-int64(len(r.buf)))
}

// grow makes room for so many bytes, or for as many as the bound lets.
func (r *ring) grow(need int) {
	if need <= len(r.buf) || len(r.buf) == r.max {
		return
	}
	r.resize(min(max(need, 2*len(r.buf), 4<<10), r.max))
}

// resize moves what is kept to a buffer of another size, which holds all of it.
func (r *ring) resize(size int) {
	old := *r
	r.buf = make([]byte, size)
	for at := old.start; at < old.end; {
		piece := old.from(at)
		for len(piece) > 0 {
			n := copy(r.buf[at%int64(size):], piece)
			at += int64(n)
			piece = piece[n:]
		}
	}
}

// from returns bytes that are kept from an offset on, as far as they lie in one
// piece. They are valid until the ring is changed.
func (r *ring) from(at int64) []byte {
	if at >= r.end || len(r.buf) == 0 {
		return nil
	}
	i := at % int64(len(r.buf))
	return r.buf[i:min(i+r.end-at, int64(len(r.buf)))]
}

// seal frees the memory that holds nothing; nothing more is added.
func (r *ring) seal() {
	if kept := int(r.end - r.start); kept == 0 {
		r.buf = nil
	} else if kept < len(r.buf) {
		r.resize(kept)
	}
}

// drop forgets all that is kept.
func (r *ring) drop() { r.start, r.buf = r.end, nil }

// signal is a broadcast to whoever waits for a change. Its owner's mutex guards
// it.
type signal struct{ c chan struct{} }

// wait returns a channel that the next change closes.
func (s *signal) wait() <-chan struct{} {
	if s.c == nil {
		s.c = make(chan struct{})
	}
	return s.c
}

// tell wakes all that wait. It costs nothing where nobody does.
func (s *signal) tell() {
	if s.c != nil {
		close(s.c)
		s.c = nil
	}
}

// stream is the index of an output stream.
type stream int

const (
	stdout stream = iota
	stderr
	streams
)

// sink is one output stream as the sandbox writes it.
type sink struct {
	o     *output
	which stream
}

// Write takes every byte and never fails. It blocks while a reader that takes
// what comes has not taken enough.
func (s sink) Write(p []byte) (int, error) {
	s.o.write(s.which, p)
	return len(p), nil
}
