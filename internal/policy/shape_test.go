package policy

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// imagePattern is what isImage accepts, but for its bounds of length.
const imagePattern = `^(sha256:[0-9a-f]{64}|` +
	`(` + imagePart + `(:[0-9]{1,5})?/)?` + imagePart + `(/` + imagePart + `)*(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?)$`

const imagePart = `[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*`

func TestNamesOfImagesAreBounded(t *testing.T) {
	long := strings.Repeat("a", maxImageName)
	tag := strings.Repeat("b", maxImageTag)
	digest := "@" + digestPrefix + strings.Repeat("0", 64)
	for name, want := range map[string]bool{
		long: true, long + ":" + tag + digest: true, long + "a": false, "a:" + tag + "b": false,
	} {
		if isImage(name) != want {
			t.Errorf("%.20s..., %d bytes: want %t", name, len(name), want)
		}
	}
}

func TestShapesAreThoseOfTheirExpressions(t *testing.T) {
	shapes := []struct {
		is   func(string) bool
		same *regexp.Regexp
	}{
		{isEnvName, regexp.MustCompile(envNamePattern)},
		{isBackendName, regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)},
		{isRuntimeName, regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)},
		{isImage, regexp.MustCompile(imagePattern)},
		{isHostLabel, regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?$`)},
	}
	check := func(t interface{ Errorf(string, ...any) }, text string) {
		for _, s := range shapes {
			if s.is(text) != s.same.MatchString(text) {
				t.Errorf("%q: %s", text, s.same)
			}
		}
	}
	for _, text := range []string{"", "a", "-", "_", "0", "a-", "-a", "a\n", "a.b", "a/b", "a:5/b", "a:5", "a:/b", "a:x/b", "a//b", "/a", "a/", "a@", "a..b", "a__b", "a___b", "a--b", "a._b", "a:-x", "a:.x", "a:5:5", "sha256:0",
		"../a", "a/../b", "A/b", "a:B", "-a:b", "--privileged", "a b", "a@sha256:" + strings.Repeat("0", 64), "sha256:" + strings.Repeat("a", 64), "sha256:" + strings.Repeat("A", 64),
		"a:1@sha256:" + strings.Repeat("0", 64), "a@sha256:" + strings.Repeat("0", 63), "a:123456/b", "a@b@sha256:" + strings.Repeat("0", 64),
		"é", "A0_", "0A", "a\x00", "a\xff",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"} {
		check(t, text)
	}
	rapid.Check(t, func(t *rapid.T) {
		check(t, rapid.OneOf(rapid.String(), rapid.StringMatching(`[A-Za-z0-9_-]{0,40}`),
			rapid.StringMatching(`[a0]{1,3}([._-]{0,3}[a0/]{1,3}){0,4}(:[aB0.-]{1,3})?(@sha256:[0a]{64})?`), rapid.StringMatching(`[aB0._:/@-]{0,12}`)).Draw(t, "text"))
	})
}
