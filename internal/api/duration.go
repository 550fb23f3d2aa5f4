package api

import (
	"fmt"
	"math"
	"time"

	"tranca"
)

// Duration returns so many milliseconds. The error wraps [tranca.ErrInvalid]
// and names the field.
func Duration(field string, ms int64) (time.Duration, error) {
	if ms < 0 || ms > math.MaxInt64/int64(time.Millisecond) {
		return 0, fmt.Errorf("%w: %s is %d: want 0 to %d", tranca.ErrInvalid, field, ms, math.MaxInt64/int64(time.Millisecond))
	}
	return time.Duration(ms) * time.Millisecond, nil
}
