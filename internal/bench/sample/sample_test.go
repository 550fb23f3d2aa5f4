package sample

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestPercentileIsTheNearestRank(t *testing.T) {
	var s Series
	for i := 100; i >= 1; i-- {
		s = append(s, time.Duration(i))
	}
	for p, want := range map[float64]time.Duration{50: 50, 95: 95, 99: 99, 100: 100, 0.5: 1} {
		if got := s.Percentile(p); got != want {
			t.Errorf("p%v of 1..100 is %v, want %v", p, got, want)
		}
	}
	if got := (Series{7}).Percentile(99); got != 7 {
		t.Errorf("p99 of one value: %v", got)
	}
	if got := (Series)(nil).Percentile(50); got != 0 {
		t.Errorf("p50 of nothing: %v", got)
	}
}

func TestInterleaveTimesAllInEachRound(t *testing.T) {
	var order []string
	subject := func(name string) Subject {
		return Subject{Name: name, Do: func(context.Context) error {
			order = append(order, name)
			return nil
		}}
	}
	got, err := Interleave(t.Context(), []Subject{subject("a"), subject("b")}, 2, 10, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(got["a"]) != 10 || len(got["b"]) != 10 || len(order) != 24 {
		t.Errorf("%d and %d times, %d calls", len(got["a"]), len(got["b"]), len(order))
	}
	mixed := false
	for i := 0; i < len(order); i += 2 {
		if order[i] == order[i+1] {
			t.Fatalf("round %d: %q twice", i/2, order[i])
		}
		mixed = mixed || order[i] != order[0]
	}
	if !mixed {
		t.Error("every round had the same order")
	}
}

func TestInterleaveStopsAtAnError(t *testing.T) {
	boom := errors.New("boom")
	calls := 0
	_, err := Interleave(t.Context(), []Subject{{
		Name: "a",
		Do:   func(context.Context) error { calls++; return boom },
	}}, 1, 5, 1)
	if !errors.Is(err, boom) || calls != 1 {
		t.Errorf("%d calls, %v", calls, err)
	}
}

func TestPrepareIsNotTimed(t *testing.T) {
	got, err := Interleave(t.Context(), []Subject{{
		Name:    "a",
		Prepare: func(context.Context) error { time.Sleep(200 * time.Millisecond); return nil },
		Do:      func(context.Context) error { return nil },
	}}, 0, 1, 1)
	if err != nil || got["a"][0] >= 200*time.Millisecond {
		t.Errorf("%v, %v: the preparation was timed", got, err)
	}
}
