package measure

import (
	"hash/fnv"
	"time"

	"tranca/internal/bench"
	"tranca/internal/bench/stats"
)

// finish makes figures of samples.
func (r *run) finish(stopped error) *bench.Result {
	res := r.cfg.Result
	res.Schema, res.Partial, res.Quick = bench.Schema, stopped != nil, r.cfg.Quick
	res.Rounds, res.Seed = r.cfg.Rounds, r.cfg.Seed
	res.Ended = time.Now().UTC().Truncate(time.Second)
	res.Trust = bench.NewTrust(res.Trust.FirstNS, res.Trust.LastNS)
	res.Harness.Bound = bench.HarnessBound
	if res.Only == nil {
		res.Only = []string{}
	}
	res.Subjects = make([]bench.Subject, len(r.all))
	for i, s := range r.all {
		about := s.About
		about.Measures = []bench.Measure{}
		for _, m := range bench.Measures() {
			about.Measures = append(about.Measures, r.figures(s, m, stopped))
		}
		res.Subjects[i] = about
	}
	return &res
}

// figures are those of one measure of one subject.
func (r *run) figures(s *subject, of bench.Meaning, stopped error) bench.Measure {
	m := bench.Measure{Name: of.Name, N: len(s.samples[of.Name])}
	if m.N == 0 {
		m.Missing = s.why(of.Name, stopped)
		if m.Missing == "" && r.cfg.Quick {
			m.Missing = "left out: the time of a quick run was over"
		}
		return m
	}
	sorted := stats.Sort(s.samples[of.Name])
	m.Min, m.P50, m.P90 = sorted[0], sorted.Median(), sorted.Percentile(90)
	m.P99, m.Max = sorted.Percentile(99), sorted[len(sorted)-1]
	seed := r.cfg.Seed ^ seedOf(s.About.Name+" "+string(of.Name))
	if low, high, ok := sorted.MedianInterval(seed); ok {
		m.Interval = &bench.Interval{Value: m.P50, Low: low, High: high}
	}
	if of.Base != "" {
		bare := stats.Sort(r.all[0].samples[of.Base])
		if ratio, low, high, ok := stats.RatioInterval(sorted, bare, seed); ok {
			m.Ratio = &bench.Interval{Value: ratio, Low: low, High: high}
		}
	}
	if of.Unit == bench.Nanoseconds {
		var h stats.Histogram
		for _, v := range sorted {
			h.Record(int64(v))
		}
		m.Histogram = h.Bins()
	}
	return m
}

// why says why there is no sample, where that is known.
func (s *subject) why(name bench.MeasureName, stopped error) string {
	switch {
	case s.About.Unavailable != "":
		return "it can't run here"
	case s.missing[name] != "":
		return s.missing[name]
	case s.About.Failed != "":
		return "it had failed before"
	case stopped != nil:
		return "the run was stopped before"
	}
	return ""
}

// seedOf gives each figure a random sequence of its own that is the same in
// each run.
func seedOf(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return h.Sum64()
}
