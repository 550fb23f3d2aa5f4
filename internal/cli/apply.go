package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/urfave/cli/v3"

	"tranca"
	"tranca/internal/changeset"
	"tranca/internal/terminal"
)

const applyHelp = `Writes to the folders on this host what code wrote to its copy of them, which
"tranca diff ID" shows. Everything is looked at first: where the host has changed
anything meanwhile that would be written, nothing is.

Each file is written beside its place and then put there in one step; no link is
followed. Left out, and named, are devices, sockets, links that lead out of the
folder, and files that programs on the host run by themselves, such as git hooks,
unless they are named with --include-protected. Set-id bits are never set.

If it breaks off half way it says what was written and what was not; applying
again goes on there. A path is as the sandbox saw it, or relative to the mount.

Examples:
  tranca apply i0k3v7q2m9x4c8b1z5n6a --dry-run
  tranca apply i0k3v7q2m9x4c8b1z5n6a
  tranca apply i0k3v7q2m9x4c8b1z5n6a --only src --only README.md
  tranca apply i0k3v7q2m9x4c8b1z5n6a --include-protected .vscode
  tranca apply i0k3v7q2m9x4c8b1z5n6a --drop

`

func (a *app) applyCommand() *cli.Command {
	return &cli.Command{
		Name:        "apply",
		Usage:       "write back what code changed in folders that it saw copy-on-write",
		ArgsUsage:   "ID",
		Description: applyHelp + statusHelp("0      all was written that was not left out, or was there already"),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "dry-run", Usage: "look at everything, and say what would be written"},
			listFlag("only", "only this `PATH` and what is below it; may be repeated"),
			listFlag("include-protected", "also this `PATH`, though the host may run it by itself; may be repeated"),
			&cli.BoolFlag{Name: "drop", Usage: "forget the changes instead"},
			jsonFlag("print what became of each path as JSON"),
		},
		Action: a.apply,
	}
}

func (a *app) apply(ctx context.Context, c *cli.Command) error {
	if err := argumentCount(c, 1, 1); err != nil {
		return err
	}
	id := tranca.ID(c.Args().First())
	return a.withChanges(ctx, c, func(ctx context.Context, kept Changes) error {
		if c.Bool("drop") {
			return kept.Drop(id)
		}
		o := changeset.ApplyOptions{
			Only: listed(c, "only"), IncludeProtected: listed(c, "include-protected"), DryRun: c.Bool("dry-run"),
		}
		r, err := kept.Apply(ctx, id, o)
		if c.Bool("json") {
			return a.printApplied(r, o.DryRun, err)
		}
		a.showApplied(r, o.DryRun, err != nil)
		return err
	})
}

// showApplied says what became of the paths: of each, where it was only tried
// or did not go well, else of those that were left out.
func (a *app) showApplied(r *changeset.Report, dry, failed bool) {
	if r == nil {
		return
	}
	for _, s := range r.Steps {
		switch {
		case s.Outcome == changeset.LeftOut:
			fmt.Fprintf(a.Stderr, "tranca: left out: %s (%s)\n", terminal.Clean(s.Path), terminal.Clean(s.Why))
		case failed && s.Outcome != changeset.Already || dry:
			line := fmt.Sprintf("%-11s %-8s %s", outcomeWord(s.Outcome, dry), s.Kind, terminal.Clean(s.Path))
			if s.Why != "" {
				line += "  (" + terminal.Clean(s.Why) + ")"
			}
			fmt.Fprintln(a.Stdout, line)
		}
	}
	if failed {
		return
	}
	written, already := r.Count(changeset.Written), r.Count(changeset.Already)
	switch {
	case dry:
		fmt.Fprintf(a.Stderr, "tranca: nothing was written; to be written: %s\n", countOf(written, "path"))
	case written == 0 && already > 0:
		fmt.Fprintln(a.Stderr, "tranca: the changes were applied already")
	default:
		fmt.Fprintf(a.Stderr, "tranca: written: %s\n", countOf(written, "path"))
	}
}

