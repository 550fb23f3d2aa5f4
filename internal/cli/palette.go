package cli

import (
	"tranca/internal/terminal"
)

// palette marks lines for people: with colour and signs where the terminal
// and the locale have them, in plain ASCII elsewhere.
type palette struct{ colour, unicode bool }

func newPalette(out any, getenv func(string) string) palette {
	return palette{terminal.Colour(out, getenv), terminal.Unicode(getenv)}
}

func (p palette) paint(code, text string) string {
	if !p.colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (p palette) good(text string) string { return p.paint("32", text) }
func (p palette) fair(text string) string { return p.paint("33", text) }
func (p palette) bad(text string) string  { return p.paint("31", text) }
func (p palette) bold(text string) string { return p.paint("1", text) }

func (p palette) yes() string {
	if p.unicode {
		return p.good("✓")
	}
	return p.good("+")
}

func (p palette) no() string {
	if p.unicode {
		return p.bad("✗")
	}
	return p.bad("x")
}

// open marks what is not there and not promised either.
func (p palette) open() string {
	if p.unicode {
		return "·"
	}
	return "-"
}
