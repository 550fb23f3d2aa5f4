package advise

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Evidence is what earlier runs on this host have shown. The zero value is none.
type Evidence struct {
	// Bench and Hostile are nil where there is no result that counts.
	Bench   *Bench
	Hostile *Hostile
	// Notes say why a result that is there does not count, and what to mind about
	// one that does.
	Notes []string
}

// Bench is what the last run of the benchmark measured.
type Bench struct {
	When time.Time
	// Costs are by the names of backends, "container:runc" for one by a runtime.
	Costs map[string]Cost
}

// Cost is what one backend costs. A figure of 0 was not measured.
type Cost struct {
	// FirstByteMS is the median of the time from asking for a fresh sandbox to
	// the first byte of output, in milliseconds; Ratio is how many times that of
	// the bare program it is, with its 95 % interval.
	FirstByteMS float64 `json:"first_byte_ms"`
	Ratio       float64 `json:"ratio"`
	RatioLow    float64 `json:"ratio_low"`
	RatioHigh   float64 `json:"ratio_high"`
	// PerSecond is how many were started and ended in a second, by the number of
	// callers that got the most.
	PerSecond float64 `json:"starts_per_second"`
	// IdleMiB is the memory of an idle sandbox.
	IdleMiB float64 `json:"idle_mib"`
}

// Hostile is what the last run of the hostile suite found.
type Hostile struct {
	When time.Time
	// Partial says that it was interrupted, or that only some probes were run.
	Partial bool
	// Held are by the names of backends, "container (runc)" for one by a runtime.
	Held map[string]Held
}

// Held is how one backend stood.
type Held struct {
	Contained int `json:"contained"`
	Limited   int `json:"limited"`
	Escaped   int `json:"escaped"`
	Failed    int `json:"failed"`
	Unknown   int `json:"unknown"`
	// Promised are the probes that escaped or failed in something that it
	// promises.
	Promised []string `json:"promised_escapes,omitempty"`
}

// String counts.
func (h Held) String() string {
	return fmt.Sprintf("%d contained, %d limited, %d escaped, %d failed, %d unknown", h.Contained, h.Limited, h.Escaped, h.Failed, h.Unknown)
}

// String says what was measured.
func (c Cost) String() string {
	var parts []string
	if c.FirstByteMS > 0 {
		text := fmt.Sprintf("%s ms to the first byte", figure(c.FirstByteMS))
		if c.Ratio > 0 {
			text += fmt.Sprintf(", %sx the bare program's (%s to %s)", figure(c.Ratio), figure(c.RatioLow), figure(c.RatioHigh))
		}
		parts = append(parts, text)
	}
	if c.PerSecond > 0 {
		parts = append(parts, figure(c.PerSecond)+" starts a second")
	}
	if c.IdleMiB > 0 {
		parts = append(parts, figure(c.IdleMiB)+" MiB idle")
	}
	return strings.Join(parts, "; ")
}

// figure writes three significant digits, and no fewer before the point.
func figure(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// cost finds what a candidate costs.
func (e *Evidence) cost(c *Candidate) (Cost, bool) {
	if e.Bench == nil {
		return Cost{}, false
	}
	for _, name := range c.names() {
		if cost, ok := e.Bench.Costs[name]; ok && cost != (Cost{}) {
			return cost, true
		}
	}
	return Cost{}, false
}

// held finds how a candidate stood.
func (e *Evidence) held(c *Candidate) (Held, bool) {
	if e.Hostile == nil {
		return Held{}, false
	}
	for _, name := range c.names() {
		if h, ok := e.Hostile.Held[name]; ok {
			return h, true
		}
	}
	return Held{}, false
}

// broken are the probes that got through in something promised.
func (e *Evidence) broken(c *Candidate) []string {
	h, ok := e.held(c)
	if !ok {
		return nil
	}
	return slices.Clone(h.Promised)
}

// day is a date for people.
func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }
