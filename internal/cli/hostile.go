package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"tranca"
	"tranca/hostile/report"
	"tranca/internal/statefile"
)

// HostileSetup is what a run of the hostile suite is made from. Empty lists mean
// all that there are, but for Against and Waive, which then are none.
type HostileSetup struct {
	// Backends are those to run against, by their names.
	Backends []string
	// Only are patterns for the ids of probes, as [report.Selects] takes them.
	Only []string
	// Quick runs one probe for each row of the catalogue.
	Quick bool
	// Against are templates of commands, as [report.ParseCommand] takes them.
	Against []string
	// ProbesDir is the folder with the probes; empty is this build's own.
	ProbesDir string
	// Waive are items that no backend has to enforce.
	Waive []tranca.Item
	// Reference asks for the reference columns, too.
	Reference bool
	// Progress is told how far it is. It may be called by several goroutines at
	// once, and returns soon.
	Progress func(report.Progress)
}

// Wants reports whether a column of a backend is asked for: "container (runsc)" is
// by its own name and by "container".
func (s HostileSetup) Wants(column string) bool {
	backend, _, _ := strings.Cut(column, " (")
	return len(s.Backends) == 0 || slices.Contains(s.Backends, column) || slices.Contains(s.Backends, backend)
}

const hostileHelp = `Runs hostile programs against each backend of this host and says what they got.
Each is also run without a boundary, in a disposable place where it can't hurt
the host: there it must get through, or its cell proves nothing. Nothing is
believed that a program says of itself; what counts is what is seen from outside.

  contained  it was denied                  failed   denied, but the result lied,
  limited    a limit stopped it, as told             or something was left
  escaped    it got what is forbidden       unknown  nothing is shown, for a reason

--against holds somebody else's sandbox against the same programs: a command
that starts Python in it and reads the program from standard input. No shell
runs it; its words are parted as a shell would, with quotes.

Examples:
  tranca hostile
  tranca hostile --backend process --only 'fs-*'
  tranca hostile --html report.html --json > report.json
  tranca hostile --compare report.json
  tranca hostile --reference --against "bwrap --ro-bind / / --unshare-all python3 -"
  tranca hostile --against "docker=docker run -i --rm python:3.12-slim python -"
  tranca hostile --list

`

func (a *app) hostileCommand() *cli.Command {
	return &cli.Command{
		Name:  "hostile",
		Usage: "run hostile programs against each backend, and say what they got",
		Description: hostileHelp + "Exit status:\n" +
			"  0      nothing escaped, failed, or is unknown where it is promised\n" +
			"  1      something did, or got worse than in the report of --compare\n" +
			"  125    tranca itself failed, or the request is malformed\n" +
			"  126    none of the boundaries that were asked for can run here\n" +
			"  130    Ctrl-C ended it; what was found is written, and marked as partial",
		Flags: []cli.Flag{
			listFlag("backend", "run against the backend of this `NAME`; left out, all; may be repeated"),
			listFlag("only", "run the probes whose ids fit this `PATTERN`, such as 'net-*'; may be repeated"),
			&cli.BoolFlag{Name: "quick", Usage: "run one probe for each row of the catalogue, which takes half the time"},
			listFlag("against", "hold this `[NAME=]COMMAND` against them; may be repeated"),
			&cli.BoolFlag{Name: "reference", Usage: "show beside them what has no boundary, or a weak one"},
			listFlag("waive", "let no backend promise this `ITEM`; may be repeated"),
			&cli.StringFlag{Name: "probes", Usage: "run the probes of this `FOLDER`; left out, tranca's own", HideDefault: true},
			&cli.StringFlag{Name: "compare", Usage: "say what changed since the report in `FILE`, made by --json", HideDefault: true},
			&cli.StringFlag{Name: "html", Usage: "write a page with all that was found to `FILE`", HideDefault: true},
			jsonFlag("print the report as JSON"),
			&cli.BoolFlag{Name: "list", Usage: "list the probes and run none"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "show no progress, and print only what is wrong"},
		},
		Action: func(ctx context.Context, c *cli.Command) error {
			if err := noArguments(c); err != nil {
				return err
			}
			if c.Bool("list") {
				return a.reported(c, malformed(a.listProbes(c)))
			}
			return a.reported(c, malformed(a.hostile(ctx, c)))
		},
	}
}

// malformed takes an error about something that isn't there for one about the
// request: nothing here is a program that was not found.
func malformed(err error) error {
	if errors.Is(err, tranca.ErrNotFound) {
		return fmt.Errorf("%w: %s", tranca.ErrInvalid, plain(err))
	}
	return err
}

// chosen returns those of the probes that the setup asks for. A pattern that fits
// none is an error.
func (a *app) chosen(s HostileSetup) ([]report.Probe, error) {
	all, err := a.HostileProbes(s.ProbesDir)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(all))
	for i, p := range all {
		ids[i] = p.ID
	}
	for _, pattern := range s.Only {
		if !slices.ContainsFunc(ids, func(id string) bool { return selects([]string{pattern}, id) }) {
			return nil, report.NoSuch("probe", pattern, ids)
		}
	}
	return slices.DeleteFunc(all, func(p report.Probe) bool { return !selects(s.Only, p.ID) }), nil
}

// selects is [report.Selects] for patterns that were looked at.
func selects(patterns []string, id string) bool {
	fits, _ := report.Selects(patterns, id)
	return fits
}

