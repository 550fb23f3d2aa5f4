package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v3"

	"tranca/client"
)

const logsHelp = `Prints what is kept of a program's output, each stream where it belongs; the
server keeps the last of it, within a bound, for a while after the program's end.
The program is not disturbed: it goes on when this ends.

Programs are named by their id, by the pid of one that runs, or by tag=NAME.

Examples:
  tranca logs $id p3
  tranca logs -f $id tag=web

`

func (a *app) logsCommand() *cli.Command {
	return &cli.Command{
		Name:        "logs",
		Usage:       "print the output of a program in a sandbox",
		ArgsUsage:   "ID PROCESS",
		Description: logsHelp + statusHelp("0      all was printed, whatever became of the program"),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "follow", Aliases: []string{"f"}, Usage: "go on until the program's end"},
			serverFlag(),
		},
		Action: a.logs,
	}
}

func (a *app) logs(ctx context.Context, c *cli.Command) error {
	return a.withProcess(ctx, c, func(ctx context.Context, p *client.Process) error {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		failed := func(err error) { cancel(fmt.Errorf("the output can't be written: %w", err)) }
		o := a.newOutputs(ctx, failed)
		var err error
		if c.Bool("follow") {
			err = a.follow(ctx, p.Follow(client.FollowOptions{}), o.out, o.errs)
		} else {
			err = a.printKept(ctx, p, o.out, o.errs)
		}
		if lost := o.end(ctx); err == nil {
			err = lost
		}
		return err
	})
}

// printKept prints what is kept at this moment.
func (a *app) printKept(ctx context.Context, p *client.Process, out, errs io.Writer) error {
	kept, err := p.Output(ctx)
	if err != nil {
		return err
	}
	a.sayDropped(kept.StdoutDropped, "output")
	a.sayDropped(kept.StderrDropped, "error output")
	_, _ = out.Write(kept.Stdout) // what fails here is told when the stream ends
	_, _ = errs.Write(kept.Stderr)
	return nil
}

// sayDropped says that some of what a program wrote can't be shown.
func (a *app) sayDropped(bytes int64, name string) {
	if bytes > 0 {
		fmt.Fprintf(a.Stderr, "tranca: %d bytes of its %s are not kept any more\n", bytes, name)
	}
}

// withProcess is withSandbox for a command whose second argument is a process.
func (a *app) withProcess(ctx context.Context, c *cli.Command, work func(context.Context, *client.Process) error) error {
	return a.withSandbox(ctx, c, 2, 2, func(ctx context.Context, box *client.Sandbox) error {
		p, err := findProcess(ctx, box, c.Args().Get(1))
		if err != nil {
			return err
		}
		return work(ctx, p)
	})
}
