package cgroup

import (
	"errors"
	"testing"
	"time"
)

// readings gives one after the other, the last again and again; a negative one
// is an error.
func readings(values ...int64) func() (int64, error) {
	return func() (int64, error) {
		v := values[0]
		if len(values) > 1 {
			values = values[1:]
		}
		if v < 0 {
			return 0, errors.New("gone")
		}
		return v, nil
	}
}

// Memory that a kernel in user space returns late is waited for, memory that
// stays is not, and nothing is waited for without end.
func TestLowest(t *testing.T) {
	endless := int64(1 << 40)
	for name, c := range map[string]struct {
		use    func() (int64, error)
		want   int64
		sleeps int
	}{
		"returned already":      {readings(10), 10, 0},
		"just enough":           {readings(20), 20, 0},
		"falls":                 {readings(100, 80, 40, 12), 12, 3},
		"pauses":                {readings(100, 100, 100, 100, 60, 60, 15), 15, 6},
		"falls, and some stays": {readings(100, 50), 50, 1 + settleWait},
		"all of it stays":       {readings(100), 100, settleWait},
		"grows":                 {readings(100, 120), 100, settleWait},
		"falls without end":     {func() (int64, error) { endless--; return endless, nil }, 1<<40 - 1 - settleSteps, settleSteps},
		"is gone":               {readings(100, -1), 100, 1},
	} {
		t.Run(name, func(t *testing.T) {
			sleeps := 0
			got := lowest(c.use, 20, func(time.Duration) { sleeps++ })
			if got != c.want || sleeps != c.sleeps {
				t.Errorf("%d after %d sleeps, want %d after %d", got, sleeps, c.want, c.sleeps)
			}
		})
	}
}