// countOf is a number of things.
func countOf(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func outcomeWord(o changeset.Outcome, dry bool) string {
	switch o {
	case changeset.Written:
		if dry {
			return "would write"
		}
		return "written"
	case changeset.Already:
		return "is there"
	case changeset.Refused:
		return "conflict"
	}
	return "not written"
}

// stepJSON is what became of one path.
type stepJSON struct {
	Change  tranca.Change     `json:"change"`
	Outcome changeset.Outcome `json:"outcome"`
	Why     string            `json:"why,omitempty"`
}

type appliedJSON struct {
	ID     tranca.ID  `json:"id"`
	DryRun bool       `json:"dry_run,omitempty"`
	Paths  []stepJSON `json:"paths"`
	// Error is set where it did not go well: Paths say what was written.
	Error string `json:"error,omitempty"`
}

// printApplied prints what became of the paths, also where it did not go well.
func (a *app) printApplied(r *changeset.Report, dry bool, failed error) error {
	if r == nil || failed != nil && len(r.Steps) == 0 {
		return failed
	}
	out := appliedJSON{ID: r.ID, DryRun: dry, Paths: []stepJSON{}}
	for _, s := range r.Steps {
		out.Paths = append(out.Paths, stepJSON{s.Change, s.Outcome, s.Why})
	}
	if failed != nil {
		out.Error = failed.Error()
		explainError(a.Stderr, failed)
	}
	if err := a.printJSON(out); err != nil {
		return err
	}
	return exit(errorStatus(failed))
}

// applyFlag applies the changes of a run.
func applyFlag() cli.Flag {
	return &cli.BoolFlag{Name: "apply", Usage: "write changes to mounts of mode cow back to the host's folders, if the program ends with status 0"}
}

// checkApply refuses the flag where it would do nothing.
func checkApply(c *cli.Command, s settled) error {
	switch {
	case !c.Bool("apply"):
		return nil
	case remote(c):
		return &usageError{c.FullName(), "--apply writes to folders of this host, and on a server they are the server's: there, tranca apply ID"}
	case !slices.ContainsFunc(s.policy.Mounts, func(m tranca.Mount) bool { return m.Cow }):
		return &usageError{c.FullName(), "--apply is for mounts of mode cow, and there is none: --mount SRC:DST:cow"}
	}
	return nil
}

// applyRun applies what a run has changed, where that was asked for and the
// program has ended well.
func (a *app) applyRun(ctx context.Context, c *cli.Command, res *tranca.Result) error {
	if !c.Bool("apply") || res.ChangesState != tranca.ChangesKept {
		return nil
	}
	if !res.Exit.Success() {
		res.Notes = append(res.Notes, "its changes were not applied, for it did not end well")
		return nil
	}
	var r *changeset.Report
	err := a.atChanges(ctx, func(ctx context.Context, kept Changes) (err error) {
		r, err = kept.Apply(ctx, res.ID, changeset.ApplyOptions{})
		return err
	})
	if !c.Bool("quiet") && !c.Bool("json") {
		a.showApplied(r, false, err != nil)
	}
	if err != nil {
		return fmt.Errorf("the changes are kept: tranca diff %s: %w", res.ID, err)
	}
	res.ChangesState = tranca.ChangesApplied
	return nil
}

// changesLine says where the changes of a run are.
func changesLine(c *cli.Command, res *tranca.Result) string {
	switch {
	case res.ChangesState != tranca.ChangesKept:
		return ""
	case remote(c):
		return fmt.Sprintf("kept on the server's host, where the folders are as they were: %s: tranca diff %s", countOf(len(res.Changes), "change"), res.ID)
	}
	return fmt.Sprintf("kept, and the folders are as they were: %s: tranca diff %s; tranca apply %[2]s", countOf(len(res.Changes), "change"), res.ID)
}
