package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

func TestPercentileIsTheNearestRank(t *testing.T) {
	var values []float64
	for i := 100; i >= 1; i-- {
		values = append(values, float64(i))
	}
	s := Sort(values)
	for p, want := range map[float64]float64{50: 50, 90: 90, 99: 99, 100: 100, 0.5: 1, 99.5: 100} {
		if got := s.Percentile(p); got != want {
			t.Errorf("p%v of 1..100 is %v, want %v", p, got, want)
		}
	}
	if values[0] != 100 {
		t.Error("the values were sorted in place")
	}
	if got := (Samples{7}).Percentile(99); got != 7 {
		t.Errorf("p99 of one value: %v", got)
	}
	if got := (Samples)(nil).Median(); got != 0 {
		t.Errorf("median of nothing: %v", got)
	}
}

// TestIntervalsHoldTheTruth draws samples from distributions whose median is
// known, and counts how often the interval holds it: about 95 times of 100.
func TestIntervalsHoldTheTruth(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	for _, d := range []struct {
		name   string
		draw   func() float64
		median float64
	}{
		{"uniform", rnd.Float64, 0.5},
		{"exponential", rnd.ExpFloat64, math.Ln2},
		{"log-normal", func() float64 { return math.Exp(rnd.NormFloat64()) }, 1},
	} {
		const trials = 120
		held := 0
		for trial := range trials {
			values := make([]float64, 61)
			for i := range values {
				values[i] = d.draw()
			}
			low, high, ok := Sort(values).MedianInterval(uint64(trial))
			if !ok {
				t.Fatal("no interval of 61 samples")
			}
			if low <= d.median && d.median <= high {
				held++
			}
		}
		if share := float64(held) / trials; share < 0.88 || share > 0.995 {
			t.Errorf("%s: the interval held the median in %.1f %% of the trials, want about 95", d.name, 100*share)
		}
	}
}

func TestRatioHoldsTheTruth(t *testing.T) {
	rnd := rand.New(rand.NewPCG(8, 8))
	const trials = 120
	held := 0
	for trial := range trials {
		of, to := make([]float64, 61), make([]float64, 61)
		for i := range of {
			of[i], to[i] = 3*math.Exp(rnd.NormFloat64()/4), math.Exp(rnd.NormFloat64()/4)
		}
		ratio, low, high, ok := RatioInterval(Sort(of), Sort(to), uint64(trial))
		if !ok || low > ratio || ratio > high {
			t.Fatalf("%v in %v to %v, %v", ratio, low, high, ok)
		}
		if low <= 3 && 3 <= high {
			held++
		}
	}
	if share := float64(held) / trials; share < 0.88 || share > 0.995 {
		t.Errorf("the interval held the ratio in %.1f %% of the trials, want about 95", 100*share)
	}
}

func TestTooFewSamplesHaveNoInterval(t *testing.T) {
	if _, _, ok := (Samples{1}).MedianInterval(1); ok {
		t.Error("an interval of one sample")
	}
	if _, _, _, ok := RatioInterval(Samples{1, 2}, Samples{1}, 1); ok {
		t.Error("a ratio to one sample")
	}
	if _, _, _, ok := RatioInterval(Samples{1, 2}, Samples{0, 1}, 1); ok {
		t.Error("a ratio to 0")
	}
}

func TestTheSameSeedGivesTheSameInterval(t *testing.T) {
	s := Samples{1, 2, 4, 8, 16, 32, 64}
	low, high, _ := s.MedianInterval(5)
	for range 3 {
		if l, h, _ := s.MedianInterval(5); l != low || h != high {
			t.Fatalf("%v to %v, then %v to %v", low, high, l, h)
		}
	}
}

// TestHistogramKeepsThreeDigits holds the histogram against the samples it was
// made of: over any range a percentile is never below, and less than a
// thousandth above.
func TestHistogramKeepsThreeDigits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, math.MaxInt64), 1, 200).Draw(t, "values")
		var h Histogram
		floats := make([]float64, len(values))
		for i, v := range values {
			h.Record(v)
			floats[i] = float64(v)
		}
		bins, exact := h.Bins(), Sort(floats)
		var n, last int64 = 0, -1
		for _, b := range bins {
			if b[0] <= last {
				t.Fatalf("bins don't ascend: %v", bins)
			}
			last, n = b[0], n+b[1]
		}
		if n != int64(len(values)) {
			t.Fatalf("%d values of %d are counted", n, len(values))
		}
		for _, p := range []float64{1, 50, 90, 99, 100} {
			got, want := float64(percentileOf(bins, p)), exact.Percentile(p)
			if got < want || got > want*1.001 {
				t.Fatalf("p%v is %v, exactly %v", p, got, want)
			}
		}
	})
}

// percentileOf returns a percentile of bins, as [Samples.Percentile] does.
func percentileOf(bins [][2]int64, p float64) int64 {
	var total int64
	for _, b := range bins {
		total += b[1]
	}
	rank := max(int64(math.Ceil(float64(total)*p/100-1e-9)), 1)
	for _, b := range bins {
		if rank -= b[1]; rank <= 0 {
			return b[0]
		}
	}
	return 0
}
