package policy

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// sizeUnits are the units of a size, smallest first. There are no decimal
// ones: "100MB" means two different numbers to two people.
var sizeUnits = []struct {
	name  string
	bytes int64
}{
	{"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
}

// ParseSize reads a size: a whole number and B, KiB, MiB, GiB or TiB, without
// a space. It is more than 0 and less than 2^63 bytes. The error is an
// [*Error] without file or path.
func ParseSize(s string) (int64, error) {
	digits, unit := splitNumber(s)
	if err := refuseNumber("size", "256MiB", s, digits); err != nil {
		return 0, err
	}
	if strings.Contains(digits, ".") {
		e := errorf("", "size %s is not a whole number", quote(s))
		e.Suggestion = right(wholeSize(digits, unit), ParseSize)
		return 0, e
	}
	for _, u := range sizeUnits {
		if u.name == unit {
			return scaled("size", s, digits, u.bytes)
		}
	}
	e := errorf("", "size %s has no unit that is known: want B, KiB, MiB, GiB or TiB", quote(s))
	if unit == "" {
		e.Message = "size " + quote(s) + " has no unit: want B, KiB, MiB, GiB or TiB"
	}
	e.Suggestion = right(sizeSuggestion(digits, unit), ParseSize)
	return 0, e
}

// FormatSize writes a size that ParseSize reads, in the largest unit that
// divides it.
func FormatSize(n int64) string {
	for i := len(sizeUnits) - 1; i > 0; i-- {
		if u := sizeUnits[i]; n != 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}

// ParseDuration reads a duration as Go writes it: "30s", "1m30s", "500ms". It
// is more than 0. The error is an [*Error] without file or path.
func ParseDuration(s string) (time.Duration, error) {
	digits, unit := splitNumber(s)
	if err := refuseNumber("duration", "30s", s, digits); err != nil {
		return 0, err
	}
	d, err := time.ParseDuration(s)
	switch {
	case err == nil && d > 0:
		return d, nil
	case err == nil:
		return 0, errorf("", "duration %s is not more than 0: there is no \"unlimited\"", quote(s))
	case unit == "":
		return 0, &Error{
			Message:    "duration " + quote(s) + " has no unit: want ms, s, m or h",
			Suggestion: right(digits+"s", ParseDuration),
		}
	case strings.Contains(err.Error(), "unknown unit"), strings.Contains(unit, " "):
		return 0, &Error{
			Message:    "duration " + quote(s) + " has no unit that is known: want ms, s, m or h",
			Suggestion: right(durationSuggestion(digits, unit), ParseDuration),
		}
	}
	return 0, errorf("", "duration %s is not a number and a unit, or too long: want such as 30s", quote(s))
}

// FormatDuration writes a duration that ParseDuration reads, without parts
// that are 0: "24h", not "24h0m0s".
func FormatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// ParseCPUs reads a share of CPUs, "1" or "0.5", and returns thousandths. It
// has at most three decimals and is more than 0. The error is an [*Error]
// without file or path.
func ParseCPUs(s string) (int64, error) {
	digits, rest := splitNumber(s)
	if err := refuseNumber("number of CPUs", "0.5", s, digits); err != nil {
		return 0, err
	}
	if rest != "" {
		return 0, &Error{
			Message:    "number of CPUs " + quote(s) + " is not a plain number: want such as 0.5",
			Suggestion: right(cpuSuggestion(digits, rest), ParseCPUs),
		}
	}
	whole, part, dotted := strings.Cut(digits, ".")
	if len(part) > 3 || (dotted && (part == "" || whole == "" || strings.Contains(part, "."))) {
		return 0, errorf("", "number of CPUs %s: want at most three decimals, such as 0.125", quote(s))
	}
	return scaled("number of CPUs", s, whole+(part + "000")[:3], 1)
}

// FormatCPUs writes thousandths as ParseCPUs reads them: 500 is "0.5".
func FormatCPUs(milli int64) string {
	s := strconv.FormatInt(milli/1000, 10)
	if part := milli % 1000; part > 0 {
		s += "." + strings.TrimRight((strconv.FormatInt(1000+part, 10))[1:], "0")
	}
	return s
}

// splitNumber cuts the digits and dots from the front of s.
func splitNumber(s string) (digits, rest string) {
	i := strings.IndexFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
	if i < 0 {
		return s, ""
	}
	return s[:i], s[i:]
}

// refuseNumber refuses what does not begin with a plain number.
func refuseNumber(what, example, s, digits string) *Error {
	switch {
	case s == "":
		return errorf("", "%s is empty: want such as %s", what, example)
	case strings.HasPrefix(s, "-"):
		return errorf("", "%s %s is negative: want such as %s", what, quote(s), example)
	case strings.Trim(digits, ".") == "":
		return errorf("", "%s %s is not a number: want such as %s", what, quote(s), example)
	}
	return nil
}

// scaled returns digits times factor, more than 0 and less than 2^63.
func scaled(what, s, digits string, factor int64) (int64, error) {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n > math.MaxInt64/factor {
		return 0, errorf("", "%s %s is too large", what, quote(s))
	}
	if n == 0 {
		return 0, errorf("", "%s %s is not more than 0: there is no \"unlimited\"", what, quote(s))
	}
	return n * factor, nil
}

// right returns a suggestion only if it is right itself.
func right[T any](suggestion string, parse func(string) (T, error)) string {
	if suggestion == "" {
		return ""
	}
	if _, err := parse(suggestion); err != nil {
		return ""
	}
	return suggestion
}

// sizeSuggestion guesses the size that was meant by a number with a wrong
// unit. A bare number of a MiB or more is most likely in bytes.
func sizeSuggestion(digits, unit string) string {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n == 0 {
		return ""
	}
	unit = strings.ToLower(strings.TrimSpace(unit))
	if unit == "" {
		if n >= 1<<20 {
			return FormatSize(n)
		}
		return digits + "MiB"
	}
	for _, u := range sizeUnits {
		if unit[0] == strings.ToLower(u.name)[0] && len(unit) <= len("bytes") {
			return digits + u.name
		}
	}
	return ""
}

// wholeSize turns "1.5" and "GiB" into "1536MiB", where that comes out whole.
func wholeSize(digits, unit string) string {
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return ""
	}
	for _, u := range sizeUnits {
		if n := f * float64(u.bytes); u.name == unit && n >= 1 && n < 1<<62 && n == math.Trunc(n) {
			return FormatSize(int64(n))
		}
	}
	return ""
}

func durationSuggestion(digits, unit string) string {
	unit = strings.ToLower(strings.TrimSpace(unit))
	if n, err := strconv.Atoi(digits); err == nil && strings.HasPrefix(unit, "d") && n < 1000 {
		return strconv.Itoa(24*n) + "h"
	}
	if strings.ContainsFunc(unit, func(r rune) bool { return r < 'a' || r > 'z' }) {
		return ""
	}
	for _, u := range []string{"ms", "s", "m", "h"} {
		if strings.HasPrefix(unit, u) || (u == "ms" && strings.HasPrefix(unit, "milli")) {
			return digits + u
		}
	}
	return ""
}

func cpuSuggestion(digits, rest string) string {
	if n, err := strconv.ParseInt(digits, 10, 32); err == nil && (rest == "m" || rest == "%") && n > 0 {
		if rest == "%" {
			n *= 10
		}
		return FormatCPUs(n)
	}
	return ""
}
