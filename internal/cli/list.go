package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/urfave/cli/v3"

	"tranca"
	"tranca/client"
	"tranca/internal/terminal"
)

func (a *app) listCommand() *cli.Command {
	return &cli.Command{
		Name:    "list",
		Aliases: []string{"ls"},
		Usage:   "list the sandboxes that live on the server",
		Description: "Examples:\n" +
			"  tranca list\n" +
			"  tranca list --meta task=17 --json\n" +
			"  tranca rm $(tranca list --quiet --meta task=17)\n\n" +
			statusHelp("0      they are listed, also if there is none"),
		Flags: []cli.Flag{
			metaFlag("only those with `NAME=VALUE`; may be repeated"),
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print ids only"},
			jsonFlag("print all that is known of them as JSON"), serverFlag(),
		},
		Action: a.list,
	}
}

func (a *app) list(ctx context.Context, c *cli.Command) error {
	if err := noArguments(c); err != nil {
		return err
	}
	meta, err := pairs(c, "meta")
	if err != nil {
		return err
	}
	return a.withServer(ctx, c, func(ctx context.Context, s *client.Client) error {
		all, err := s.List(ctx, client.ListOptions{Metadata: meta})
		switch {
		case err != nil:
			return err
		case c.Bool("json"):
			if all == nil {
				all = []tranca.SandboxInfo{}
			}
			return a.printJSON(all)
		case c.Bool("quiet"):
			for _, s := range all {
				if _, err := fmt.Fprintln(a.Stdout, terminal.Clean(string(s.ID))); err != nil {
					return err
				}
			}
			return nil
		}
		return a.printSandboxes(all, time.Now())
	})
}

func (a *app) printSandboxes(all []tranca.SandboxInfo, now time.Time) error {
	var rows [][]string
	for _, s := range all {
		rows = append(rows, []string{
			string(s.ID), s.Profile, span(now.Sub(s.Created)), span(s.Expires.Sub(now)),
			strconv.Itoa(s.Processes), cut(pairText(s.Metadata), 60),
		})
	}
	return a.printTable([]string{"ID", "PROFILE", "AGE", "EXPIRES IN", "PROCESSES", "METADATA"}, rows)
}
