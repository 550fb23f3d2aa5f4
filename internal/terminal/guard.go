package terminal

import (
	"io"
	"unicode/utf8"
)

// Guard is a writer for the output of a program that has this terminal for its
// own, such as a shell or an editor in a sandbox. It passes on what draws on
// the screen, and drops what reaches beyond it:
//
//   - strings: the title, the clipboard, notifications, links, colours of the
//     palette, pictures, files, what a multiplexer passes on (OSC, DCS, APC,
//     PM, SOS, and a title of screen)
//   - questions whose answer the terminal would type, but for three with fixed
//     forms that editors need: what it is, whether it works, where the cursor is
//   - what changes the window, prints, or leaves UTF-8
//   - modes that [Guard.Restore] could not take back
//
// C1 controls and what is no UTF-8 come out as U+FFFD. Only whole sequences are
// written, so what is dropped can't complete another one. What comes out does
// not depend on how the input is cut into writes. Not safe for concurrent use.
type Guard struct {
	w     io.Writer
	out   []byte
	state guardState
	// seq is the sequence, or the character, that is not whole yet.
	seq  []byte
	undo undo
}

type guardState uint8

const (
	inText guardState = iota
	inEscape
	inControl // after ESC [
	inLong    // in a control sequence that is too long to pass
	inString
	inStringEscape
)

// maxSequence bounds a control sequence. What draws is shorter.
const maxSequence = 128

// NewGuard returns a guard in front of w.
func NewGuard(w io.Writer) *Guard { return &Guard{w: w} }

// Write passes p on. It reports all of p as written, or 0 and the error of the
// writer behind.
func (g *Guard) Write(p []byte) (int, error) {
	g.out = g.out[:0]
	for _, b := range p {
		g.take(b)
	}
	if len(g.out) == 0 {
		return len(p), nil
	}
	if _, err := g.w.Write(g.out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Restore takes back what the program changed in the terminal and may have
// left so: modes, the other screen, colours, the scrolled region, alphabets.
func (g *Guard) Restore() error {
	g.state, g.seq = inText, g.seq[:0]
	back := g.undo.sequences()
	g.undo = undo{}
	if len(back) == 0 {
		return nil
	}
	_, err := g.w.Write(back)
	return err
}

func (g *Guard) take(b byte) {
	switch g.state {
	case inText:
		g.text(b)
	case inEscape:
		g.escape(b)
	case inControl, inLong:
		g.control(b)
	case inString:
		switch b {
		case esc:
			g.state = inStringEscape
		case bell, cancel, substitute:
			g.state = inText
		}
	case inStringEscape:
		g.state = inText
		if b != '\\' {
			// The string has ended, and this belongs to another sequence.
			g.begin()
			g.escape(b)
		}
	}
}

const (
	bell       = 0x07
	shiftOut   = 0x0e
	shiftIn    = 0x0f
	cancel     = 0x18
	substitute = 0x1a
	esc        = 0x1b
	del        = 0x7f
)

// begin starts a sequence. One that was not whole is gone.
func (g *Guard) begin() { g.state, g.seq = inEscape, append(g.seq[:0], esc) }

func (g *Guard) drop() { g.state, g.seq = inText, g.seq[:0] }

func (g *Guard) pass() {
	g.out = append(g.out, g.seq...)
	g.drop()
}

// text takes a byte outside of sequences.
func (g *Guard) text(b byte) {
	if len(g.seq) > 0 {
		g.character(b)
		return
	}
	switch {
	case b == esc:
		g.begin()
	case b < 0x20 || b == del:
		g.simple(b)
	case b < utf8.RuneSelf:
		g.out = append(g.out, b)
	default:
		g.seq = append(g.seq, b)
		g.settle()
	}
}

// character takes a byte after the beginning of a character.
func (g *Guard) character(b byte) {
	if utf8.RuneStart(b) {
		g.out = append(g.out, "\uFFFD"...) // it was cut short
		g.seq = g.seq[:0]
		g.text(b)
		return
	}
	g.seq = append(g.seq, b)
	g.settle()
}

// settle passes the character on once it is whole.
func (g *Guard) settle() {
	if !utf8.FullRune(g.seq) {
		return
	}
	r, size := utf8.DecodeRune(g.seq)
	if size == 1 || r < 0xa0 {
		g.out = append(g.out, "\uFFFD"...)
		rest := append([]byte(nil), g.seq[size:]...)
		g.seq = g.seq[:0]
		for _, b := range rest {
			g.text(b)
		}
		return
	}
	g.pass()
}

// simple passes those control characters on that move the cursor, ring, or
// change the alphabet. What asks (ENQ) or stops the line (DC3) is dropped.
func (g *Guard) simple(b byte) {
	switch {
	case b == shiftOut:
		g.undo.alphabet = true
		fallthrough
	case b >= bell && b <= shiftIn:
		g.out = append(g.out, b)
	}
}

// escape takes a byte after ESC and intermediate ones.
func (g *Guard) escape(b byte) {
	switch {
	case b == esc:
		g.begin()
	case b == cancel || b == substitute:
		g.drop()
	case b < 0x20:
		g.simple(b)
	case b == '[' && len(g.seq) == 1:
		g.state, g.seq = inControl, append(g.seq, b)
	case len(g.seq) == 1 && stringStart(b):
		g.state, g.seq = inString, g.seq[:0]
	case b < 0x30:
		if g.seq = append(g.seq, b); len(g.seq) > 4 {
			g.seq = g.seq[:4] // too long to be on the list
		}
	case b >= del:
		g.drop()
		g.text(b)
	default:
		g.seq = append(g.seq, b)
		if g.undo.escape(string(g.seq[1:])) {
			g.pass()
		} else {
			g.drop()
		}
	}
}

func stringStart(b byte) bool {
	switch b {
	case ']', 'P', '_', '^', 'X', 'k':
		return true
	}
	return false
}

// control takes a byte of a control sequence.
func (g *Guard) control(b byte) {
	switch {
	case b == esc:
		g.begin()
	case b == cancel || b == substitute:
		g.drop()
	case b < 0x20:
		g.simple(b)
	case b == del:
	case b > del:
		g.drop()
		g.text(b)
	case b < 0x40:
		if g.seq = append(g.seq, b); len(g.seq) > maxSequence {
			g.state, g.seq = inLong, g.seq[:0]
		}
	case g.state == inLong:
		g.drop()
	default:
		if s, ok := g.undo.control(string(g.seq[2:]), b); ok {
			g.out = append(append(g.out, esc, '['), s...)
		}
		g.drop()
	}
}
