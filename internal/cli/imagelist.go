package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"tranca/internal/image"
	"tranca/internal/terminal"
)

func (a *app) imageList() *cli.Command {
	return &cli.Command{
		Name:    "list",
		Aliases: []string{"ls"},
		Usage:   "list the images that are there, and which policies use them",
		Description: "Examples:\n" +
			"  tranca image list\n" +
			"  tranca image list --json\n\n" +
			statusHelp("0      they are listed, also if there is none"),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print digests only"},
			jsonFlag("print all that is known of them as JSON"),
		},
		Action: func(ctx context.Context, c *cli.Command) error {
			if err := noArguments(c); err != nil {
				return err
			}
			return a.withImages(ctx, c, func(ctx context.Context, s Images) error { return a.listImages(ctx, c, s) })
		},
	}
}

// listedImage is an image in the list.
type listedImage struct {
	image.Info
	// Policies are the policy files that name it.
	Policies []string `json:"policies"`
}

func (a *app) listImages(ctx context.Context, c *cli.Command, s Images) error {
	all, err := s.List(ctx)
	if err != nil {
		return err
	}
	users, err := s.Users(ctx)
	if err != nil {
		return err
	}
	listed := []listedImage{}
	for _, i := range all {
		policies := users[i.Digest]
		if policies == nil {
			policies = []string{}
		}
		listed = append(listed, listedImage{i, policies})
	}
	switch {
	case c.Bool("json"):
		return a.printJSON(listed)
	case c.Bool("quiet"):
		for _, i := range listed {
			if _, err := fmt.Fprintln(a.Stdout, i.Digest); err != nil {
				return err
			}
		}
		return nil
	}
	return a.printImages(listed, time.Now())
}

func (a *app) printImages(all []listedImage, now time.Time) error {
	var rows [][]string
	for _, i := range all {
		name, added, used := strings.Join(i.Names, ", "), "-", "-"
		if name == "" {
			name = "-"
		}
		if !i.Added.IsZero() {
			added = span(now.Sub(i.Added))
		}
		if !i.Used.IsZero() {
			used = span(now.Sub(i.Used)) + " ago"
		}
		state := strings.Join(i.Policies, ", ")
		if i.Damaged != "" {
			state = "damaged: " + i.Damaged
		}
		rows = append(rows, []string{
			cut(name, 60), strings.TrimPrefix(i.Digest, "sha256:")[:12], roundSize(i.Size + i.Tally.Bytes), added, used, cut(state, 80),
		})
	}
	return a.printTable([]string{"NAME", "DIGEST", "ON DISK", "AGE", "USED", "POLICIES"}, rows)
}

func (a *app) imageInspect() *cli.Command {
	return &cli.Command{
		Name:      "inspect",
		Usage:     "show all that is known of an image",
		ArgsUsage: "NAME|DIGEST",
		Description: "A digest may be cut after six digits or more.\n\nExamples:\n" +
			"  tranca image inspect code\n" +
			"  tranca image inspect --json code\n\n" +
			statusHelp("0      shown"),
		Flags: []cli.Flag{jsonFlag("print it as JSON")},
		Action: func(ctx context.Context, c *cli.Command) error {
			if err := argumentCount(c, 1, 1); err != nil {
				return err
			}
			return a.withImages(ctx, c, func(ctx context.Context, s Images) error {
				d, err := s.Inspect(ctx, c.Args().First())
				switch {
				case err != nil:
					return notFound(err)
				case c.Bool("json"):
					return a.printJSON(d)
				}
				return a.printImage(d)
			})
		},
	}
}

