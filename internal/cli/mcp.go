package cli

import (
	"context"

	"github.com/urfave/cli/v3"

	"tranca/internal/policy"
)

const mcpHelp = `Speaks the Model Context Protocol on standard input and output, for an agent's
configuration. The agent gets tools that run programs and work on files, also in
sessions whose files stay from call to call, and is told what the policy allows,
never what stands behind it. What the operator should know goes to standard
error.

Flags only narrow, and the agent can widen nothing. Without a policy file the
defaults are in force.

Examples:
  tranca mcp
  tranca mcp --policy /etc/tranca/agent.yaml
  tranca mcp install claude-code

In an agent's configuration, which the last one writes:
  {"mcpServers": {"tranca": {"command": "tranca", "args": ["mcp"]}}}

`

func (a *app) mcpCommand() *cli.Command {
	flags := []cli.Flag{
		&cli.StringFlag{Name: "policy", Usage: "read the policy from `FILE`", HideDefault: true},
	}
	flags = append(flags, valueFlags("Where it runs", placeFlags())...)
	flags = append(flags, refusedFlags(valueFlags("What it sees", sightFlags()))...)
	flags = append(flags, valueFlags("Limits", limitFlags())...)
	return &cli.Command{
		Name:        "mcp",
		Usage:       "give an agent its run_python, by the Model Context Protocol",
		Description: mcpHelp + statusHelp("0      the agent closed the connection"),
		Flags:       flags,
		Commands:    []*cli.Command{a.installCommand()},
		Action:      a.mcp,
	}
}

// refusedFlags takes those flags out of the help that could only widen: under
// this command they exist to be refused with the reason.
func refusedFlags(flags []cli.Flag) []cli.Flag {
	for _, f := range flags {
		if g, ok := f.(*cli.GenericFlag); ok && (g.Name == "mount" || g.Name == "waive") {
			g.Hidden = true
		}
	}
	return flags
}

func (a *app) mcp(ctx context.Context, c *cli.Command) error {
	if err := noArguments(c); err != nil {
		return err
	}
	ctx, stop := interruptible(ctx, a.Quit)
	defer stop()
	s, err := a.settleServer(c)
	if err != nil {
		return err
	}
	err = a.MCP(ctx, MCPSetup{
		Policy: s.policy, Narrow: s.narrow,
		In: a.Stdin, Out: a.Stdout, Log: a.Stderr, Version: Version,
		Report: func(err error) { explainError(a.Stderr, err) },
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// settleServer is settle for a surface at whose other end is no operator:
// without a policy file the defaults are one, and flags only narrow.
func (a *app) settleServer(c *cli.Command) (settled, error) {
	o, err := overrides(c, limitFlags(), placeFlags(), sightFlags())
	if err != nil {
		return settled{}, err
	}
	p, found, err := a.FindPolicy(c.String("policy"))
	if err != nil {
		return settled{}, err
	}
	if !found {
		p = policy.Default()
	}
	return narrowed(p, o)
}
