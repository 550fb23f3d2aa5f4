package cli

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"tranca/internal/policy"
	"tranca/internal/terminal"
)

// progress shows on standard error, where that is a terminal, how far something
// is that takes longer than a second.
type progress struct {
	w     io.Writer
	what  string
	total int64 // bytes; 0 is not known
	done  atomic.Int64
	began time.Time

	once sync.Once
	end  chan struct{}
	idle chan struct{} // closed when the line is gone
}

const (
	progressDelay = time.Second
	progressPause = 200 * time.Millisecond
)

// progress begins to show what is done, which takes total bytes, or 0 where that
// is not known or nothing is moved. Call stop before anything else is written.
func (a *app) progress(what string, total int64) *progress {
	p := &progress{
		w: a.Stderr, what: what, total: total, began: time.Now(),
		end: make(chan struct{}), idle: make(chan struct{}),
	}
	if !terminal.Is(a.Stderr) {
		close(p.idle)
		return p
	}
	go p.draw()
	return p
}

// stop takes the line away. Idempotent.
func (p *progress) stop() {
	p.once.Do(func() { close(p.end) })
	<-p.idle
}

func (p *progress) draw() {
	defer close(p.idle)
	timer := time.NewTimer(progressDelay)
	defer timer.Stop()
	shown := false
	for {
		select {
		case <-p.end:
			if shown {
				fmt.Fprint(p.w, "\r\x1b[K")
			}
			return
		case <-timer.C:
		}
		shown = true
		fmt.Fprint(p.w, "\r"+terminal.Clean(p.line(time.Since(p.began)))+"\x1b[K")
		timer.Reset(progressPause)
	}
}

// line says how far it is after some time.
func (p *progress) line(after time.Duration) string {
	done := p.done.Load()
	seconds := after.Seconds()
	switch {
	case done == 0:
		return fmt.Sprintf("%s  %s", cut(p.what, 40), span(after))
	case p.total <= 0:
		return fmt.Sprintf("%s  %s  %s/s", cut(p.what, 40), roundSize(done), roundSize(int64(float64(done)/seconds)))
	}
	left := time.Duration(float64(max(p.total-done, 0)) / float64(done) * float64(after))
	return fmt.Sprintf("%s  %3d%%  %s of %s  %s/s  %s left", cut(p.what, 40), min(100*done/max(p.total, 1), 100),
		roundSize(done), roundSize(p.total), roundSize(int64(float64(done)/seconds)), span(left))
}

// roundSize is a size in three digits or so.
func roundSize(n int64) string {
	if n < 1<<10 {
		return policy.FormatSize(n)
	}
	f, unit := float64(n), 0
	for f >= 1<<10 && unit < 4 {
		f, unit = f/(1<<10), unit+1
	}
	digits := 1
	if f >= 100 {
		digits = 0
	}
	return fmt.Sprintf("%.*f%s", digits, f, []string{"", "KiB", "MiB", "GiB", "TiB"}[unit])
}

// reader counts what is read.
func (p *progress) reader(r io.Reader) io.Reader { return &counted{r: r, p: p} }

type counted struct {
	r io.Reader
	p *progress
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.p.done.Add(int64(n))
	return n, err
}
