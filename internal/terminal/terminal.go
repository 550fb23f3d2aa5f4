// Package terminal knows what a person's terminal is and shields it: it finds
// out whether a stream is one, whether colour and Unicode are wanted there,
// and makes control characters in hostile output visible.
package terminal

import (
	"os"
	"strings"

	"golang.org/x/term"
)

// Is reports whether v is an open terminal. Anything that is no *os.File is
// not.
func Is(v any) bool {
	f, ok := v.(*os.File)
	if !ok || f == nil {
		return false
	}
	return term.IsTerminal(int(f.Fd()))
}

// Colour reports whether output to v should be coloured: v is a terminal that
// is not dumb, and NO_COLOR is not set. getenv is [os.Getenv] or like it.
func Colour(v any, getenv func(string) string) bool {
	return getenv("NO_COLOR") == "" && getenv("TERM") != "dumb" && Is(v)
}

// Unicode reports whether the locale's encoding is UTF-8, by the variables
// that decide about it, in their order.
func Unicode(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := getenv(name); v != "" {
			v = strings.ToLower(v)
			return strings.HasSuffix(v, "utf-8") || strings.HasSuffix(v, "utf8")
		}
	}
	return false
}

// Width returns how many columns the terminal v has, or other where v is none or
// does not say.
func Width(v any, other int) int {
	if !Is(v) {
		return other
	}
	if wide, _, err := term.GetSize(int(v.(*os.File).Fd())); err == nil && wide > 0 {
		return wide
	}
	return other
}
