package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"tranca"
)

// Bounds of a result that is read: it may come from a file that others wrote.
const (
	maxBytes    = 16 << 20
	maxSubjects = 256
	maxMeasures = 64
	maxBins     = 100_000
	maxName     = 128
)

// Read reads the JSON form of a result. What has another version, is too large
// or makes no sense is an error that wraps [tranca.ErrInvalid]. Its texts may
// hold anything, so they are made visible where they are shown.
func Read(r io.Reader) (*Result, error) {
	limited := &io.LimitedReader{R: r, N: maxBytes + 1}
	text, err := io.ReadAll(limited)
	if err != nil {
		return nil, err
	}
	if len(text) > maxBytes {
		return nil, fmt.Errorf("%w: a result of the benchmark has at most %d bytes", tranca.ErrInvalid, maxBytes)
	}
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, fmt.Errorf("%w: no result of the benchmark: %w", tranca.ErrInvalid, err)
	}
	if head.Schema != Schema {
		return nil, fmt.Errorf("%w: the result has the schema %.100q, and this tranca reads %q: make it again with `tranca bench --json`",
			tranca.ErrInvalid, head.Schema, Schema)
	}
	var res Result
	if err := json.Unmarshal(text, &res); err != nil {
		return nil, fmt.Errorf("%w: result of the benchmark: %w", tranca.ErrInvalid, err)
	}
	if err := res.check(); err != nil {
		return nil, fmt.Errorf("%w: result of the benchmark: %w", tranca.ErrInvalid, err)
	}
	return &res, nil
}

// Write writes the JSON form.
func (r *Result) Write(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(r)
}

func (r *Result) check() error {
	if len(r.Subjects) > maxSubjects {
		return fmt.Errorf("more than %d subjects", maxSubjects)
	}
	if !amounts(r.Trust.FirstNS, r.Trust.LastNS, r.Trust.Drift, r.Trust.Bound, r.Harness.EmptyNS, r.Harness.Added, r.Harness.Bound) {
		return errors.New("a figure below 0")
	}
	if err := r.Harness.Ratio.check(); err != nil {
		return fmt.Errorf("harness: %w", err)
	}
	seen := map[string]bool{}
	for i := range r.Subjects {
		s := &r.Subjects[i]
		if s.Name == "" || len(s.Name) > maxName || seen[s.Name] {
			return fmt.Errorf("subject %d: the name %.40q is empty, too long or there already", i, s.Name)
		}
		seen[s.Name] = true
		if err := s.check(); err != nil {
			return fmt.Errorf("subject %q: %w", s.Name, err)
		}
	}
	return nil
}

func (s *Subject) check() error {
	if s.Kind != KindBare && s.Kind != KindBackend && s.Kind != KindBaseline {
		return fmt.Errorf("unknown kind %.40q", s.Kind)
	}
	if s.Isolation != "" {
		if _, err := tranca.ParseLevel(s.Isolation); err != nil {
			return err
		}
	}
	if len(s.Measures) > maxMeasures {
		return fmt.Errorf("more than %d measures", maxMeasures)
	}
	seen := map[MeasureName]bool{}
	for i := range s.Measures {
		m := &s.Measures[i]
		if _, known := MeaningOf(m.Name); !known || seen[m.Name] {
			return fmt.Errorf("measure %.40q is unknown or there already", m.Name)
		}
		seen[m.Name] = true
		if err := m.check(); err != nil {
			return fmt.Errorf("measure %q: %w", m.Name, err)
		}
	}
	return nil
}

func (m *Measure) check() error {
	if m.N < 0 || !amounts(m.Min, m.P50, m.P90, m.P99, m.Max) {
		return errors.New("a figure below 0")
	}
	if m.Min > m.P50 || m.P50 > m.P90 || m.P90 > m.P99 || m.P99 > m.Max {
		return errors.New("its percentiles don't ascend")
	}
	if err := errors.Join(m.Interval.check(), m.Ratio.check()); err != nil {
		return err
	}
	if len(m.Histogram) > maxBins {
		return fmt.Errorf("a histogram of more than %d values", maxBins)
	}
	last := int64(-1)
	for _, bin := range m.Histogram {
		if bin[0] <= last || bin[1] <= 0 {
			return errors.New("a histogram that doesn't ascend, or counts nothing")
		}
		last = bin[0]
	}
	return nil
}

func (i *Interval) check() error {
	if i != nil && (!amounts(i.Value, i.Low, i.High) || i.Low > i.Value || i.Value > i.High) {
		return errors.New("an interval whose bounds don't hold its value")
	}
	return nil
}

func amounts(all ...float64) bool {
	for _, v := range all {
		if !(v >= 0) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}
