package supervisor

import (
	"fmt"
	"strconv"
	"strings"

	"tranca"
)

// Remains is what a dead supervisor said about itself.
type Remains struct {
	ID    string
	Notes []Note
}

// Note is one thing that a supervisor wrote down before it made something
// that could outlive it.
type Note struct {
	Kind  string
	Value string
}

// formatNote makes one line: the kind, a blank, the value quoted.
func formatNote(n Note) (string, error) {
	if n.Kind == "" || strings.Trim(n.Kind, "abcdefghijklmnopqrstuvwxyz-") != "" {
		return "", fmt.Errorf("note kind %q: want lower case letters and '-': %w", n.Kind, tranca.ErrInvalid)
	}
	return n.Kind + " " + strconv.Quote(n.Value) + "\n", nil
}

// parseNotes reads lines of formatNote. A line that is broken is left out: a
// supervisor that died while writing it had not made the thing yet.
func parseNotes(text string) []Note {
	var notes []Note
	for line := range strings.Lines(text) {
		line, whole := strings.CutSuffix(line, "\n")
		if !whole {
			break
		}
		kind, quoted, ok := strings.Cut(line, " ")
		if !ok {
			continue
		}
		value, err := strconv.Unquote(quoted)
		if err != nil {
			continue
		}
		n := Note{Kind: kind, Value: value}
		if again, err := formatNote(n); err == nil && again == line+"\n" {
			notes = append(notes, n)
		}
	}
	return notes
}

// idBytes makes ids of 16 hexadecimal digits.
const idBytes = 8

// ValidID reports whether id has the form of a supervisor's id.
func ValidID(id string) bool {
	return len(id) == 2*idBytes && strings.Trim(id, "0123456789abcdef") == ""
}
