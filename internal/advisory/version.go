package advisory

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tranca"
)

const (
	maxVersion = 128 // bytes
	maxNumbers = 6
)

// version is what of a version's text says how new the upstream source is.
type version struct {
	numbers []int64
	// before ranks what comes before the release of these numbers: 0 is the
	// release itself, less is earlier. number is that of the candidate.
	before int
	number int64
}

// stages are the words for what comes before a release, earliest first.
var stages = []string{"dev", "alpha", "beta", "pre", "rc"}

// parseVersion reads a version. What a distribution adds (an epoch, +dfsg1,
// ~ds1, -1+deb12u1) is passed over, since it says nothing about upstream. Of
// gVisor's dates and of a Go pseudo-version the date is the number.
func parseVersion(s string) (version, error) {
	bad := fmt.Errorf("%w: version %.40q: want numbers such as 1.2.3", tranca.ErrInvalid, s)
	if len(s) > maxVersion || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return version{}, bad // it goes into messages as it is
	}
	rest := s
	if epoch, after, found := strings.Cut(rest, ":"); found && isNumber(epoch) {
		rest = after
	}
	rest = strings.TrimPrefix(strings.TrimPrefix(rest, "release-"), "v")
	var v version
	for {
		digits := leading(rest)
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || len(v.numbers) == maxNumbers {
			return version{}, bad
		}
		v.numbers, rest = append(v.numbers, n), rest[len(digits):]
		if !strings.HasPrefix(rest, ".") || leading(rest[1:]) == "" {
			break
		}
		rest = rest[1:]
	}
	if day, ok := pseudoDay(v, rest); ok {
		return version{numbers: []int64{day}}, nil
	}
	if rest != "" && !strings.ContainsAny(rest[:1], "-+~.") && stage(rest) < 0 {
		return version{}, bad
	}
	v.before, v.number = candidate(rest)
	return v, nil
}

// pseudoDay returns the day of a Go pseudo-version, such as
// v0.0.0-20260905035102-160fafc42237.
func pseudoDay(v version, rest string) (int64, bool) {
	if slices.ContainsFunc(v.numbers, func(n int64) bool { return n != 0 }) {
		return 0, false
	}
	stamp, _, found := strings.Cut(strings.TrimPrefix(rest, "-"), "-")
	if !found || len(stamp) != len("20060102150405") || !isNumber(stamp) {
		return 0, false
	}
	day, err := strconv.ParseInt(stamp[:8], 10, 64)
	return day, err == nil
}

// candidate reads what follows the numbers: "-rc.3", "~rc93+ds1", "-dev".
func candidate(rest string) (before int, number int64) {
	rest = strings.TrimLeft(rest, "-~.+")
	at := stage(rest)
	if at < 0 {
		return 0, 0
	}
	rest = strings.TrimLeft(rest[len(stages[at]):], ".-")
	number, err := strconv.ParseInt(leading(rest), 10, 64)
	if err != nil {
		number = 0
	}
	return at - len(stages), number
}

// stage returns which word of stages begins the text, or -1. A longer word that
// begins likewise ("rcu", "preview") is taken for it too: to call something
// older than it is names a hole too many, never one too few.
func stage(text string) int {
	return slices.IndexFunc(stages, func(word string) bool {
		return strings.HasPrefix(strings.ToLower(text), word)
	})
}

// compare returns less than 0, 0 or more, as v is older than w, the same, or
// newer. Numbers that are left out are 0.
func (v version) compare(w version) int {
	for i := range max(len(v.numbers), len(w.numbers)) {
		if a, b := v.at(i), w.at(i); a != b {
			if a < b {
				return -1
			}
			return 1
		}
	}
	if v.before != w.before {
		return v.before - w.before
	}
	switch {
	case v.number < w.number:
		return -1
	case v.number > w.number:
		return 1
	}
	return 0
}

// sameLine reports whether both are of one line of releases.
func (v version) sameLine(w version) bool {
	return v.at(0) == w.at(0) && v.at(1) == w.at(1)
}

func (v version) at(i int) int64 {
	if i < len(v.numbers) {
		return v.numbers[i]
	}
	return 0
}

func leading(s string) string {
	return s[:len(s)-len(strings.TrimLeft(s, "0123456789"))]
}

func isNumber(s string) bool { return s != "" && leading(s) == s }

// FindVersion returns the first word of a program's output that is a version
// with a dot in it, such as "1.1.5+ds1" in "runc version 1.1.5+ds1".
func FindVersion(text string) (string, bool) {
	line, _, _ := strings.Cut(text, "\n")
	for _, word := range strings.Fields(line) {
		word = strings.TrimRight(word, ",;")
		if _, err := parseVersion(word); err == nil && strings.Contains(word, ".") {
			return word, true
		}
	}
	return "", false
}
