package mcp

import (
	"fmt"
	"strings"
)

// Bounds of an edit, and of the diff that it answers with.
const (
	maxReplaced = 10_000
	shownHunks  = 3
	hunkLines   = 20
	contextSize = 2   // lines around a change
	lineLength  = 200 // bytes
)

// edited is a text before and after an edit.
type edited struct {
	before, after, old, new string
	at                      []int // where old stood in before
}

// edit replaces old, which must stand there exactly once unless all is set.
// The error is fit for the agent.
func edit(text, old, with string, all bool) (edited, error) {
	e := edited{before: text, old: old, new: with}
	if old == "" {
		return e, tell("old_text is empty: to make or replace a whole file, use write_file.")
	}
	if old == with {
		return e, tell("old_text and new_text are the same: nothing was changed.")
	}
	for from := 0; len(e.at) <= maxReplaced; {
		i := strings.Index(text[from:], old)
		if i < 0 {
			break
		}
		e.at = append(e.at, from+i)
		from += i + len(old)
	}
	switch n := len(e.at); {
	case n == 0:
		return e, tell("old_text is not in the file: it must match exactly, with every blank and line end. Nothing was changed.")
	case n > maxReplaced || len(text)+n*len(with) > maxWritten:
		return e, tell("That is too much to replace at once: change the file with a program. Nothing was changed.")
	case n > 1 && !all:
		return e, tell("old_text is %d times in the file: give more of the text around it, or set replace_all. Nothing was changed.", n)
	}
	e.after = strings.ReplaceAll(text, old, with)
	return e, nil
}

// hunk is a stretch of whole lines of the text with replacements in it.
type hunk struct{ start, end, first, last int } // bytes; indexes into at

// hunks joins replacements that touch the same lines.
func (e edited) hunks() []hunk {
	var all []hunk
	for i, at := range e.at {
		past := at + len(e.old)
		joined := len(all) > 0 && at < all[len(all)-1].end
		if !joined {
			start := strings.LastIndexByte(e.before[:at], '\n') + 1
			all = append(all, hunk{start: start, end: at, first: i})
		}
		h := &all[len(all)-1]
		h.last = i
		if past > h.end {
			// old may end with the end of a line; then the next one isn't touched.
			h.end = len(e.before)
			if nl := strings.IndexByte(e.before[past-1:], '\n'); nl >= 0 {
				h.end = past + nl
			}
		}
	}
	return all
}

// diff shows the first changes.
func (e edited) diff() string {
	var b strings.Builder
	all := e.hunks()
	for i, h := range all {
		if i == shownHunks {
			fmt.Fprintf(&b, "and %d more places\n", len(all)-i)
			break
		}
		fmt.Fprintf(&b, "@@ line %d\n", strings.Count(e.before[:h.start], "\n")+1)
		writeLines(&b, " ", lastOf(e.before[:h.start]), contextSize)
		writeLines(&b, "-", e.before[h.start:h.end], hunkLines)
		writeLines(&b, "+", e.replaced(h), hunkLines)
		writeLines(&b, " ", firstOf(e.before[h.end:]), contextSize)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// replaced is the hunk after the edit.
func (e edited) replaced(h hunk) string {
	var b strings.Builder
	from := h.start
	for _, at := range e.at[h.first : h.last+1] {
		b.WriteString(e.before[from:at])
		b.WriteString(e.new)
		from = at + len(e.old)
	}
	b.WriteString(e.before[from:h.end])
	return b.String()
}

// firstOf and lastOf cut a text down to the lines of a context.
func firstOf(s string) string {
	end := 0
	for range contextSize {
		nl := strings.IndexByte(s[end:], '\n')
		if nl < 0 {
			return s
		}
		end += nl + 1
	}
	return s[:end]
}

func lastOf(s string) string {
	start := len(s)
	for range contextSize {
		if start == 0 {
			break
		}
		start = strings.LastIndexByte(s[:start-1], '\n') + 1
	}
	return s[start:]
}

// writeLines writes the first most lines of a text, each with a mark.
func writeLines(b *strings.Builder, mark, text string, most int) {
	for i := 0; text != ""; i++ {
		if i == most {
			fmt.Fprintf(b, "%s(%d more lines)\n", mark, strings.Count(strings.TrimSuffix(text, "\n"), "\n")+1)
			return
		}
		line, rest, _ := strings.Cut(text, "\n")
		text = rest
		if len(line) > lineLength {
			line = line[:lineLength] + "..."
		}
		b.WriteString(mark + valid(line) + "\n")
	}
}
