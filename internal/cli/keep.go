package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/urfave/cli/v3"

	"tranca/client"
)

func (a *app) keepCommand() *cli.Command {
	return &cli.Command{
		Name:      "keep",
		Usage:     "let a sandbox live for longer, or end earlier",
		ArgsUsage: "ID",
		Description: "Sets the sandbox's end to a time from now; without --ttl it is the one that\n" +
			"the server gives new sandboxes. The server has a maximum.\n\nExamples:\n" +
			"  tranca keep i0k3v7q2m9x4c8b1z5n6a --ttl 2h\n" +
			"  while sleep 300; do tranca keep $id; done\n\n" +
			statusHelp("0      it lives for so long"),
		Flags: []cli.Flag{
			durationFlag("ttl", "end it this `TIME` from now"),
			jsonFlag("print all that is known of it as JSON"), serverFlag(),
		},
		Action: a.keep,
	}
}

func (a *app) keep(ctx context.Context, c *cli.Command) error {
	ttl, err := duration(c, "ttl")
	if err != nil {
		return err
	}
	return a.withSandbox(ctx, c, 1, 1, func(ctx context.Context, box *client.Sandbox) error {
		info, err := box.KeepAlive(ctx, ttl)
		switch {
		case err != nil:
			return err
		case c.Bool("json"):
			return a.printJSON(info)
		}
		_, err = fmt.Fprintf(a.Stdout, "it ends in %s, at %s\n",
			span(time.Until(info.Expires)+time.Second), info.Expires.Local().Format(time.DateTime))
		return err
	})
}
