package report

import (
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"tranca"
	"tranca/internal/spelling"
)

// NoSuch is the error for a name that there is not: what says of what ("probe",
// "backend"). It names the nearest of those that there are, or all where they are
// few. It wraps [tranca.ErrInvalid].
func NoSuch(what, name string, known []string) error {
	text := fmt.Sprintf("there is no %s %s", what, quote(name))
	switch near := nearest(name, known); {
	case near != "":
		text += fmt.Sprintf("; did you mean %s?", near)
	case len(known) > 0 && len(known) <= 12:
		text += "; there are " + strings.Join(known, ", ")
	}
	return fmt.Errorf("%w: %s", tranca.ErrInvalid, text)
}

// Selects reports whether one of some patterns fits the id of a probe, or there is
// none. In a pattern, * stands for any text, ? for a character, [a-c] for one of
// some. A pattern that is none is an error that wraps [tranca.ErrInvalid].
func Selects(patterns []string, id string) (bool, error) {
	fits := len(patterns) == 0
	for _, p := range patterns {
		ok, err := path.Match(p, id)
		if err != nil {
			return false, fmt.Errorf("%w: the pattern %s: a [ has no ]", tranca.ErrInvalid, quote(p))
		}
		fits = fits || ok
	}
	return fits, nil
}

// nearest returns the name that the given one is most likely a slip of, or a part
// of, or "".
func nearest(name string, known []string) string {
	near := spelling.Nearest(name, known, utf8.RuneCountInString(name)/3)
	if near != "" || len(name) < 3 {
		return near
	}
	for _, k := range known {
		if strings.Contains(k, name) {
			return k
		}
	}
	return ""
}
