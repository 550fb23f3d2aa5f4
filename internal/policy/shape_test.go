package policy

import (
	"regexp"
	"testing"

	"pgregory.net/rapid"
)

func TestShapesAreThoseOfTheirExpressions(t *testing.T) {
	shapes := []struct {
		is   func(string) bool
		same *regexp.Regexp
	}{
		{isEnvName, regexp.MustCompile(envNamePattern)},
		{isBackendName, regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)},
		{isHostLabel, regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?$`)},
	}
	check := func(t interface{ Errorf(string, ...any) }, text string) {
		for _, s := range shapes {
			if s.is(text) != s.same.MatchString(text) {
				t.Errorf("%q: %s", text, s.same)
			}
		}
	}
	for _, text := range []string{"", "a", "-", "_", "0", "a-", "-a", "a\n", "a.b", "é", "A0_", "0A", "a\x00", "a\xff",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"} {
		check(t, text)
	}
	rapid.Check(t, func(t *rapid.T) {
		check(t, rapid.OneOf(rapid.String(), rapid.StringMatching(`[A-Za-z0-9_-]{0,40}`)).Draw(t, "text"))
	})
}
