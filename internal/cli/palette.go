package cli

import (
	"tranca/hostile/report"
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

// verdict paints a text as that of a verdict.
func (p palette) verdict(v report.Verdict, text string) string {
	switch v {
	case report.Escaped:
		return p.bad(text)
	case report.Failed:
		return p.paint("35", text)
	case report.Unknown:
		return p.fair(text)
	case report.Limited:
		return p.paint("36", text)
	case report.Contained:
		return p.good(text)
	}
	return p.paint("2", text)
}

// sign is the one character of a verdict in a matrix.
func (p palette) sign(v report.Verdict) string {
	for i, known := range report.Verdicts() {
		if known != v {
			continue
		}
		if p.unicode {
			return []string{"✗", "!", "?", "≤", "✓", "·"}[i]
		}
		return []string{"x", "!", "?", "=", "+", "-"}[i]
	}
	return " "
}
