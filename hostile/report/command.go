package report

import (
	"fmt"
	"path"
	"strings"

	"tranca"
)

// ParseCommand reads the template of somebody else's sandbox:
//
//	[NAME=]PROGRAM [ARGUMENT...]
//
// No shell runs it. Words are parted at blanks as a shell would: '…' holds
// anything, "…" anything but with \" and \\ for a quote and a backslash, and \
// takes the next character as it stands. Variables, patterns, pipes and the like
// mean nothing. The name is that of its column; left out, it is the program's.
// Errors wrap [tranca.ErrInvalid].
func ParseCommand(text string) (name string, args []string, err error) {
	rest := text
	if before, after, ok := strings.Cut(text, "="); ok && columnName(before) {
		name, rest = before, after
	}
	args, err = splitWords(rest)
	switch {
	case err != nil:
		return "", nil, fmt.Errorf("%w: the command %s: %w", tranca.ErrInvalid, quote(text), err)
	case len(args) == 0 || args[0] == "":
		return "", nil, fmt.Errorf("%w: the command %s names no program", tranca.ErrInvalid, quote(text))
	case strings.ContainsRune(text, 0):
		return "", nil, fmt.Errorf("%w: the command %s holds a NUL byte", tranca.ErrInvalid, quote(text))
	case name == "":
		name = path.Base(args[0])
	}
	return name, args, nil
}

// columnName reports whether text can stand before the = of a template.
func columnName(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.+:@()", r)
	})
}

// splitWords parts text into words.
func splitWords(text string) ([]string, error) {
	var words []string
	var word strings.Builder
	var quoted rune // the quote that is open
	within, escaped := false, false
	for _, r := range text {
		switch {
		case escaped:
			if quoted == '"' && r != '"' && r != '\\' {
				word.WriteByte('\\')
			}
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quoted != '\'':
			escaped, within = true, true
		case quoted != 0 && r == quoted:
			quoted = 0
		case quoted != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quoted, within = r, true
		case r == ' ' || r == '\t' || r == '\n':
			if within {
				words = append(words, word.String())
			}
			word.Reset()
			within = false
		default:
			word.WriteRune(r)
			within = true
		}
	}
	switch {
	case quoted != 0:
		return nil, fmt.Errorf("a %c is not closed", quoted)
	case escaped:
		return nil, fmt.Errorf("it ends in a backslash")
	case within:
		words = append(words, word.String())
	}
	return words, nil
}
