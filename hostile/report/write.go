package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// WriteJSON writes the report in the form that Read reads and docs/HOSTILE.md
// describes. Lists are never null.
func (r *Report) WriteJSON(w io.Writer) error { return writeJSON(w, r.whole()) }

// WriteComparedJSON is WriteJSON with one more field, "changes". Read reads it
// too.
func (r *Report) WriteComparedJSON(w io.Writer, c *Changes) error {
	return writeJSON(w, struct {
		*Report
		Changes *Changes `json:"changes"`
	}{r.whole(), c})
}

// whole returns a copy that has no nil where JSON has a list.
func (r *Report) whole() *Report {
	c := *r
	c.Columns, c.Probes, c.Cells = list(c.Columns), slices.Clone(list(c.Probes)), list(c.Cells)
	for i := range c.Probes {
		c.Probes[i].Rows = list(c.Probes[i].Rows)
	}
	return &c
}

// list is never nil.
func list[T any](all []T) []T {
	if all == nil {
		return []T{}
	}
	return all
}

// writeJSON writes v so that its text neither acts nor hides where somebody looks
// at the file: what a decoder reads is the same.
func writeJSON(w io.Writer, v any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if _, err := w.Write(escapeControls(text.Bytes())); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// escapeControls writes those characters as JSON's escapes that JSON lets stand: DEL,
// C1 controls, and what reorders text or has no width. They stand in strings only.
func escapeControls(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == 0x7f || (r >= 0x80 && r <= 0x9f) || (unicode.Is(unicode.Cf, r) && r <= 0xffff):
			out = fmt.Appendf(out, `\u%04x`, r)
		case unicode.Is(unicode.Cf, r):
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = append(out, text[:size]...)
		}
		text = text[size:]
	}
	return out
}
