package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode"

	"tranca/internal/terminal"
)

// markup writes HTML. The linker keeps no template package for it: that one reads
// its templates by reflection, which would cost each start of tranca memory and
// time.
type markup struct{ w *bufio.Writer }

func newMarkup(w io.Writer) *markup { return &markup{bufio.NewWriter(w)} }

// trusted is text of this package's own that stands in a page as it is.
type trusted string

// put writes a format of this package's own. Every argument but numbers and trusted
// text is escaped, so that it is text wherever it stands: between elements, or in an
// attribute with double quotes.
func (m *markup) put(format string, args ...any) {
	for i, arg := range args {
		switch arg := arg.(type) {
		case int, trusted:
		default:
			args[i] = escaped(fmt.Sprint(arg), longestText)
		}
	}
	fmt.Fprintf(m.w, format, args...) // the writer keeps its first error for Flush
}

// Longer texts are cut in a page, which says so.
const (
	longestText    = 4_000
	longestProgram = 20_000
	longestList    = 200
)

// escaped makes text harmless: for the page, and for who reads it, since what
// reorders or hides text, and what is no text, becomes visible.
func escaped(text string, most int) string {
	text, left := upTo(text, most)
	var b strings.Builder
	for _, r := range terminal.Clean(text) {
		switch {
		case r == '&':
			b.WriteString("&amp;")
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '"':
			b.WriteString("&#34;")
		case r == '\'':
			b.WriteString("&#39;")
		case unicode.Is(unicode.Cf, r): // zero width, marks of direction, tags
			fmt.Fprintf(&b, "&lt;U+%04X&gt;", r)
		default:
			b.WriteRune(r)
		}
	}
	if left > 0 {
		fmt.Fprintf(&b, " [%d more bytes; the JSON form has them]", left)
	}
	return b.String()
}

// upTo returns the beginning of text, up to most bytes and whole characters, and
// how many bytes are left.
func upTo(text string, most int) (string, int) {
	if len(text) <= most {
		return text, 0
	}
	for most > 0 && text[most]&0xc0 == 0x80 {
		most--
	}
	return text[:most], len(text) - most
}

// block writes lines that keep their breaks and blanks.
func (m *markup) block(label string, lines []string) {
	if len(lines) == 0 {
		return
	}
	m.put("<pre tabindex=\"0\" aria-label=\"%s\">", label)
	for i, line := range lines {
		if i == longestList {
			m.put("[%d more lines; the JSON form has them]\n", len(lines)-i)
			break
		}
		m.put("%s\n", line)
	}
	m.put("</pre>\n")
}

// program writes a text of several lines.
func (m *markup) program(label, text string) {
	text, left := upTo(strings.TrimRight(text, "\n"), longestProgram)
	lines := strings.Split(text, "\n")
	if left > 0 {
		lines = append(lines[:min(len(lines), longestList-1)], fmt.Sprintf("[%d more bytes; the JSON form has them]", left))
	}
	m.block(label, lines)
}

// fact writes a term and what it is; nothing where that is empty.
func (m *markup) fact(term trusted, text string) {
	if text != "" {
		m.put("<dt>%s</dt><dd>%s</dd>\n", term, text)
	}
}
