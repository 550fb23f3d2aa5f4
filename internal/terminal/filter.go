package terminal

import (
	"fmt"
	"io"
	"unicode/utf8"
)

// Filter is a writer that makes terminal control characters visible and passes
// everything else on unchanged, so that hostile output can neither move the
// cursor, recolour or retitle the terminal, write its clipboard, answer for
// the user, nor hide what was printed before.
//
// Newline and tab pass. A carriage return passes only directly before a
// newline; alone it would let a line be overwritten. Every other C0 control
// and DEL is shown as ^X, C1 controls and the characters that reorder text as
// <U+009B>, and bytes that are no UTF-8 as <9B>: a terminal that does not
// speak UTF-8 could take such a byte for a control.
//
// What comes out does not depend on how the input is cut into writes. Close
// shows what an unfinished character at the end left over. Not safe for
// concurrent use.
type Filter struct {
	w io.Writer
	// held is the start of a character, or a carriage return, that the next
	// write may complete.
	held []byte
	out  []byte
}

// NewFilter returns a filter in front of w.
func NewFilter(w io.Writer) *Filter { return &Filter{w: w} }

// Write passes p on, made harmless. It reports all of p as written, or 0 and
// the error of the writer behind.
func (f *Filter) Write(p []byte) (int, error) {
	in := p
	if len(f.held) > 0 {
		in = append(f.held, p...)
	}
	f.out = f.out[:0]
	rest := f.convert(in, false)
	f.held = append([]byte(nil), rest...)
	if err := f.flush(); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close writes what is held back. It does not close the writer behind.
func (f *Filter) Close() error {
	f.out = f.out[:0]
	f.convert(f.held, true)
	f.held = nil
	return f.flush()
}

func (f *Filter) flush() error {
	if len(f.out) == 0 {
		return nil
	}
	_, err := f.w.Write(f.out)
	return err
}

// convert appends the harmless form of in to out. Unless final, it stops
// before what can only be judged with more input and returns that.
func (f *Filter) convert(in []byte, final bool) []byte {
	for len(in) > 0 {
		if !final && undecided(in) {
			return in
		}
		r, size := utf8.DecodeRune(in)
		f.out = appendVisible(f.out, r, in[:size], in[size:])
		in = in[size:]
	}
	return nil
}

// undecided reports whether more input could change how in begins.
func undecided(in []byte) bool {
	return (len(in) == 1 && in[0] == '\r') || !utf8.FullRune(in)
}

func appendVisible(out []byte, r rune, raw, next []byte) []byte {
	switch {
	case r == utf8.RuneError && len(raw) == 1:
		return fmt.Appendf(out, "<%02X>", raw[0])
	case r == '\n' || r == '\t':
		return append(out, byte(r))
	case r == '\r' && len(next) > 0 && next[0] == '\n':
		return append(out, '\r')
	case r < 0x20 || r == 0x7f:
		return append(out, '^', byte(r)^0x40)
	case controls(r):
		return fmt.Appendf(out, "<U+%04X>", r)
	}
	return append(out, raw...)
}

// controls reports whether r acts on a terminal or reorders the text around
// it, C0 aside.
func controls(r rune) bool {
	switch {
	case r >= 0x80 && r <= 0x9f: // C1
	case r == 0x2028 || r == 0x2029: // line and paragraph separators
	case r >= 0x202a && r <= 0x202e: // embeddings and overrides
	case r >= 0x2066 && r <= 0x2069: // isolates
	default:
		return false
	}
	return true
}

// Clean returns s as a [Filter] would show it, on one line: newlines and tabs
// become visible too.
func Clean(s string) string {
	var out []byte
	in := []byte(s)
	for len(in) > 0 {
		r, size := utf8.DecodeRune(in)
		if r == '\n' || r == '\t' {
			out = append(out, '^', byte(r)^0x40)
		} else {
			out = appendVisible(out, r, in[:size], nil)
		}
		in = in[size:]
	}
	return string(out)
}
