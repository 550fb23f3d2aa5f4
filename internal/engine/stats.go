package engine

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"tranca"
)

// Stats are counters since the engine was made, and what there is now. Each
// value is exact; two values are read one after the other.
type Stats struct {
	// Runs counts the runs that have a result, in fresh sandboxes and in
	// sessions, by how they ended.
	Runs map[tranca.Reason]int64
	// Refused counts requests that policy or host did not allow, Busy those
	// that were turned away because too many waited, Failed those that ended
	// with any other error but that of their own context.
	Refused, Busy, Failed int64
	// Sandboxes is how many there are, with those that are being made; Memory
	// in bytes and MilliCPUs are the sums of what they may use.
	Sandboxes, Memory, MilliCPUs int64
	// InFlight is how many are started or run now; Queued how many wait for a
	// sandbox or for a turn.
	InFlight, Queued int64
	// Sessions is how many are open; SessionsOpened and SessionsEnded count.
	Sessions, SessionsOpened, SessionsEnded int64
	// Processes is how many programs started by Session.Start run;
	// ProcessesEnded counts those that have ended, by how.
	Processes      int64
	ProcessesEnded map[tranca.Reason]int64
	// Waited is how long sandboxes waited for their share, Created how long it
	// took to make one, RunTime how long runs took.
	Waited, Created, RunTime Histogram
}

// Histogram counts durations.
type Histogram struct {
	// Bounds are the upper bounds of the buckets, ascending.
	Bounds []time.Duration
	// Counts has one more than Bounds: how many lay within each bound and
	// above the one before, and last how many above all.
	Counts []int64
	Sum    time.Duration
}

// Count is how many durations were counted.
func (h Histogram) Count() (n int64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

var buckets = []time.Duration{
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond,
	50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second, 30 * time.Second,
	time.Minute, 5 * time.Minute,
}

// counters are the counted part of Stats.
type counters struct {
	mu sync.Mutex
	s  Stats
}

func newCounters() *counters {
	h := func() Histogram { return Histogram{Bounds: buckets, Counts: make([]int64, len(buckets)+1)} }
	return &counters{s: Stats{
		Runs: map[tranca.Reason]int64{}, ProcessesEnded: map[tranca.Reason]int64{},
		Waited: h(), Created: h(), RunTime: h(),
	}}
}

func (c *counters) add(change func(*Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.s)
}

func (h *Histogram) observe(d time.Duration) {
	i, _ := slices.BinarySearch(h.Bounds, d)
	h.Counts[i]++
	h.Sum += d
}

func (c *counters) waited(d time.Duration)  { c.add(func(s *Stats) { s.Waited.observe(d) }) }
func (c *counters) created(d time.Duration) { c.add(func(s *Stats) { s.Created.observe(d) }) }

// ran counts a run that has a result or an error.
func (c *counters) ran(res *tranca.Result, err error) {
	c.add(func(s *Stats) {
		switch {
		case err != nil:
			s.failed(err)
		default:
			s.Runs[res.Exit.Reason]++
			s.RunTime.observe(time.Duration(res.Usage.WallMS) * time.Millisecond)
		}
	})
}

// notOpened counts a request for a session that failed.
func (c *counters) notOpened(err error) { c.add(func(s *Stats) { s.failed(err) }) }

func (s *Stats) failed(err error) {
	switch {
	case errors.Is(err, tranca.ErrRefused):
		s.Refused++
	case errors.Is(err, tranca.ErrBusy):
		s.Busy++
	case classed(err):
		s.Failed++
	}
}

// Stats returns the counters. It is cheap.
func (e *Engine) Stats() Stats {
	e.stats.mu.Lock()
	s := e.stats.s
	s.Runs, s.ProcessesEnded = maps.Clone(s.Runs), maps.Clone(s.ProcessesEnded)
	for _, h := range []*Histogram{&s.Waited, &s.Created, &s.RunTime} {
		h.Counts = slices.Clone(h.Counts)
	}
	e.stats.mu.Unlock()
	used, waiting := e.space.state()
	s.Sandboxes, s.Memory, s.MilliCPUs, s.Queued = used.places, used.memory, used.cpus, int64(waiting)
	used, waiting = e.flight.state()
	s.InFlight = used.places
	s.Queued += int64(waiting)
	return s
}
