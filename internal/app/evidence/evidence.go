// Package evidence turns what `tranca bench` and `tranca hostile` have kept on
// this host into what an advice is made from. A result that can't be read, that
// others could have written, that is of another version or of another kernel,
// or that its own maker does not trust, does not count, and a note says so.
package evidence

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"tranca"
	"tranca/hostile/report"
	"tranca/internal/advise"
	"tranca/internal/bench"
	"tranca/internal/statefile"
)

// Host is where results are looked for, and what they have to be of.
type Host struct {
	Getenv func(string) string
	// Read reads a file that nobody else can write; its errors have the classes
	// of package ownfile. what says in errors what it is.
	Read func(what, path string) ([]byte, error)
	// Kernel, Version and Now are those of this host, of this program, and of
	// this moment.
	Kernel, Version string
	Now             time.Time
}

// old is how long a result is taken without a word.
const old = 90 * 24 * time.Hour

// Gather reads both results.
func (h Host) Gather() advise.Evidence {
	var e advise.Evidence
	h.keep(&e, statefile.Bench, "tranca bench", h.bench)
	h.keep(&e, statefile.Hostile, "tranca hostile", h.hostile)
	return e
}

// keep reads one file; what is wrong with it becomes a note.
func (h Host) keep(e *advise.Evidence, name, command string, take func(*advise.Evidence, []byte) error) {
	path, err := statefile.Path(h.Getenv, name)
	if err != nil {
		return // a user without a home has kept none
	}
	data, err := h.Read("result", path)
	if errors.Is(err, tranca.ErrNotFound) {
		return
	}
	if err == nil {
		err = take(e, data)
	}
	if err != nil {
		e.Notes = append(e.Notes, fmt.Sprintf("the last result of %s is not counted: %v", command, err))
	}
}

// bench takes the costs out of a result.
func (h Host) bench(e *advise.Evidence, data []byte) error {
	r, err := bench.Read(bytes.NewReader(data))
	if err != nil {
		return err
	}
	if err := h.same(r.Host.Kernel); err != nil {
		return err
	}
	if !r.Trust.Trusted {
		return errors.New("it can't be trusted: " + r.Trust.String())
	}
	b := &advise.Bench{When: r.Started, Costs: map[string]advise.Cost{}}
	for i := range r.Subjects {
		if s := &r.Subjects[i]; s.Kind == bench.KindBackend && s.Unavailable == "" && s.Failed == "" && len(s.Waived) == 0 {
			b.Costs[s.Name] = cost(s)
		}
	}
	e.Bench = b
	e.Notes = append(e.Notes, h.mind("tranca bench", r.Tranca, r.Started)...)
	if r.Quick {
		e.Notes = append(e.Notes, "the last result of tranca bench is of a quick run, with wider intervals")
	}
	return nil
}

func cost(s *bench.Subject) advise.Cost {
	var c advise.Cost
	if m := s.Measure(bench.FirstByte); m != nil {
		c.FirstByteMS = m.P50 / 1e6
		if m.Ratio != nil {
			c.Ratio, c.RatioLow, c.RatioHigh = m.Ratio.Value, m.Ratio.Low, m.Ratio.High
		}
	}
	for _, name := range []bench.MeasureName{bench.Throughput1, bench.Throughput8, bench.Throughput64} {
		if m := s.Measure(name); m != nil {
			c.PerSecond = max(c.PerSecond, m.P50)
		}
	}
	if m := s.Measure(bench.IdleMemory); m != nil {
		c.IdleMiB = m.P50 / (1 << 20)
	}
	return c
}

// hostile counts the verdicts of a report.
func (h Host) hostile(e *advise.Evidence, data []byte) error {
	r, err := report.Read(bytes.NewReader(data))
	if err != nil {
		return err
	}
	if err := h.same(r.Host.Kernel); err != nil {
		return err
	}
	found := &advise.Hostile{When: r.Began, Partial: r.Partial, Held: map[string]advise.Held{}}
	for _, c := range r.Columns {
		if c.Kind == report.ColumnBackend && c.Missing == "" {
			found.Held[c.Name] = advise.Held{}
		}
	}
	for i := range r.Cells {
		c := &r.Cells[i]
		if held, ok := found.Held[c.Column]; ok {
			found.Held[c.Column] = counted(held, c)
		}
	}
	e.Hostile = found
	e.Notes = append(e.Notes, h.mind("tranca hostile", r.Version, r.Began)...)
	return nil
}

func counted(h advise.Held, c *report.Cell) advise.Held {
	switch c.Verdict {
	case report.Contained:
		h.Contained++
	case report.Limited:
		h.Limited++
	case report.Escaped:
		h.Escaped++
	case report.Failed:
		h.Failed++
	case report.Unknown:
		h.Unknown++
	}
	if c.Promised && (c.Verdict == report.Escaped || c.Verdict == report.Failed) {
		h.Promised = append(h.Promised, c.Probe)
	}
	return h
}

// same refuses a result of another kernel: the host was updated, or the file
// came from elsewhere.
func (h Host) same(kernel string) error {
	if kernel == h.Kernel {
		return nil
	}
	return fmt.Errorf("it is of the kernel %.60q, and this is %s", kernel, h.Kernel)
}

// mind says what to mind about a result that counts.
func (h Host) mind(command, version string, when time.Time) []string {
	var notes []string
	if version != h.Version {
		notes = append(notes, fmt.Sprintf("the last result of %s was made by tranca %.60s, and this is %s", command, version, h.Version))
	}
	if age := h.Now.Sub(when); age > old {
		notes = append(notes, fmt.Sprintf("the last result of %s is %d days old", command, int(age.Hours()/24)))
	}
	return notes
}
