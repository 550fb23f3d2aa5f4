package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v3"

	"tranca"
	"tranca/client"
)

func (a *app) rmCommand() *cli.Command {
	return &cli.Command{
		Name:      "rm",
		Usage:     "remove sandboxes, with all that runs in them and all their files",
		ArgsUsage: "ID... | --all",
		Description: "One that has ended already is no error. What is no id is one.\n\nExamples:\n" +
			"  tranca rm i0k3v7q2m9x4c8b1z5n6a\n" +
			"  tranca rm --all\n\n" +
			statusHelp("0      nothing of them is left"),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "all", Usage: "remove all that live on the server"},
			serverFlag(),
		},
		Action: a.rm,
	}
}

func (a *app) rm(ctx context.Context, c *cli.Command) error {
	if c.Bool("all") == c.Args().Present() {
		return &usageError{c.FullName(), "name the sandboxes to remove, or give --all"}
	}
	return a.withServer(ctx, c, func(ctx context.Context, s *client.Client) error {
		ids := c.Args().Slice()
		if c.Bool("all") {
			all, err := s.List(ctx, client.ListOptions{})
			if err != nil {
				return err
			}
			for _, info := range all {
				ids = append(ids, string(info.ID))
			}
		}
		return a.remove(ctx, s, ids, c.Bool("all"))
	})
}

// remove removes each, whatever becomes of the others, and returns the first
// error; further ones are told.
func (a *app) remove(ctx context.Context, s *client.Client, ids []string, listed bool) error {
	var first error
	p := a.progress("removing", 0)
	defer p.stop()
	for _, id := range ids {
		err := removeOne(ctx, s, tranca.ID(id))
		switch {
		case err == nil, listed && errors.Is(err, tranca.ErrNotFound):
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case first == nil:
			first = fmt.Errorf("%s: %w", id, err)
		default:
			p.stop()
			explainError(a.Stderr, fmt.Errorf("%s: %w", id, err))
		}
	}
	return first
}

// removeOne removes a sandbox that lives. One that ended by itself is no error.
func removeOne(ctx context.Context, s *client.Client, id tranca.ID) error {
	box, err := findSandbox(ctx, s, id)
	switch {
	case errors.Is(err, tranca.ErrGone):
		return nil
	case err != nil:
		return err
	}
	return box.Close(ctx)
}
