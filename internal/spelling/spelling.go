// Package spelling finds the word that somebody meant who wrote another one.
package spelling

import "strings"

// longest is the longest name that is looked at, in bytes: the work is
// quadratic, and no word that there is to find is longer.
const longest = 64

// Nearest returns the word that name is most likely a slip of: the first of those
// that the fewest changes turn it into, and at most so many, or "". A change puts a
// letter in, drops or replaces one, or swaps two neighbours. Upper and lower case
// are alike. A name of more than 64 bytes is near to none.
func Nearest(name string, words []string, changes int) string {
	if name == "" || len(name) > longest {
		return ""
	}
	from := []rune(strings.ToLower(name))
	best, least := "", changes+1
	for _, w := range words {
		if d := distance(from, []rune(strings.ToLower(w))); d < least {
			best, least = w, d
		}
	}
	return best
}

// distance counts the changes that turn a into b.
func distance(a, b []rune) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(a)][len(b)]
}
