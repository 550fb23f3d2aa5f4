package cli

import (
	"context"

	"github.com/urfave/cli/v3"
)

// The commands by which the hostile suite starts parts of itself. They stand in
// no help, as they are nothing to be called by hand.
const (
	HostilePlace      = "hostile-place"
	HostileSupervisor = "hostile-supervisor"
)

func (a *app) insideCommands() []*cli.Command {
	return []*cli.Command{
		{Name: HostilePlace, Hidden: true, Action: func(ctx context.Context, _ *cli.Command) error {
			return a.HostilePlace(ctx, a.Stdin, a.Stdout)
		}},
		{Name: HostileSupervisor, Hidden: true, Action: func(ctx context.Context, _ *cli.Command) error {
			return a.HostileSupervisor(ctx, a.Stdin, a.Stdout)
		}},
	}
}
