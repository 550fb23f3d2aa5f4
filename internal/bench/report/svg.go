package report

import (
	"fmt"
	"math"
	"strings"

	"tranca/internal/bench"
	"tranca/internal/terminal"
)

// Plot is one drawing.
type Plot struct {
	// Name is that of a file, without its end.
	Name, What string
	// SVG is the drawing: whole and well-formed, with its own colours for light
	// and dark.
	SVG string
}

// Plots draws a result. One for which there is nothing is left out.
func Plots(r *bench.Result) []Plot {
	var all []Plot
	for _, p := range []struct {
		Plot
		draw func(*bench.Result) string
	}{
		{Plot{Name: "latency", What: "`print(6*7)` in a fresh sandbox, from asking for it until nothing of it is left. Circle: first byte. Dot: median. Box: to the 90th percentile. Line: to the 99th. Tick: the slowest."}, latency},
		{Plot{Name: "throughput", What: "Whole runs in a second against the number of callers. Baselines are dashed."}, throughput},
		{Plot{Name: "protection", What: "A whole run as a multiple of a bare one, with its 95 % interval, by isolation level. Others' sandboxes stand at the level of ours that is built alike, and are hollow."}, protection},
	} {
		if svg := p.draw(r); svg != "" {
			p.SVG = svg
			all = append(all, p.Plot)
		}
	}
	return all
}

// canvas is a drawing in the making.
type canvas struct {
	b             strings.Builder
	width, height float64
}

// style holds the colours. They follow what the reader's system prefers; a
// picture that stands alone has them, too.
const style = `
.bg{fill:#ffffff}text{font:12px system-ui,sans-serif;fill:#1f2328}.dim{fill:#59636e}.head{font-size:15px;font-weight:600}
.grid{stroke:#d1d9e0;stroke-width:1}.c0{--c:#59636e}.c1{--c:#0969da}.c2{--c:#1a7f37}.c3{--c:#bc4c00}.c4{--c:#8250df}.c5{--c:#bf3989}.c6{--c:#9a6700}.c7{--c:#1b7c83}.c8{--c:#a40e26}
.line{stroke:var(--c);fill:none;stroke-width:2}.dash{stroke-dasharray:5 4}.fill{fill:var(--c);stroke:var(--c)}.hollow{fill:#ffffff;stroke:var(--c);stroke-width:2}.box{fill:var(--c);fill-opacity:.35;stroke:var(--c)}
@media (prefers-color-scheme:dark){.bg{fill:#0d1117}text{fill:#e6edf3}.dim{fill:#9198a1}.grid{stroke:#3d444d}.hollow{fill:#0d1117}
.c0{--c:#9198a1}.c1{--c:#4493f8}.c2{--c:#3fb950}.c3{--c:#f0883e}.c4{--c:#ab7df8}.c5{--c:#db61a2}.c6{--c:#d29922}.c7{--c:#39c5cf}.c8{--c:#f85149}}
`

// colours is how many there are beside that of bare.
const colours = 8

func newCanvas(title string, width, height float64) *canvas {
	c := &canvas{width: width, height: height}
	fmt.Fprintf(&c.b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" role="img" aria-label="%s"><style>%s</style>`,
		width, height, escape(title), style)
	fmt.Fprintf(&c.b, "\n"+`<rect class="bg" width="%.0f" height="%.0f"/>`+"\n", width, height)
	c.text(16, 24, "head", "start", title)
	return c
}

func (c *canvas) end() string { return c.b.String() + "</svg>\n" }

func (c *canvas) text(x, y float64, class, anchor, text string) {
	fmt.Fprintf(&c.b, `<text x="%.1f" y="%.1f" class="%s" text-anchor="%s">%s</text>`+"\n", x, y, class, anchor, escape(text))
}

func (c *canvas) line(x1, y1, x2, y2 float64, class string) {
	fmt.Fprintf(&c.b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="%s"/>`+"\n", x1, y1, x2, y2, class)
}

func (c *canvas) circle(x, y, r float64, class, title string) {
	fmt.Fprintf(&c.b, `<circle cx="%.1f" cy="%.1f" r="%.1f" class="%s"><title>%s</title></circle>`+"\n", x, y, r, class, escape(title))
}

func (c *canvas) rect(x, y, w, h float64, class string) {
	fmt.Fprintf(&c.b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" class="%s"/>`+"\n", x, y, w, h, class)
}

// escape makes a text fit for XML, whatever it holds.
func escape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;").Replace(terminal.Clean(text))
}

// scale is a logarithmic axis between two places.
type scale struct{ low, high, from, to float64 }

// newScale takes in all values that are above 0; ok is false where none is.
func newScale(values []float64, from, to float64) (s scale, ok bool) {
	low, high := math.Inf(1), 0.0
	for _, v := range values {
		if v > 0 {
			low, high = min(low, v), max(high, v)
		}
	}
	if high == 0 {
		return scale{}, false
	}
	return scale{low / 1.15, high * 1.15, from, to}, true
}

func (s scale) at(v float64) float64 {
	v = min(max(v, s.low), s.high)
	return s.from + (s.to-s.from)*math.Log(v/s.low)/math.Log(s.high/s.low)
}

// ticks are round numbers on the axis: 1, 2 and 5 of each decade, fewer on a
// long axis.
func (s scale) ticks() []float64 {
	steps := []float64{1, 2, 5}
	if s.high/s.low > 1e3 {
		steps = []float64{1}
	}
	var all []float64
	for decade := math.Pow(10, math.Floor(math.Log10(s.low))); decade <= s.high; decade *= 10 {
		for _, step := range steps {
			if v := decade * step; v >= s.low && v <= s.high {
				all = append(all, v)
			}
		}
	}
	return all
}

// colour returns the class of a subject: the same one in every plot.
func colour(r *bench.Result, s *bench.Subject) string {
	n := 0
	for i := range r.Subjects {
		if r.Subjects[i].Kind == bench.KindBare {
			continue
		}
		if n++; r.Subjects[i].Name == s.Name {
			return fmt.Sprintf("c%d", (n-1)%colours+1)
		}
	}
	return "c0"
}

// having lists the subjects with figures of a measure.
func having(r *bench.Result, name bench.MeasureName) []*bench.Subject {
	var all []*bench.Subject
	for i := range r.Subjects {
		if r.Subjects[i].Measure(name) != nil {
			all = append(all, &r.Subjects[i])
		}
	}
	return all
}
