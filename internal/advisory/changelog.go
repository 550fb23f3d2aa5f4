package advisory

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"tranca"
)

// Bounds of a changelog. The largest of real ones has a few hundred kilobytes.
const (
	maxChangelog = 8 << 20
	maxLine      = 64 << 10
	maxIDs       = 4096
)

// Changelog is what the changelog of a distribution's package says of holes.
// The zero value says nothing.
type Changelog struct {
	source  string
	version version
	known   bool
	// mended holds the holes that the latest entry about them names as mended;
	// false where that entry took a mend back.
	mended map[string]bool
}

// about reports whether the changelog is of this version's package.
func (c *Changelog) about(v version) bool {
	return c.known && c.version.compare(v) == 0
}

// ReadChangelog reads a Debian changelog, newest entry first, of the package of
// that name. A hole that it names counts as mended, since a changelog names
// what was done, but where the words around it say that a mend was taken back.
// What is more than 8 MiB, or no changelog, is an error that wraps
// [tranca.ErrInvalid].
func ReadChangelog(name string, r io.Reader) (Changelog, error) {
	c := Changelog{source: "changelog of the Debian package " + name, mended: map[string]bool{}}
	limited := &io.LimitedReader{R: r, N: maxChangelog + 1}
	lines := bufio.NewScanner(limited)
	lines.Buffer(make([]byte, 4096), maxLine)
	var point strings.Builder // one bullet with the lines that continue it
	for lines.Scan() {
		line := lines.Text()
		switch {
		case header(line):
			c.note(&point)
			if err := c.entry(line); err != nil {
				return Changelog{}, err
			}
			continue
		case begins(line) || strings.TrimSpace(line) == "":
			c.note(&point)
		}
		if point.Len() < maxLine {
			point.WriteString(line + " ")
		}
	}
	c.note(&point)
	switch err := lines.Err(); {
	case limited.N <= 0:
		return Changelog{}, fmt.Errorf("%w: changelog of %s: more than %d bytes", tranca.ErrInvalid, name, maxChangelog)
	case errors.Is(err, bufio.ErrTooLong):
		return Changelog{}, fmt.Errorf("%w: changelog of %s: a line of more than %d bytes", tranca.ErrInvalid, name, maxLine)
	case err != nil:
		return Changelog{}, fmt.Errorf("changelog of %s: %w", name, err)
	case !c.known:
		return Changelog{}, fmt.Errorf("%w: changelog of %s: it has no entry", tranca.ErrInvalid, name)
	}
	return c, nil
}

// header reports whether a line begins an entry: "runc (1.1.5+ds1-1) unstable;".
func header(line string) bool {
	name, rest, found := strings.Cut(line, " (")
	return found && name != "" && !strings.ContainsAny(name, " \t") && strings.Contains(rest, ") ")
}

// entry takes the version of the first entry, which is the one installed.
func (c *Changelog) entry(line string) error {
	if c.known {
		return nil
	}
	_, rest, _ := strings.Cut(line, "(")
	text, _, _ := strings.Cut(rest, ")")
	v, err := parseVersion(text)
	if err != nil {
		return fmt.Errorf("its first entry: %w", err)
	}
	c.version, c.known = v, true
	return nil
}

// begins reports whether a line begins a point of an entry.
func begins(line string) bool {
	text := strings.TrimLeft(line, " \t")
	return text != line && (strings.HasPrefix(text, "* ") || strings.HasPrefix(text, "+ ") ||
		strings.HasPrefix(text, "- ") || strings.HasPrefix(text, "-- "))
}

// note takes the holes that a point names. The first mention, which is the
// newest, decides.
func (c *Changelog) note(point *strings.Builder) {
	text := point.String()
	point.Reset()
	lower := strings.ToLower(text)
	back := strings.Contains(lower, "revert") || strings.Contains(lower, "not fixed") || strings.Contains(lower, "still vulnerable")
	for {
		at := strings.Index(text, "CVE-")
		if at < 0 || len(c.mended) >= maxIDs {
			return
		}
		id := idAt(text[at:])
		text = text[at+len("CVE-"):]
		if _, seen := c.mended[id]; id != "" && !seen {
			c.mended[id] = !back
		}
	}
}

// idAt returns the name that begins the text: CVE-, a year, 4 to 7 digits.
func idAt(text string) string {
	year := leading(text[len("CVE-"):])
	rest := text[len("CVE-")+len(year):]
	if len(year) != 4 || !strings.HasPrefix(rest, "-") {
		return ""
	}
	number := leading(rest[1:])
	if len(number) < 4 || len(number) > 7 {
		return ""
	}
	return text[:len("CVE-")+4+1+len(number)]
}
