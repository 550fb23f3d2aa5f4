package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Measures in pixels. Widths are given to the viewer with each line, so that
// columns stand below each other whatever font it has.
const (
	charWidth  = 8.4
	lineHeight = 20
	fontSize   = 14
	margin     = 18
	bar        = 36
	maxInput   = 64 << 10
	minColumns = 20
)

// Colours on the dark ground.
const (
	ground  = "#161b22"
	plain   = "#c9d1d9"
	prompt  = "#7ee787"
	command = "#ffffff"
	verdict = "#f2cc60"
	dim     = "#8b949e"
)

// line is one row of the terminal: parts in their colours.
type line []part

type part struct{ text, colour string }

// draw returns the picture of a text. A line that begins with "$ " is a
// command, one that begins with "tranca: " is tranca's own word.
func draw(text []byte, columns int, title string) ([]byte, error) {
	if len(text) > maxInput {
		return nil, fmt.Errorf("the text has more than %d bytes", maxInput)
	}
	if columns < minColumns {
		return nil, fmt.Errorf("%d columns: want at least %d", columns, minColumns)
	}
	if !utf8.Valid(text) {
		return nil, fmt.Errorf("the text is not UTF-8")
	}
	var rows []line
	for i, l := range strings.Split(strings.TrimRight(string(text), "\n"), "\n") {
		if at := strings.IndexFunc(l, unicode.IsControl); at >= 0 {
			return nil, fmt.Errorf("line %d has a control character: capture plain text", i+1)
		}
		rows = append(rows, wrap(colour(l), columns)...)
	}
	return svg(rows, columns, title)
}

func colour(l string) line {
	if rest, ok := strings.CutPrefix(l, "$ "); ok {
		return line{{"$ ", prompt}, {rest, command}}
	}
	if strings.HasPrefix(l, "tranca: ") {
		return line{{l, verdict}}
	}
	return line{{l, plain}}
}

// wrap breaks a line after so many characters.
func wrap(l line, columns int) []line {
	rows := []line{nil}
	left := columns
	for _, p := range l {
		runes := []rune(p.text)
		for len(runes) > 0 {
			if left == 0 {
				rows, left = append(rows, nil), columns
			}
			n := min(left, len(runes))
			last := len(rows) - 1
			rows[last] = append(rows[last], part{string(runes[:n]), p.colour})
			runes, left = runes[n:], left-n
		}
	}
	return rows
}

func svg(rows []line, columns int, title string) ([]byte, error) {
	var b bytes.Buffer
	width := int(float64(columns)*charWidth) + 2*margin
	height := bar + len(rows)*lineHeight + margin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">`+"\n", width, height, width, height)
	name, err := escape(title)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(&b, "<title>%s</title>\n", name)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" rx="10" fill="%s"/>`+"\n", width, height, ground)
	for i, c := range []string{"#ff5f56", "#ffbd2e", "#27c93f"} {
		fmt.Fprintf(&b, `<circle cx="%d" cy="18" r="6" fill="%s"/>`+"\n", margin+4+20*i, c)
	}
	fmt.Fprintf(&b, `<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="%d" xml:space="preserve">`+"\n", fontSize)
	fmt.Fprintf(&b, `<text x="%d" y="23" fill="%s" text-anchor="middle">%s</text>`+"\n", width/2, dim, name)
	for i, row := range rows {
		column := 0
		for _, p := range row {
			text, err := escape(p.text)
			if err != nil {
				return nil, err
			}
			n := utf8.RuneCountInString(p.text)
			if strings.TrimSpace(p.text) != "" {
				fmt.Fprintf(&b, `<text x="%.1f" y="%d" fill="%s" textLength="%.1f" lengthAdjust="spacingAndGlyphs">%s</text>`+"\n",
					margin+float64(column)*charWidth, bar+(i+1)*lineHeight-5, p.colour, float64(n)*charWidth, text)
			}
			column += n
		}
	}
	b.WriteString("</g>\n</svg>\n")
	return b.Bytes(), nil
}

// escape also turns blanks into ones that no viewer joins.
func escape(text string) (string, error) {
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(text)); err != nil {
		return "", err
	}
	return strings.ReplaceAll(b.String(), " ", "\u00a0"), nil
}
