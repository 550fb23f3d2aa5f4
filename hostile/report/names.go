package report

import (
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"tranca"
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

// nearest returns the name that the given one is most likely a slip of, or "":
// of a third of its letters at most, or one that it is a part of.
func nearest(name string, known []string) string {
	if len(name) > 100 {
		return ""
	}
	best, least := "", utf8.RuneCountInString(name)/3+1
	for _, k := range known {
		if d := distance(name, k); d < least {
			best, least = k, d
		}
	}
	if best != "" || len(name) < 3 {
		return best
	}
	for _, k := range known {
		if strings.Contains(k, name) {
			return k
		}
	}
	return ""
}

// distance is the number of letters to put in, drop or replace between two words.
func distance(a, b string) int {
	from, to := []rune(a), []rune(b)
	row := make([]int, len(to)+1)
	for i := range row {
		row[i] = i
	}
	for i, r := range from {
		before := row[0]
		row[0] = i + 1
		for j, s := range to {
			cost := before
			if r != s {
				cost++
			}
			before = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(to)]
}
