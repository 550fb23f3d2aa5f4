package hostcheck

import (
	"slices"
	"strconv"
	"strings"
)

// finding is what was looked at, in the words that rules judge.
type finding struct {
	// value is what rules are about; options are those of a mount.
	value   string
	options []string
	// seen is for people; empty means the value.
	seen string
	// unknown says why nothing was seen.
	unknown string
	// absent says that there is nothing to look at.
	absent bool
}

// judge applies the rules.
func (c *Check) judge(f finding) (Verdict, string) {
	seen := f.seen
	if seen == "" {
		seen = f.value
	}
	switch {
	case f.unknown != "":
		return Unknown, f.unknown
	case f.absent:
		if seen == "" {
			seen = "not there"
		}
		return c.Absent, seen
	}
	for i := range c.Rules {
		if c.Rules[i].matches(f) {
			return c.Rules[i].Is, seen
		}
	}
	return Unknown, seen // the last rule has no condition, so this is not reached
}

func (r *Rule) matches(f finding) bool {
	switch {
	case r.In != nil && !slices.Contains(r.In, f.value),
		r.Prefix != "" && !strings.HasPrefix(f.value, r.Prefix),
		r.Contains != "" && !strings.Contains(f.value, r.Contains),
		r.Option != "" && !slices.Contains(f.options, r.Option),
		r.Version != "" && !atLeast(f.value, r.Version):
		return false
	}
	if r.Min == nil && r.Max == nil {
		return true
	}
	n, err := strconv.ParseInt(f.value, 10, 64)
	return err == nil && (r.Min == nil || n >= *r.Min) && (r.Max == nil || n <= *r.Max)
}

// atLeast compares the numbers at the beginning of two versions.
func atLeast(have, want string) bool {
	a, ok := numbers(have)
	b, _ := numbers(want)
	return ok && slices.Compare(a, b) >= 0
}

// numbers reads "5.14" out of "5.14.0-362.el9", at most three.
func numbers(s string) (all []int, ok bool) {
	for len(all) < 3 {
		digits := s[:len(s)-len(strings.TrimLeft(s, "0123456789"))]
		n, err := strconv.Atoi(digits)
		if err != nil {
			return all, len(all) > 0
		}
		all, s = append(all, n), s[len(digits):]
		if !strings.HasPrefix(s, ".") {
			break
		}
		s = s[1:]
	}
	return all, true
}
