package cli

import (
	"context"
	"strconv"
	"time"

	"github.com/urfave/cli/v3"

	"tranca"
	"tranca/client"
)

func (a *app) psCommand() *cli.Command {
	return &cli.Command{
		Name:      "ps",
		Usage:     "list the programs that were started in a sandbox",
		ArgsUsage: "ID",
		Description: "Those that run and the last ones that have ended. What they started in turn is\n" +
			"not told: for that, run ps in the sandbox.\n\nExamples:\n" +
			"  tranca ps $id\n" +
			"  tranca ps $id --tag web --json\n\n" +
			statusHelp("0      they are listed, also if there is none"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "tag", Usage: "only those with this `NAME`", HideDefault: true},
			&cli.BoolFlag{Name: "running", Usage: "only those that run"},
			jsonFlag("print all that is known of them as JSON"), serverFlag(),
		},
		Action: a.ps,
	}
}

func (a *app) ps(ctx context.Context, c *cli.Command) error {
	return a.withSandbox(ctx, c, 1, 1, func(ctx context.Context, box *client.Sandbox) error {
		listed, err := box.Processes(ctx, c.String("tag"))
		if err != nil {
			return err
		}
		all := []tranca.ProcessInfo{}
		for _, p := range listed {
			if p.Exit == nil || !c.Bool("running") {
				all = append(all, p)
			}
		}
		if c.Bool("json") {
			return a.printJSON(all)
		}
		return a.printProcesses(all, time.Now())
	})
}

func (a *app) printProcesses(all []tranca.ProcessInfo, now time.Time) error {
	var rows [][]string
	for _, p := range all {
		rows = append(rows, []string{
			string(p.ID), strconv.Itoa(p.PID), p.Tag, processState(p),
			span(now.Sub(p.Started)) + " ago", cut(commandText(p.Args), 80),
		})
	}
	return a.printTable([]string{"ID", "PID", "TAG", "STATE", "STARTED", "COMMAND"}, rows)
}

// processState is how a program is, or how it ended.
func processState(p tranca.ProcessInfo) string {
	if p.Exit == nil {
		return "running"
	}
	switch p.Exit.Reason {
	case tranca.EndExited:
		return "exited " + strconv.Itoa(p.Exit.Code)
	case tranca.EndSignaled:
		return signalName(p.Exit.Signal)
	}
	return string(p.Exit.Reason)
}
