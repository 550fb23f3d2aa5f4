package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"tranca"
	"tranca/internal/bench"
)

const plotWidth = 840

// latency draws a box for each subject over an axis of time.
func latency(r *bench.Result) string {
	of := having(r, bench.Whole)
	var values []float64
	for _, s := range of {
		m := s.Measure(bench.Whole)
		values = append(values, m.P50, m.Max)
		if f := s.Measure(bench.FirstByte); f != nil {
			values = append(values, f.P50)
		}
	}
	const left, right, top, row = 190, 110, 44, 30
	x, ok := newScale(values, left, plotWidth-right)
	if !ok {
		return ""
	}
	bottom := top + row*float64(len(of))
	c := newCanvas("A whole run, by percentiles", plotWidth, bottom+44)
	for _, t := range x.ticks() {
		c.line(x.at(t), top, x.at(t), bottom, "grid")
		c.text(x.at(t), bottom+16, "dim", "middle", bench.Nanoseconds.Format(t))
	}
	c.text(plotWidth-right, bottom+34, "dim", "end", "time, logarithmic")
	for i, s := range of {
		m, y, class := s.Measure(bench.Whole), top+row*(float64(i)+0.5), colour(r, s)
		c.text(left-12, y+4, "", "end", s.Name)
		c.line(x.at(m.P50), y, x.at(m.P99), y, "line "+class)
		c.rect(x.at(m.P50), y-7, max(x.at(m.P90)-x.at(m.P50), 1), 14, "box "+class)
		c.line(x.at(m.Max), y-5, x.at(m.Max), y+5, "line "+class)
		about := fmt.Sprintf("%s: p50 %s, p90 %s, p99 %s, max %s", s.Name, formatNS(m.P50), formatNS(m.P90), formatNS(m.P99), formatNS(m.Max))
		if f := s.Measure(bench.FirstByte); f != nil {
			c.circle(x.at(f.P50), y, 4, "hollow "+class, s.Name+": first byte "+formatNS(f.P50))
		}
		c.circle(x.at(m.P50), y, 4, "fill "+class, about)
		c.text(plotWidth-right+12, y+4, "dim", "start", formatNS(m.P50))
	}
	return c.end()
}

func formatNS(v float64) string { return bench.Nanoseconds.Format(v) }

// throughput draws a line for each subject over the number of callers.
func throughput(r *bench.Result) string {
	callers := []bench.MeasureName{bench.Throughput1, bench.Throughput8, bench.Throughput64}
	var values []float64
	for _, name := range callers {
		for _, s := range having(r, name) {
			values = append(values, s.Measure(name).P50)
		}
	}
	const left, right, top, bottom = 80, 190, 48, 380
	y, ok := newScale(values, bottom, top)
	if !ok {
		return ""
	}
	at := func(i int) float64 { return left + 30 + float64(i)*(plotWidth-left-right-60)/2 }
	c := newCanvas("Starts in a second, against callers", plotWidth, bottom+44)
	for _, t := range y.ticks() {
		c.line(left, y.at(t), plotWidth-right, y.at(t), "grid")
		c.text(left-8, y.at(t)+4, "dim", "end", bench.PerSecond.Format(t))
	}
	for i, name := range callers {
		c.text(at(i), bottom+20, "dim", "middle", title(name))
	}
	var ends []label
	for i := range r.Subjects {
		s := &r.Subjects[i]
		var points []string
		class, last := colour(r, s), label{text: s.Name}
		for i, name := range callers {
			if m := s.Measure(name); m != nil {
				points = append(points, fmt.Sprintf("%.1f,%.1f", at(i), y.at(m.P50)))
				c.circle(at(i), y.at(m.P50), 3.5, "fill "+class, s.Name+", "+title(name)+": "+bench.PerSecond.Format(m.P50))
				last.x, last.y, last.class = at(i)+10, y.at(m.P50), class
			}
		}
		if len(points) == 0 {
			continue
		}
		dash := ""
		if s.Kind != bench.KindBackend {
			dash = " dash"
		}
		fmt.Fprintf(&c.b, `<polyline points="%s" class="line %s%s"/>`+"\n", strings.Join(points, " "), class, dash)
		ends = append(ends, last)
	}
	c.labels(ends)
	return c.end()
}

// protection draws the cost of each subject at its isolation level.
func protection(r *bench.Result) string {
	var values []float64
	var of []*bench.Subject
	for _, s := range having(r, bench.Whole) {
		if m := s.Measure(bench.Whole); m.Ratio != nil && (s.Isolation != "" || s.Kind == bench.KindBare) {
			of = append(of, s)
			values = append(values, m.Ratio.Low, m.Ratio.High)
		}
	}
	const left, right, top, bottom = 80, 60, 48, 380
	y, ok := newScale(values, bottom, top)
	if !ok {
		return ""
	}
	levels := []string{""}
	for _, l := range tranca.Levels() {
		levels = append(levels, l.String())
	}
	at := func(s *bench.Subject) float64 {
		// Others' sandboxes stand beside ours, not on them.
		x := left + 40 + float64(slices.Index(levels, s.Isolation))*(plotWidth-left-right-60)/float64(len(levels)-1)
		if s.Kind == bench.KindBaseline {
			x += 14
		}
		return x
	}
	c := newCanvas("Cost of a whole run, against protection", plotWidth, bottom+44)
	for _, t := range y.ticks() {
		c.line(left, y.at(t), plotWidth-right, y.at(t), "grid")
		c.text(left-8, y.at(t)+4, "dim", "end", bench.Times(t))
	}
	for _, l := range levels {
		c.text(at(&bench.Subject{Isolation: l}), bottom+20, "dim", "middle", cmp.Or(l, "none"))
	}
	var ends []label
	for _, s := range of {
		m, class, kind := s.Measure(bench.Whole), colour(r, s), "fill "
		if s.Kind == bench.KindBaseline {
			kind = "hollow "
		}
		c.line(at(s), y.at(m.Ratio.Low), at(s), y.at(m.Ratio.High), "line "+class)
		c.circle(at(s), y.at(m.Ratio.Value), 5, kind+class, s.Name+": "+m.Ratio.String())
		ends = append(ends, label{at(s) + 9, y.at(m.Ratio.Value), class, s.Name})
	}
	c.labels(ends)
	return c.end()
}

// label is a text beside a point.
type label struct {
	x, y        float64
	class, text string
}

// labels writes texts so that none lies on another: those that begin at about
// the same place are moved apart.
func (c *canvas) labels(all []label) {
	const apart, column = 14, 60
	slices.SortStableFunc(all, func(a, b label) int { return cmp.Compare(a.y, b.y) })
	for i := range all {
		for j := range i {
			if max(all[i].x, all[j].x)-min(all[i].x, all[j].x) < column && all[i].y-all[j].y < apart {
				all[i].y = all[j].y + apart
			}
		}
	}
	for _, l := range all {
		c.text(l.x, l.y+4, l.class, "start", l.text)
	}
}
