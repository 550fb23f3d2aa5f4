package sample

import (
	"context"
	"errors"
	"testing"
	"time"
)

func counting(subjects int, plan Plan, do func(i int) error) (counts []int, failed []error, err error) {
	counts, failed = make([]int, subjects), make([]error, subjects)
	var all []Subject
	for i := range subjects {
		all = append(all, Subject{Do: func(context.Context) error { return do(i) }})
	}
	err = Spread(context.Background(), all, plan,
		func(i int, _ time.Duration) { counts[i]++ }, func(i int, err error) { failed[i] = err })
	return counts, failed, err
}

func TestSpreadWithoutABudgetTimesAllInEachRound(t *testing.T) {
	counts, _, err := counting(3, Plan{Rounds: 5, Least: 2, Seed: 1}, func(int) error { return nil })
	if err != nil || counts[0] != 5 || counts[1] != 5 || counts[2] != 5 {
		t.Errorf("%v, %v", counts, err)
	}
}

func TestSpreadLeavesSlowOnesOutOfRounds(t *testing.T) {
	slow := func(i int) error {
		if i == 1 {
			time.Sleep(300 * time.Millisecond)
		}
		return nil
	}
	began := time.Now()
	counts, _, err := counting(2, Plan{Rounds: 20, Least: 2, Budget: 1500 * time.Millisecond, Seed: 1}, slow)
	if err != nil || counts[0] != 20 || counts[1] < 2 || counts[1] > 3 {
		t.Errorf("%v, %v", counts, err)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("it took %s of a budget of 1.5 s", took)
	}
	// Where the budget is too small, the least is done all the same.
	counts, _, err = counting(2, Plan{Rounds: 20, Least: 2, Budget: 1, Seed: 1}, slow)
	if err != nil || counts[0] != 2 || counts[1] != 2 {
		t.Errorf("%v, %v", counts, err)
	}
}

func TestSpreadGoesOnWithoutTheOneThatFails(t *testing.T) {
	boom := errors.New("boom")
	calls := 0
	counts, failed, err := counting(2, Plan{Rounds: 6, Least: 2, Seed: 1}, func(i int) error {
		if i == 0 {
			if calls++; calls > 2 {
				return boom
			}
		}
		return nil
	})
	if err != nil || counts[0] != 2 || counts[1] != 6 || !errors.Is(failed[0], boom) || failed[1] != nil {
		t.Errorf("%v, %v, %v", counts, failed, err)
	}
}

func TestSpreadEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	boom := errors.New("boom")
	err := Spread(ctx, []Subject{{Do: func(context.Context) error { cancel(boom); return boom }}}, Plan{Rounds: 5},
		func(int, time.Duration) { t.Error("a sample of a run that was ended") },
		func(int, error) { t.Error("the subject is blamed for the end") })
	if !errors.Is(err, boom) {
		t.Errorf("%v", err)
	}
}

func TestDueIsEven(t *testing.T) {
	for _, c := range []struct{ rounds, times int }{{10, 0}, {10, 3}, {10, 10}, {7, 5}} {
		n := 0
		for r := range c.rounds {
			if due(r, c.rounds, c.times) {
				n++
			}
		}
		if n != c.times {
			t.Errorf("%d of %d rounds instead of %d", n, c.rounds, c.times)
		}
	}
}

func TestSpreadEndsAtItsDeadline(t *testing.T) {
	for _, first := range []bool{false, true} {
		plan := Plan{Rounds: 5, Least: 2, Deadline: time.Now().Add(-time.Second), First: first}
		counts, _, err := counting(2, plan, func(int) error { return nil })
		want := 0
		if first {
			want = 1
		}
		if err != nil || counts[0] != want || counts[1] != want {
			t.Errorf("first round %t: %v, %v", first, counts, err)
		}
	}
}