// hostileSetup reads the flags.
func hostileSetup(c *cli.Command) (HostileSetup, error) {
	s := HostileSetup{
		Backends: listed(c, "backend"), Only: listed(c, "only"), Against: listed(c, "against"),
		ProbesDir: c.String("probes"), Reference: c.Bool("reference"), Quick: c.Bool("quick"),
	}
	wrong := func(flag string, err error) (HostileSetup, error) {
		return s, &usageError{c.FullName(), "--" + flag + ": " + plain(err)}
	}
	if _, err := report.Selects(s.Only, ""); err != nil {
		return wrong("only", err)
	}
	names := map[string]bool{}
	for _, text := range s.Against {
		name, _, err := report.ParseCommand(text)
		if err == nil && names[name] {
			err = fmt.Errorf("%w: two columns would be called %q; name one of them: --against %q", tranca.ErrInvalid, name, "NAME="+text)
		}
		if err != nil {
			return wrong("against", err)
		}
		names[name] = true
	}
	var err error
	s.Waive, err = waived(c)
	return s, err
}

// suite says why there is none, where there is none.
func (a *app) suite() error {
	switch {
	case a.Elsewhere != nil:
		return a.Elsewhere
	case a.Hostile == nil || a.HostileProbes == nil:
		return fmt.Errorf("%w: this build has no hostile suite", tranca.ErrUnsupported)
	}
	return nil
}

func (a *app) hostile(ctx context.Context, c *cli.Command) error {
	if err := a.suite(); err != nil {
		return err
	}
	setup, err := hostileSetup(c)
	if err != nil {
		return err
	}
	// What can fail at the end and be known now is not to cost a whole run.
	if _, err := a.chosen(setup); err != nil {
		return err
	}
	before, err := earlier("compare", c.String("compare"), report.Read)
	if err != nil {
		return err
	}
	page := c.String("html")
	if page != "" {
		if err := tryWhole(page); err != nil {
			return err
		}
	}
	ctx, stop := interruptible(ctx, a.Quit)
	defer stop()
	live := a.watchHostile(c.Bool("quiet"))
	setup.Progress = live.tell
	found, err := a.Hostile(ctx, setup)
	live.stop()
	if found == nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil {
			err = errors.New("the suite returned nothing")
		}
		return err
	}
	stopped := ctx.Err() != nil && found.Partial
	if stopped && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx))) {
		err = nil
	}
	changes := comparison(before, found, setup)
	a.keepHostile(found, setup)
	if err := errors.Join(err, a.tellHostile(c, found, changes)); err != nil {
		return err
	}
	switch {
	case stopped:
		return context.Cause(ctx)
	case changes != nil && changes.Regressions > 0:
		return exit(1)
	}
	return exit(found.Status())
}

// keepHostile keeps a whole result where `tranca advise` looks for one.
func (a *app) keepHostile(found *report.Report, s HostileSetup) {
	if found.Partial || len(s.Only)+len(s.Backends) > 0 || s.Quick || s.ProbesDir != "" {
		return
	}
	path, err := statefile.Path(a.Getenv, statefile.Hostile)
	if err != nil {
		return // a user without a home has nowhere to keep it
	}
	a.keepState(path, found.WriteJSON)
}

// comparison compares with an earlier report, as far as this run went: what the
// flags left out is not missed.
func comparison(before, found *report.Report, s HostileSetup) *report.Changes {
	if before == nil {
		return nil
	}
	narrowed, left := before.Narrow(func(c *report.Column) bool {
		switch c.Kind {
		case report.ColumnReference:
			return s.Reference
		case report.ColumnAgainst:
			return found.Column(c.Name) != nil
		case report.ColumnBackend:
			return s.Wants(c.Name)
		}
		return true
	}, func(p *report.Probe) bool { return selects(s.Only, p.ID) && (!s.Quick || found.Probe(p.ID) != nil) })
	changes := report.Compare(narrowed, found)
	if left != "" {
		changes.Notes = append(changes.Notes, "not compared, as this run was not asked for it: "+left)
	}
	return &changes
}

// tellHostile writes what was found, in each form that was asked for.
func (a *app) tellHostile(c *cli.Command, found *report.Report, changes *report.Changes) error {
	if page := c.String("html"); page != "" {
		err := writeWhole(page, 0o666, func(w io.Writer) error { return report.WriteHTML(w, found) })
		if err != nil {
			return errors.Join(err, a.printHostile(c, found, changes))
		}
	}
	return a.printHostile(c, found, changes)
}

func (a *app) printHostile(c *cli.Command, found *report.Report, changes *report.Changes) error {
	quiet := c.Bool("quiet")
	if c.Bool("json") {
		if changes == nil {
			return found.WriteJSON(shielded(a.Stdout))
		}
		return found.WriteComparedJSON(shielded(a.Stdout), changes)
	}
	t := newHostileText(newPalette(a.Stdout, a.Getenv), found)
	t.write(quiet)
	if changes != nil && (!quiet || changes.Regressions > 0) {
		t.compared(changes)
	}
	_, err := a.Stdout.Write(t.Bytes())
	return err
}

func (a *app) listProbes(c *cli.Command) error {
	if err := a.suite(); err != nil {
		return err
	}
	setup, err := hostileSetup(c)
	if err != nil {
		return err
	}
	probes, err := a.chosen(setup)
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return a.printJSON(probes)
	}
	var rows [][]string
	for _, p := range probes {
		rows = append(rows, []string{p.ID, p.Group, p.Severity, string(p.Guarantee), p.Try})
	}
	return a.printTable([]string{"ID", "GROUP", "SEVERITY", "GUARANTEE", "WHAT IS TRIED"}, rows)
}
