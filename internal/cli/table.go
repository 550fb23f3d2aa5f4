package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"tranca/internal/terminal"
)

// printTable prints rows below a head. Cells may hold hostile text.
func (a *app) printTable(head []string, rows [][]string) error {
	return writeTable(a.Stdout, head, rows)
}

func writeTable(to io.Writer, head []string, rows [][]string) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{head}, rows...) {
		for i, cell := range row {
			if i > 0 {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprint(w, terminal.Clean(cell))
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

// cut shortens a cell to at most so many characters.
func cut(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-3]) + "..."
}

// span is a time in one number, as a table shows it: "59s", "3m", "5h", "9d".
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Minute:
		return strconv.Itoa(int(d/time.Second)) + "s"
	case d < time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + "m"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d/time.Hour)) + "h"
	}
	return strconv.Itoa(int(d/(24*time.Hour))) + "d"
}

// plainWord reports whether a shell takes text for one word as it stands.
func plainWord(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_./:=,+@%", r)
	})
}

// commandText is a command as a shell would be given it.
func commandText(args []string) string {
	var words []string
	for _, arg := range args {
		if !plainWord(arg) {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}
