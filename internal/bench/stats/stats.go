// Package stats judges samples without supposing how they are distributed:
// percentiles by the nearest rank, intervals by the bootstrap, and a histogram
// of three significant digits over any range.
package stats

import (
	"cmp"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// Confidence is the chance by which an interval holds its figure.
const Confidence = 0.95

// resamples is how often the bootstrap draws: bounds of a 95 % interval then
// stand on 50 draws each.
const resamples = 2000

// Samples are measured values in ascending order.
type Samples []float64

// Sort makes Samples of values, which it doesn't change.
func Sort(values []float64) Samples {
	s := slices.Clone(values)
	slices.Sort(s)
	return s
}

// Percentile returns the smallest value that at least p percent don't exceed.
// p is in (0, 100]. Of nothing it is 0.
func (s Samples) Percentile(p float64) float64 {
	if len(s) == 0 {
		return 0
	}
	rank := int(math.Ceil(float64(len(s))*p/100 - 1e-9))
	return s[min(max(rank, 1), len(s))-1]
}

// Median is the 50th percentile.
func (s Samples) Median() float64 { return s.Percentile(50) }

// MedianInterval returns bounds for the median. Below 2 samples there are none.
func (s Samples) MedianInterval(seed uint64) (low, high float64, ok bool) {
	if len(s) < 2 {
		return 0, 0, false
	}
	d := newDrawer(seed)
	medians := make(Samples, resamples)
	for i := range medians {
		medians[i] = d.median(s)
	}
	low, high = medians.bounds(s.Median())
	return low, high, true
}

// RatioInterval returns the ratio of the medians of two sets of samples, and
// bounds for it. ok is false where one has fewer than 2, or bare's is 0.
func RatioInterval(of, to Samples, seed uint64) (ratio, low, high float64, ok bool) {
	if len(of) < 2 || len(to) < 2 || to[0] <= 0 {
		return 0, 0, 0, false
	}
	d := newDrawer(seed)
	ratios := make(Samples, resamples)
	for i := range ratios {
		ratios[i] = d.median(of) / d.median(to)
	}
	ratio = of.Median() / to.Median()
	low, high = ratios.bounds(ratio)
	return ratio, low, high, true
}

// bounds are the percentiles between which the middle share of the draws lies.
// What was seen lies between them, too.
func (s Samples) bounds(seen float64) (low, high float64) {
	slices.Sort(s)
	tail := 100 * (1 - Confidence) / 2
	return min(s.Percentile(tail), seen), max(s.Percentile(100-tail), seen)
}

// drawer draws samples anew from samples.
type drawer struct {
	rnd   *rand.Rand
	count []int
}

func newDrawer(seed uint64) *drawer { return &drawer{rnd: rand.New(rand.NewPCG(seed, 1))} }

// median draws as many samples as there are and returns their median. Since
// they are sorted, counting how often each was drawn does for sorting.
func (d *drawer) median(s Samples) float64 {
	d.count = append(d.count[:0], make([]int, len(s))...)
	for range s {
		d.count[d.rnd.IntN(len(s))]++
	}
	rank := (len(s) + 1) / 2
	for i, n := range d.count {
		if rank -= n; rank <= 0 {
			return s[i]
		}
	}
	return s[len(s)-1]
}

// significant is how many bits of a value the histogram keeps: three decimal
// digits.
const significant = 11

// Histogram counts values as an HDR histogram does: each falls into a bin whose
// width is less than a thousandth of it, so that the range may be any and a
// percentile is right in three digits.
type Histogram struct{ bins map[int64]int64 }

// Record counts a value. What is below 0 counts as 0.
func (h *Histogram) Record(v int64) {
	if h.bins == nil {
		h.bins = map[int64]int64{}
	}
	h.bins[Bin(v)]++
}

// Bin returns the highest value of the bin that a value falls into.
func Bin(v int64) int64 {
	if v <= 0 {
		return 0
	}
	shift := max(0, bits.Len64(uint64(v))-significant)
	return v | (1<<shift - 1)
}

// Bins returns each bin's highest value and count, in ascending order.
func (h *Histogram) Bins() [][2]int64 {
	all := make([][2]int64, 0, len(h.bins))
	for v, n := range h.bins {
		all = append(all, [2]int64{v, n})
	}
	slices.SortFunc(all, func(a, b [2]int64) int { return cmp.Compare(a[0], b[0]) })
	return all
}
