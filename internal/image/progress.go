package image

import (
	"bytes"
	"io"
	"sync/atomic"
)

// Progress is told how far something is. Its calls come one after the
// other and must return soon. A nil Progress is told nothing.
type Progress func(Step)

// Step is what is being done.
type Step struct {
	// What begins something else, in words; empty goes on with the last.
	What string
	// Total is how many bytes that will be; 0 is not known.
	Total int64
	// Done is how many bytes more are done.
	Done int64
}

func (p Progress) begin(what string, total int64) {
	if p != nil {
		p(Step{What: what, Total: total})
	}
}

func (p Progress) add(n int64) {
	if p != nil {
		p(Step{Done: n})
	}
}

// reader counts what is read.
func (p Progress) reader(r io.Reader) io.Reader {
	if p == nil {
		return r
	}
	return &counted{r, p}
}

type counted struct {
	r io.Reader
	p Progress
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.p.add(int64(n))
	return n, err
}

func readCloser(b []byte) io.ReadCloser { return io.NopCloser(bytes.NewReader(b)) }

// position counts what was read, for another goroutine to see.
type position struct {
	r io.Reader
	n atomic.Int64
}

func (c *position) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n.Add(int64(n))
	return n, err
}

// ticking calls a function at each read.
type ticking struct {
	r    io.Reader
	tick func()
}

func (t *ticking) Read(b []byte) (int, error) {
	t.tick()
	return t.r.Read(b)
}
