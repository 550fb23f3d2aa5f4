package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"tranca"
	"tranca/internal/terminal"
)

// explainError writes an error for the person at the command line. A refusal
// is spelt out: what was asked, what is missing, what mends it, and the weaker
// choices that were found usable, with what each gives up.
func explainError(w io.Writer, err error) {
	var refusal *tranca.RefusalError
	if errors.As(err, &refusal) {
		explainRefusal(w, refusal)
		return
	}
	for i, line := range strings.Split(plain(err), "\n") {
		prefix := "tranca: "
		if i > 0 {
			prefix = "        "
		}
		fmt.Fprintln(w, prefix+terminal.Clean(line))
	}
}

func explainRefusal(w io.Writer, e *tranca.RefusalError) {
	switch {
	case e.Unavailable:
		fmt.Fprintf(w, "tranca: refused, nothing was run: backend %q can't run on this host.\n", e.Backend)
	case e.Backend != "":
		fmt.Fprintf(w, "tranca: refused, nothing was run: backend %q can't enforce all that was asked here.\n", e.Backend)
	default:
		fmt.Fprintln(w, "tranca: refused, nothing was run: the policy does not allow it.")
	}
	for _, p := range e.Problems {
		explainProblem(w, p)
	}
	if len(e.Weaker) > 0 {
		fmt.Fprintln(w, "\nOr choose something weaker, knowing what it gives up:")
		for _, a := range e.Weaker {
			fmt.Fprintf(w, "  %s\n", terminal.Clean(a.Choice))
			indent(w, "gives up", wrap(a.GivesUp))
		}
	}
}

func explainProblem(w io.Writer, p tranca.Problem) {
	fmt.Fprintf(w, "\n  %s\n", p.Item)
	indent(w, "asked", p.Asked)
	indent(w, "missing", wrap(p.Missing))
	indent(w, "mend", p.Mend)
	if p.Waivable {
		indent(w, "or", fmt.Sprintf("do without it: --waive %s", p.Item))
	}
}

// indent writes "label: text" with further lines below the text's start; an
// empty text writes nothing.
func indent(w io.Writer, label, text string) {
	if text == "" {
		return
	}
	label += ":"
	for line := range strings.Lines(text) {
		fmt.Fprintf(w, "    %-9s %s\n", label, terminal.Clean(strings.TrimRight(line, "\n")))
		label = ""
	}
}

// wrap breaks a sentence into lines of up to 72 characters. Commands are not
// wrapped: they are there to be copied.
func wrap(text string) string {
	const width = 72
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		if column > 0 && column+1+len(word) > width {
			b.WriteByte('\n')
			column = 0
		}
		if column > 0 {
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}
