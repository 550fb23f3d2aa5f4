package cli

import (
	"context"

	"github.com/urfave/cli/v3"

	"tranca/internal/policy"
)

const mcpHelp = `Speaks the Model Context Protocol on standard input and output, for an agent's
configuration. The agent gets the tools run_python and run_command and is told
what the policy allows, never what stands behind it. What the operator should
know goes to standard error.

Flags only narrow, and the agent can widen nothing. Without a policy file the
defaults are in force.

Examples:
  tranca mcp
  tranca mcp --policy /etc/tranca/agent.yaml

In an agent's configuration:
  {"mcpServers": {"tranca": {"command": "tranca", "args": ["mcp"]}}}

`

func (a *app) mcpCommand() *cli.Command {
	flags := []cli.Flag{
		&cli.StringFlag{Name: "policy", Usage: "read the policy from `FILE`", HideDefault: true},
	}
	flags = append(flags, valueFlags("Where it runs", placeFlags())...)
	flags = append(flags, valueFlags("What it sees", sightFlags())...)
	flags = append(flags, valueFlags("Limits", limitFlags())...)
	return &cli.Command{
		Name:        "mcp",
		Usage:       "give an agent its run_python, by the Model Context Protocol",
		Description: mcpHelp + statusHelp("0      the agent closed the connection"),
		Flags:       flags,
		Action:      a.mcp,
	}
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