func (a *app) printImage(d image.Detail) error {
	rows := [][2]string{
		{"digest", d.Digest}, {"names", strings.Join(d.Names, ", ")}, {"from", d.Source},
		{"platform", d.Platform.String()}, {"configuration", d.Config},
		{"layers", fmt.Sprintf("%d, of %s", len(d.Layers), roundSize(d.Size))},
		{"tree", fmt.Sprintf("%s, %d entries of %s", d.Root, d.Tally.Entries, roundSize(d.Tally.Bytes))},
	}
	if d.Tally.LeftOut > 0 {
		rows = append(rows, [2]string{"left out", fmt.Sprintf("%d: %s", d.Tally.LeftOut, strings.Join(d.Tally.Some, " "))})
	}
	if d.Tally.SetID > 0 {
		rows = append(rows, [2]string{"set-id bits", fmt.Sprintf("taken from %d programs", d.Tally.SetID)})
	}
	if d.Damaged != "" {
		rows = append(rows, [2]string{"damaged", d.Damaged})
	}
	for _, name := range slices.Sorted(maps.Keys(d.Env)) {
		rows = append(rows, [2]string{"env", name + "=" + d.Env[name]})
	}
	for _, row := range [][2]string{
		{"entry point", commandText(d.Entrypoint)}, {"command", commandText(d.Command)}, {"user", d.User},
		{"folder", d.Workdir}, {"volumes", strings.Join(d.Volumes, " ")}, {"health check", string(d.Health)},
	} {
		if row[1] != "" {
			rows = append(rows, [2]string{row[0], row[1] + "  (not used: the policy decides)"})
		}
	}
	for _, row := range rows {
		if _, err := fmt.Fprintf(a.Stdout, "%-14s %s\n", row[0], terminal.Clean(row[1])); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) imageRm() *cli.Command {
	return &cli.Command{
		Name:      "rm",
		Usage:     "remove images",
		ArgsUsage: "NAME|DIGEST...",
		Description: "By a name it gives up that name, and removes the image where it has no other.\n" +
			"One that a sandbox uses stays.\n\nExamples:\n" +
			"  tranca image rm python:3.12-slim\n" +
			"  tranca image rm $(tranca image list --quiet)\n\n" +
			statusHelp("0      removed"),
		Flags: []cli.Flag{jsonFlag("print what was removed as JSON")},
		Action: func(ctx context.Context, c *cli.Command) error {
			if err := argumentCount(c, 1, 1<<20); err != nil {
				return err
			}
			return a.withImages(ctx, c, func(ctx context.Context, s Images) error {
				out := image.Removed{Names: []string{}, Images: []string{}}
				for _, name := range c.Args().Slice() {
					one, err := s.Remove(ctx, name)
					if err != nil {
						return fmt.Errorf("%s: %w", name, notFound(err))
					}
					out.Names, out.Images = append(out.Names, one.Names...), append(out.Images, one.Images...)
					out.Bytes += one.Bytes
				}
				return a.printRemoved(c, out)
			})
		},
	}
}

func (a *app) imagePrune() *cli.Command {
	return &cli.Command{
		Name:  "prune",
		Usage: "remove what no name leads to, or all images that no policy uses",
		Description: "Removes images that lost their names, layers that no image needs, and what\n" +
			"killed commands left. With --all also every image that no policy names. What a\n" +
			"sandbox uses stays.\n\nExamples:\n" +
			"  tranca image prune\n" +
			"  tranca image prune --all\n\n" +
			statusHelp("0      done"),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "all", Usage: "also images that no policy names"},
			jsonFlag("print what was removed as JSON"),
		},
		Action: func(ctx context.Context, c *cli.Command) error {
			if err := noArguments(c); err != nil {
				return err
			}
			return a.withImages(ctx, c, func(ctx context.Context, s Images) error {
				users, err := s.Users(ctx)
				if err != nil {
					return err
				}
				out, err := s.Prune(ctx, c.Bool("all"), func(i image.Info) bool { return len(users[i.Digest]) > 0 })
				if err != nil {
					return err
				}
				return a.printRemoved(c, out)
			})
		},
	}
}

func (a *app) printRemoved(c *cli.Command, out image.Removed) error {
	if c.Bool("json") {
		return a.printJSON(out)
	}
	for _, why := range out.Kept {
		fmt.Fprintf(a.Stderr, "tranca: %s\n", terminal.Clean(why))
	}
	_, err := fmt.Fprintf(a.Stdout, "removed %d images, freed %s\n", len(out.Images), roundSize(out.Bytes))
	return err
}
