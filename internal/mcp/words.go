package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"tranca"
)

// errorWords is what the agent is told when nothing was run. The words depend
// on the error's class alone, and on what the agent itself sent: an error's
// text may name backends, mechanisms and paths of the host.
func errorWords(err error, req tranca.Request) string {
	const log = " Only the operator can change that; tranca's log says more."
	var own *told
	switch {
	case errors.As(err, &own):
		return own.words
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "It was cancelled before it started."
	case errors.Is(err, tranca.ErrRefused), errors.Is(err, tranca.ErrUnavailable):
		return "Refused: nothing was run." + log
	case errors.Is(err, tranca.ErrNotFound) && len(req.Command) > 0:
		return "There is no program " + strconv.Quote(clip(req.Command[0])) + ". Nothing was run."
	case errors.Is(err, tranca.ErrNotFound) && req.Code != "":
		return "There is no Python to run it with." + log
	case errors.Is(err, tranca.ErrBusy):
		return "Too much is running already, so nothing was run. Try again later."
	case errors.Is(err, tranca.ErrInvalid):
		return "The arguments can't be run as they are, so nothing was run: they may be too long or hold what no argument may."
	case errors.Is(err, tranca.ErrGone):
		return "The files of earlier calls are lost, and nothing was run. The next call starts afresh."
	}
	return "It could not be run, for no fault of the program. Trying again may work; tranca's log says more."
}

// fileWords is what the agent is told of a failure that has to do with a path
// of its own. ok is false where it has not.
func fileWords(err error, path string) (words string, ok bool) {
	var own *told
	switch {
	case errors.As(err, &own):
		return own.words, true
	case errors.Is(err, tranca.ErrNotFound):
		return "There is no " + name(path) + ".", true
	case errors.Is(err, tranca.ErrRefused):
		return "No permission for " + name(path) + ": the description of run_command says what may be written.", true
	case errors.Is(err, tranca.ErrNoSpace):
		return "There is no room left for " + name(path) + "; what is there of it may be a part. Remove files first.", true
	case errors.Is(err, tranca.ErrExists):
		return name(path) + " is in the way: something else stands there or above it.", true
	case errors.Is(err, tranca.ErrInvalid):
		return "That can't be done with " + name(path) + ": it is of another kind (a folder, a file, a device), or has too many entries.", true
	}
	return "", false
}

func clip(s string) string {
	const longest = 100
	if r := []rune(s); len(r) > longest {
		return string(r[:longest]) + "..."
	}
	return s
}

// content is the view as text. A program that simply succeeded gives its
// output and nothing else; otherwise how it ended stands in a block of its
// own in front, where the program's output can't imitate it.
func content(v tranca.AgentView) []mcp.Content {
	summary := summarize(v)
	if summary == "" {
		return []mcp.Content{&mcp.TextContent{Text: cmp.Or(v.Stdout, "(no output)")}}
	}
	blocks := []mcp.Content{&mcp.TextContent{Text: summary}}
	if v.Stdout != "" {
		blocks = append(blocks, &mcp.TextContent{Text: "Standard output:\n" + v.Stdout})
	}
	if v.Stderr != "" {
		blocks = append(blocks, &mcp.TextContent{Text: "Standard error:\n" + v.Stderr})
	}
	return blocks
}

// summarize says all but the output, or nothing where only standard output is
// worth a word.
func summarize(v tranca.AgentView) string {
	plain := v.Success && v.Stderr == "" && !v.StdoutTruncated && !v.StderrTruncated &&
		len(v.Limits)+len(v.Denials)+len(v.Changes) == 0
	if plain {
		return ""
	}
	var b strings.Builder
	b.WriteString("How it went: " + v.Ended + ".")
	if v.StdoutTruncated {
		b.WriteString("\nStandard output is cut: more was written than is kept.")
	}
	if v.StderrTruncated {
		b.WriteString("\nStandard error is cut: more was written than is kept.")
	}
	for _, l := range v.Limits {
		b.WriteString("\nLimit: " + l + ".")
	}
	for _, d := range v.Denials {
		fmt.Fprintf(&b, "\nRefused: %s (%s).", d.What, d.Rule)
	}
	writeChanges(&b, v.Changes)
	return b.String()
}

// shownChanges bounds the changes in the text; the structure has all.
const shownChanges = 50

func writeChanges(b *strings.Builder, changes []tranca.Change) {
	for i, c := range changes {
		if i == shownChanges {
			fmt.Fprintf(b, "\nand %d more changes.", len(changes)-i)
			return
		}
		note := ""
		if c.HostExecutable {
			note = "; programs outside may run it"
		}
		fmt.Fprintf(b, "\nChanged: %s %s (%d bytes%s).", strconv.Quote(c.Path), c.Kind, c.Size, note)
	}
}
