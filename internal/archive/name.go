package archive

import (
	"fmt"
	"strings"

	"tranca"
)

// The bounds of names, which are Linux's.
const (
	maxPath = 4096
	maxName = 255
)

// refuse is the error of an entry.
func refuse(name, format string, args ...any) error {
	return fmt.Errorf("%w: archive entry %.200q: %s", tranca.ErrInvalid, name, fmt.Sprintf(format, args...))
}

// CleanName checks the name of an archive's entry and returns it without "."
// and double slashes; "." is the folder itself. A name that is absolute, that
// holds ".." or NUL, or that is longer than Linux has names, is
// [tranca.ErrInvalid].
func CleanName(name string) (string, error) { return clean(name) }

// clean checks an entry's name and returns it without "." and double slashes;
// "." is the folder itself.
func clean(name string) (string, error) {
	switch {
	case name == "":
		return "", refuse(name, "it has no name")
	case len(name) > maxPath:
		return "", refuse(name, "a name of %d bytes: at most %d fit", len(name), maxPath)
	case strings.IndexByte(name, 0) >= 0:
		return "", refuse(name, "a NUL in its name")
	case name[0] == '/':
		return "", refuse(name, "an absolute name: make the archive with names relative to its folder")
	}
	var parts []string
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "" || part == ".":
		case part == "..":
			return "", refuse(name, "a name with ..")
		case len(part) > maxName:
			return "", refuse(name, "a part of %d bytes: at most %d fit", len(part), maxName)
		default:
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return ".", nil
	}
	return strings.Join(parts, "/"), nil
}

// below reports whether a path is made of names only.
func below(path string) bool {
	got, err := clean(path)
	return err == nil && got == path && path != "."
}

// leadsOut says why a link's target may lead out of the archive's folder; ""
// where it can't.
//
// Parts ".." may only come first, as many as the link has folders above it.
// Behind a name one could go up from where another link leads to: with a link
// "here" to ".", the target "here/../x" is outside. With that, and as no link is
// below a link, following links in the archive never leaves it.
func leadsOut(name, target string) string {
	switch {
	case target == "":
		return "no target"
	case len(target) > maxPath:
		return "a target of more than 4096 bytes"
	case strings.IndexByte(target, 0) >= 0:
		return "a NUL in its target"
	case target[0] == '/':
		return "an absolute target"
	}
	up, named := 0, false
	for part := range strings.SplitSeq(target, "/") {
		switch part {
		case "", ".":
		case "..":
			if named {
				return "a target with .. behind a name"
			}
			up++
		default:
			named = true
		}
	}
	if up > strings.Count(name, "/") {
		return "a target outside of the archive's folder"
	}
	return ""
}

// parents returns the folders above a clean name, from the top.
func parents(name string) []string {
	var all []string
	for i := range len(name) {
		if name[i] == '/' {
			all = append(all, name[:i])
		}
	}
	return all
}
