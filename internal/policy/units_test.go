package policy

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tranca"
)

func TestParseSize(t *testing.T) {
	for in, want := range map[string]int64{
		"1B": 1, "1048576B": mib, "512KiB": 512 * kib, "64MiB": 64 * mib, "1GiB": gib,
		"1TiB": tib, "007KiB": 7 * kib, "9223372036854775807B": math.MaxInt64, "8388607TiB": 8388607 * tib,
	} {
		if got, err := ParseSize(in); got != want || err != nil {
			t.Errorf("ParseSize(%q) = %d, %v; want %d", in, got, err, want)
		}
	}
}

// TestUnitErrors holds what is no unit, with the suggestion.
func TestUnitErrors(t *testing.T) {
	size := func(s string) error { _, err := ParseSize(s); return err }
	duration := func(s string) error { _, err := ParseDuration(s); return err }
	cpus := func(s string) error { _, err := ParseCPUs(s); return err }
	user := func(s string) error { _, err := ParseUser(s); return err }
	for _, c := range []struct {
		parse    func(string) error
		in, want string // want is a part of the message
		suggest  string
	}{
		{size, "", "empty", ""},
		{size, "256", "no unit", "256MiB"},
		{size, "268435456", "no unit", "256MiB"},
		{size, "100MB", "no unit that is known", "100MiB"},
		{size, "100m", "no unit that is known", "100MiB"},
		{size, "1kb", "no unit that is known", "1KiB"},
		{size, "64 MiB", "no unit that is known", "64MiB"},
		{size, "64mib", "no unit that is known", "64MiB"},
		{size, "5bytes", "no unit that is known", "5B"},
		{size, "1EiB", "no unit that is known", ""},
		{size, "1MiBx", "no unit that is known", "1MiB"},
		{size, "1.5GiB", "not a whole number", "1536MiB"},
		{size, "0.3B", "not a whole number", ""},
		{size, "1..5GiB", "not a whole number", ""},
		{size, "0MiB", "not more than 0", ""},
		{size, "-1MiB", "negative", ""},
		{size, "NaN", "not a number", ""},
		{size, "Inf", "not a number", ""},
		{size, ".", "not a number", ""},
		{size, "9223372036854775808B", "too large", ""},
		{size, "8388608TiB", "too large", ""},
		{size, "99999999999999999999999MiB", "too large", ""},
		{duration, "", "empty", ""},
		{duration, "30", "no unit", "30s"},
		{duration, "30 s", "no unit that is known", "30s"},
		{duration, "30sec", "no unit that is known", "30s"},
		{duration, "5min", "no unit that is known", "5m"},
		{duration, "2days", "no unit that is known", "48h"},
		{duration, "0s", "not more than 0", ""},
		{duration, "-1s", "negative", ""},
		{duration, "1s-2s", "no unit that is known", ""},
		{duration, "9223372036855s", "too long", ""},
		{duration, "NaN", "not a number", ""},
		{cpus, "", "empty", ""},
		{cpus, "0", "not more than 0", ""},
		{cpus, "0.000", "not more than 0", ""},
		{cpus, "-1", "negative", ""},
		{cpus, "500m", "not a plain number", "0.5"},
		{cpus, "50%", "not a plain number", "0.5"},
		{cpus, "1e3", "not a plain number", ""},
		{cpus, "1.", "at most three decimals", ""},
		{cpus, ".5", "at most three decimals", ""},
		{cpus, "1.2.3", "at most three decimals", ""},
		{cpus, "0.1234", "at most three decimals", ""},
		{cpus, "9223372036854775808", "too large", ""},
		{cpus, "9223372036854776", "too large", ""},
		{cpus, "NaN", "not a number", ""},
		{user, "root", "guest agent", "user"},
		{user, "0", "each id from 1", ""},
		{user, "1:0", "each id from 1", ""},
		{user, "+5", "each id from 1", ""},
		{user, "65535", "each id from 1", ""},
		{user, "-1", "each id from 1", ""},
		{user, "1:2:3", "each id from 1", ""},
		{user, "", "each id from 1", ""},
		{user, "nobodi", "each id from 1", "nobody"},
	} {
		err := c.parse(c.in)
		var e *Error
		if !errors.As(err, &e) || !errors.Is(err, tranca.ErrInvalid) {
			t.Errorf("%q: got %v, want an *Error", c.in, err)
			continue
		}
		if !strings.Contains(e.Message, c.want) || e.Suggestion != c.suggest {
			t.Errorf("%q: got %q, suggestion %q; want %q, %q", c.in, e.Message, e.Suggestion, c.want, c.suggest)
		}
	}
}

func TestParseDuration(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"30s": 30 * time.Second, "500ms": 500 * time.Millisecond, "1m30s": 90 * time.Second,
		"1.5h": 90 * time.Minute, "24h": 24 * time.Hour, "1ns": 1,
	} {
		if got, err := ParseDuration(in); got != want || err != nil {
			t.Errorf("ParseDuration(%q) = %v, %v; want %v", in, got, err, want)
		}
	}
}

func TestParseCPUs(t *testing.T) {
	for in, want := range map[string]int64{
		"1": 1000, "0.5": 500, "0.125": 125, "2.50": 2500, "256": 256_000, "0.001": 1,
	} {
		if got, err := ParseCPUs(in); got != want || err != nil {
			t.Errorf("ParseCPUs(%q) = %d, %v; want %d", in, got, err, want)
		}
	}
}

func TestParseUser(t *testing.T) {
	for in, want := range map[string]tranca.User{
		"user": {Name: "user", UID: 1000, GID: 1000}, "nobody": {Name: "nobody", UID: 65534, GID: 65534},
		"1234": {Name: "user", UID: 1234, GID: 1234}, "12:34": {Name: "user", UID: 12, GID: 34},
		"65534:7": {Name: "nobody", UID: 65534, GID: 7},
	} {
		got, err := ParseUser(in)
		if got != want || err != nil {
			t.Errorf("ParseUser(%q) = %v, %v; want %v", in, got, err, want)
		}
		if again, err := ParseUser(formatUser(got)); again != got || err != nil {
			t.Errorf("formatUser(%v) = %q, which is read as %v, %v", got, formatUser(got), again, err)
		}
	}
}

// TestUnitsRoundTrip shows that what is written is read as the same number.
func TestUnitsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, math.MaxInt64).Draw(t, "n") >> rapid.IntRange(0, 62).Draw(t, "shift")
		n = max(n, 1)
		if got, err := ParseSize(FormatSize(n)); got != n || err != nil {
			t.Fatalf("size %d is written %q and read as %d, %v", n, FormatSize(n), got, err)
		}
		if got, err := ParseDuration(FormatDuration(time.Duration(n))); int64(got) != n || err != nil {
			t.Fatalf("duration %d is written %q and read as %d, %v", n, FormatDuration(time.Duration(n)), got, err)
		}
		if got, err := ParseCPUs(FormatCPUs(n)); got != n || err != nil {
			t.Fatalf("cpus %d are written %q and read as %d, %v", n, FormatCPUs(n), got, err)
		}
	})
}
