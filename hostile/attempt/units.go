package attempt

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The bounds of what a probe's file asks for. Those of a program, which may be made
// otherwise, are wider: [MaxSize] and [MaxTime].
const (
	MaxBytes  = 2 << 40
	MaxMillis = 60_000
)

// Set reads a size as a probe has it: bytes, or a number with KiB, MiB, GiB or
// TiB.
func (b *Bytes) Set(text string) error {
	digits, scale := text, int64(1)
	for i, unit := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if d, ok := strings.CutSuffix(text, unit); ok {
			digits, scale = d, 1<<(10*(i+1))
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > MaxBytes/scale {
		return fmt.Errorf("%q is no size up to 2TiB: want such as 4096 or 64MiB", text)
	}
	*b = Bytes(n * scale)
	return nil
}

// Set reads a time as a probe has it: milliseconds, or a duration as Go writes
// it.
func (m *Millis) Set(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		d, e := time.ParseDuration(text)
		n, err = d.Milliseconds(), e
	}
	if err != nil || n < 0 || n > MaxMillis {
		return fmt.Errorf("%q is no time up to a minute: want such as 500ms or 2s", text)
	}
	*m = Millis(n)
	return nil
}

// Duration returns the time as one.
func (m Millis) Duration() time.Duration { return time.Duration(m) * time.Millisecond }
