package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"tranca"
	"tranca/internal/changeset"
	"tranca/internal/terminal"
)

const diffHelp = `Shows what code wrote to mounts of mode cow, against what the folders on this host
have now: lines of text files as a unified diff, everything else on one line.
PATH narrows it: as the sandbox saw it, or relative to the mount. Without ID it
lists the sandboxes of which changes are kept.

Changes are kept for seven days, for the user who ran tranca: here for a run on
this host, and on the server's host for one with --server.

Examples:
  tranca diff
  tranca diff i0k3v7q2m9x4c8b1z5n6a --stat
  tranca diff i0k3v7q2m9x4c8b1z5n6a src/main.py

`

func (a *app) diffCommand() *cli.Command {
	return &cli.Command{
		Name:        "diff",
		Usage:       "show what code changed in folders that it saw copy-on-write",
		ArgsUsage:   "[ID [PATH...]]",
		Description: diffHelp + statusHelp("0      all was shown, changes or none"),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "stat", Usage: "a line for each path, without its text"},
			&cli.BoolFlag{Name: "color", Aliases: []string{"colour"}, Usage: "colours also where the output is no terminal"},
			jsonFlag("print JSON"),
		},
		Action: a.diff,
	}
}

func (a *app) diff(ctx context.Context, c *cli.Command) error {
	return a.withChanges(ctx, c, func(ctx context.Context, kept Changes) error {
		if !c.Args().Present() {
			return a.listChanges(ctx, c, kept)
		}
		id, only := tranca.ID(c.Args().First()), c.Args().Tail()
		if c.Bool("json") {
			return a.diffJSON(ctx, kept, id, only)
		}
		out := bufio.NewWriter(shielded(a.Stdout))
		p := newPalette(a.Stdout, a.Getenv)
		if c.Bool("color") && a.Getenv("NO_COLOR") == "" {
			p.colour = true
		}
		if p.colour && terminal.Is(a.Stdout) {
			// The filter would take the colours; each line is cleaned by itself.
			out = bufio.NewWriter(a.Stdout)
		}
		n := 0
		err := kept.Diff(ctx, id, only, func(d *changeset.FileDiff) error {
			n++
			return writeDiff(out, p, d, c.Bool("stat"))
		})
		if err := errors.Join(err, out.Flush()); err != nil {
			return err
		}
		if n == 0 {
			fmt.Fprintln(a.Stderr, "tranca: nothing changed")
		}
		return nil
	})
}

// listChanges lists what is kept.
func (a *app) listChanges(ctx context.Context, c *cli.Command, kept Changes) error {
	all, err := kept.List(ctx)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		if all == nil {
			all = []changeset.Info{}
		}
		return a.printJSON(all)
	}
	var rows [][]string
	for _, info := range all {
		state := "not applied"
		if !info.Applied.IsZero() {
			state = "applied " + ageOf(info.Applied) + " ago"
		}
		for _, m := range info.Mounts {
			rows = append(rows, []string{
				string(info.ID), ageOf(info.Created), span(changeset.KeptFor - time.Since(info.Created)),
				fmt.Sprint(info.Changes), state, m.Source,
			})
		}
	}
	return a.printTable([]string{"ID", "AGE", "KEPT FOR", "CHANGES", "STATE", "FOLDER"}, rows)
}

// headOf is the one line that says what happened to a path.
func headOf(d *changeset.FileDiff) string {
	line := fmt.Sprintf("%-8s %s", d.Kind, terminal.Clean(d.Path))
	if d.Note != "" {
		line += "  (" + terminal.Clean(d.Note) + ")"
	}
	return line
}

// writeDiff shows one path.
func writeDiff(w io.Writer, p palette, d *changeset.FileDiff, stat bool) error {
	head := headOf(d)
	if stat && d.Added+d.Dropped > 0 {
		head += fmt.Sprintf("  +%d -%d", d.Added, d.Dropped)
	}
	fmt.Fprintln(w, p.bold(head))
	for _, l := range []struct{ word, text string }{{"conflict", d.Conflict}, {"not applied", d.LeftOut}} {
		if l.text != "" {
			fmt.Fprintln(w, p.fair("  "+l.word+": "+terminal.Clean(l.text)))
		}
	}
	if stat || d.Text == "" {
		return nil
	}
	for line := range strings.Lines(d.Text) {
		if err := writeDiffLine(w, p, line); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(w)
	return err
}

// writeDiffLine writes a line as it is, for programs that read it, or cleaned
// and coloured for people.
func writeDiffLine(w io.Writer, p palette, line string) error {
	if !p.colour {
		_, err := io.WriteString(w, line)
		return err
	}
	var b strings.Builder
	f := terminal.NewFilter(&b)
	if _, err := io.WriteString(f, strings.TrimSuffix(line, "\n")); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	text := b.String()
	switch {
	case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"):
		text = p.bold(text)
	case line[0] == '+':
		text = p.good(text)
	case line[0] == '-':
		text = p.bad(text)
	case line[0] == '@':
		text = p.paint("36", text)
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

// diffLine is a change in JSON. Text is absent where the file is no text.
type diffLine struct {
	Change   tranca.Change `json:"change"`
	Note     string        `json:"note,omitempty"`
	Conflict string        `json:"conflict,omitempty"`
	LeftOut  string        `json:"left_out,omitempty"`
	Added    int           `json:"lines_added"`
	Dropped  int           `json:"lines_removed"`
	Text     string        `json:"diff,omitempty"`
}

func (a *app) diffJSON(ctx context.Context, kept Changes, id tranca.ID, only []string) error {
	out := struct {
		ID      tranca.ID  `json:"id"`
		Changes []diffLine `json:"changes"`
	}{id, []diffLine{}}
	err := kept.Diff(ctx, id, only, func(d *changeset.FileDiff) error {
		out.Changes = append(out.Changes, diffLine{
			Change: d.Change, Note: d.Note, Conflict: d.Conflict, LeftOut: d.LeftOut,
			Added: d.Added, Dropped: d.Dropped, Text: d.Text,
		})
		return nil
	})
	if err != nil {
		return err
	}
	return a.printJSON(out)
}
