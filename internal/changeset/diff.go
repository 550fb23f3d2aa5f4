package changeset

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"

	"tranca"
)

// The bounds of what is shown.
const (
	// maxText is the largest file that is shown line by line.
	maxText = 1 << 20
	// mostText is how much of all files together is.
	mostText = 16 << 20
)

// FileDiff is what is shown of one path.
type FileDiff struct {
	tranca.Change
	// Text is a unified diff, empty where lines say nothing. It holds the code's
	// own bytes: clean it for a terminal.
	Text string
	// Added and Dropped count its lines.
	Added, Dropped int
	// Note says on one line what the lines do not: "binary, 12 bytes".
	Note string
	// LeftOut says why it would not be applied; Conflict, what the host did.
	LeftOut, Conflict string
}

// side is a file before or after.
type side struct {
	there bool
	data  []byte
	large bool
}

func (s side) text() bool {
	if s.large {
		return false
	}
	return bytes.IndexByte(s.data, 0) < 0 && utf8.Valid(s.data)
}

// compareText fills in what lines tell.
func (d *FileDiff) compareText(e *Entry, before, after side) {
	if !before.text() || !after.text() {
		d.Note = join(d.Note, fmt.Sprintf("binary or large, %d bytes", e.Size))
		return
	}
	oldName, newName := "a/"+quoted(e.Path), "b/"+quoted(e.Path)
	if !before.there {
		oldName = "/dev/null"
	}
	if !after.there {
		newName = "/dev/null"
	}
	out := diff.Diff(oldName, before.data, newName, after.data)
	if _, rest, ok := bytes.Cut(out, []byte("\n")); ok { // "diff OLD NEW"
		d.Text = string(rest)
	}
	for i, line := range strings.Split(d.Text, "\n") {
		switch {
		case i < 2: // the names
		case strings.HasPrefix(line, "+"):
			d.Added++
		case strings.HasPrefix(line, "-"):
			d.Dropped++
		}
	}
}

// quoted is a name that can't end its line, nor begin another.
func quoted(name string) string {
	if utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || r == '"' || r == '\\' }) {
		return name
	}
	return strconv.Quote(name)
}

// describe says what is not to be seen in lines.
func (d *FileDiff) describe(e *Entry) {
	switch {
	case e.Kind == Replaced:
		d.Note = fmt.Sprintf("%s in place of a %s", e.Type, e.Base.Type)
	case e.Kind == Removed && e.Base.Type != tranca.FileRegular:
		d.Note = string(e.Base.Type)
	case e.Kind != Removed && e.Type != tranca.FileRegular:
		d.Note = string(e.Type)
	}
	if e.Type == tranca.FileSymlink {
		d.Note = join(d.Note, "to "+quoted(e.Link))
	}
	if e.Kind == Modified && e.Type != tranca.FileSymlink && e.Mode != e.Base.Mode&maxMode {
		d.Note = join(d.Note, fmt.Sprintf("mode %04o, was %04o", e.Mode, e.Base.Mode&maxMode))
	}
	if e.Kind == Created && e.Type == tranca.FileRegular && e.Mode&0o111 != 0 {
		d.Note = join(d.Note, fmt.Sprintf("mode %04o", e.Mode))
	}
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + ", " + b
}
