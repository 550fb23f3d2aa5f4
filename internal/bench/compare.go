package bench

// CompareBound is by how much a figure must change, beside its interval, until
// the change counts.
const CompareBound = 0.10

// Verdict judges how one figure changed.
type Verdict string

// The verdicts.
const (
	// Better and Worse: the intervals don't overlap and the change is larger
	// than [CompareBound].
	Better Verdict = "better"
	Worse  Verdict = "worse"
	// Same: it isn't outside of the noise.
	Same Verdict = "same"
	// Unclear: one of them has too few samples for an interval.
	Unclear Verdict = "unclear"
	// New and Gone: only one of the results has it.
	New  Verdict = "new"
	Gone Verdict = "gone"
)

// Change is one figure in two results. Ratios to bare are compared where there
// are some, since they hold out when the host is faster or slower as a whole;
// else the medians.
type Change struct {
	Subject string
	Measure MeasureName
	// Ratio says that multiples of bare are compared.
	Ratio    bool
	Old, New *Interval // nil where it is missing
	// Factor is New by Old; 0 where one is missing.
	Factor  float64
	Verdict Verdict
}

// Compare holds a result against an earlier one, in the order of the subjects
// of both.
func Compare(old, now *Result) []Change {
	var all []Change
	for _, name := range names(old, now) {
		for _, m := range Measures() {
			a, b := figure(old.Find(name), m.Name), figure(now.Find(name), m.Name)
			if a == nil && b == nil || m.Base != "" && bareOf(old, now, name) {
				continue
			}
			all = append(all, change(name, m, a, b))
		}
	}
	return all
}

// bareOf reports whether a subject is the one that ratios are to.
func bareOf(old, now *Result, name string) bool {
	for _, r := range []*Result{old, now} {
		if s := r.Find(name); s != nil && s.Kind == KindBare {
			return true
		}
	}
	return false
}

func names(results ...*Result) []string {
	var all []string
	seen := map[string]bool{}
	for _, r := range results {
		for i := range r.Subjects {
			if name := r.Subjects[i].Name; !seen[name] {
				seen[name] = true
				all = append(all, name)
			}
		}
	}
	return all
}

func figure(s *Subject, name MeasureName) *Measure {
	if s == nil {
		return nil
	}
	return s.Measure(name)
}

func change(subject string, of Meaning, old, now *Measure) Change {
	c := Change{Subject: subject, Measure: of.Name}
	switch {
	case old == nil:
		c.New, c.Verdict = now.whole(), New
		return c
	case now == nil:
		c.Old, c.Verdict = old.whole(), Gone
		return c
	case old.Ratio != nil && now.Ratio != nil:
		c.Ratio, c.Old, c.New = true, old.Ratio, now.Ratio
	default:
		c.Old, c.New = old.whole(), now.whole()
	}
	if c.Old.Value > 0 {
		c.Factor = c.New.Value / c.Old.Value
	}
	c.Verdict = judge(c.Old, c.New, c.Factor, of.More)
	// One sample of memory is exact enough; one of a time says nothing.
	if of.Unit != Bytes && !c.Ratio && (old.Interval == nil || now.Interval == nil) {
		c.Verdict = Unclear
	}
	return c
}

// whole is the median with its bounds, which are itself where there are none.
func (m *Measure) whole() *Interval {
	if m.Interval != nil {
		return m.Interval
	}
	return &Interval{m.P50, m.P50, m.P50}
}

func judge(old, now *Interval, factor float64, more bool) Verdict {
	up := now.Low > old.High && factor > 1+CompareBound
	down := now.High < old.Low && factor < 1-CompareBound
	switch {
	case up && more, down && !more:
		return Better
	case up, down:
		return Worse
	}
	return Same
}
