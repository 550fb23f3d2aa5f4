package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"tranca"
	"tranca/client"
	"tranca/internal/policy"
)

// serverFlag names the server of a command that needs one.
func serverFlag() cli.Flag {
	return &cli.StringFlag{
		Name: "server", HideDefault: true,
		Usage: "the server at this `URL|SOCKET`; else the one in TRANCA_SERVER, or your own",
	}
}

// connect makes a client of the server that is meant. It speaks to nobody yet.
func (a *app) connect(c *cli.Command) (*client.Client, error) {
	if c.IsSet("server") {
		return client.New(client.WithServer(c.String("server"), a.Getenv(client.EnvKey)))
	}
	return client.New()
}

// withServer does the work of a command that asks a server something. The first
// signal ends the context, and with it the work.
func (a *app) withServer(ctx context.Context, c *cli.Command, work func(context.Context, *client.Client) error) error {
	ctx, stop := interruptible(ctx, a.Quit)
	defer stop()
	return a.reported(c, a.atServer(ctx, c, work))
}

// reported prints an error as JSON too, where that was asked for.
func (a *app) reported(c *cli.Command, err error) error {
	var own *exitError
	if err != nil && c.Bool("json") && !errors.As(err, &own) {
		if jsonErr := a.printErrorJSON(err); jsonErr != nil {
			return jsonErr
		}
	}
	return err
}

func (a *app) atServer(ctx context.Context, c *cli.Command, work func(context.Context, *client.Client) error) error {
	s, err := a.connect(c)
	if err != nil {
		return err
	}
	defer s.Close()
	return work(ctx, s)
}

// withSandbox is withServer for a command whose first argument is a sandbox,
// and which takes least to most arguments in all.
func (a *app) withSandbox(ctx context.Context, c *cli.Command, least, most int, work func(context.Context, *client.Sandbox) error) error {
	if err := argumentCount(c, least, most); err != nil {
		return err
	}
	return a.withServer(ctx, c, func(ctx context.Context, s *client.Client) error {
		box, err := findSandbox(ctx, s, tranca.ID(c.Args().First()))
		if err != nil {
			return err
		}
		return work(ctx, box)
	})
}

// findSandbox finds the sandbox that was named. Its error says where to look
// for another.
func findSandbox(ctx context.Context, s *client.Client, id tranca.ID) (*client.Sandbox, error) {
	box, err := s.Sandbox(ctx, id)
	if errors.Is(err, tranca.ErrNotFound) || errors.Is(err, tranca.ErrGone) {
		return nil, fmt.Errorf("%w; those that live: tranca list", err)
	}
	return box, err
}

// findProcess is findSandbox for a program in a sandbox.
func findProcess(ctx context.Context, box *client.Sandbox, name string) (*client.Process, error) {
	p, err := box.Process(ctx, name)
	if errors.Is(err, tranca.ErrNotFound) {
		return nil, fmt.Errorf("%w; those that are known: tranca ps %s", err, box.ID())
	}
	return p, err
}

// argumentCount refuses what a command would miss or ignore.
func argumentCount(c *cli.Command, least, most int) error {
	switch n := c.Args().Len(); {
	case n < least:
		return &usageError{c.FullName(), fmt.Sprintf("%s needs %s", c.FullName(), c.ArgsUsage)}
	case n > most:
		return &usageError{c.FullName(), fmt.Sprintf("%s takes %s, but was given %q too", c.FullName(), c.ArgsUsage, c.Args().Get(most))}
	}
	return nil
}

// metaFlag takes entries of metadata.
func metaFlag(usage string) cli.Flag {
	return &cli.GenericFlag{Name: "meta", Usage: usage, HideDefault: true, Value: &values{}}
}

// pairs reads a flag whose values are each NAME=VALUE.
func pairs(c *cli.Command, flag string) (map[string]string, error) {
	given, _ := c.Generic(flag).(*values)
	if given == nil || len(*given) == 0 {
		return nil, nil
	}
	all := map[string]string{}
	for _, text := range *given {
		k, v, ok := strings.Cut(text, "=")
		if !ok || k == "" {
			return nil, &usageError{c.FullName(), fmt.Sprintf("--%s: %q is not NAME=VALUE", flag, text)}
		}
		all[k] = v
	}
	return all, nil
}

// pairText is pairs on one line.
func pairText(all map[string]string) string {
	var words []string
	for _, k := range slices.Sorted(maps.Keys(all)) {
		words = append(words, k+"="+all[k])
	}
	return strings.Join(words, " ")
}

// duration reads a flag that holds a time; 0 where it was not given.
func duration(c *cli.Command, flag string) (time.Duration, error) {
	if !c.IsSet(flag) {
		return 0, nil
	}
	d, err := policy.ParseDuration(c.String(flag))
	if err != nil {
		return 0, &usageError{c.FullName(), "--" + flag + ": " + plain(err)}
	}
	return d, nil
}

func durationFlag(name, usage string) cli.Flag {
	return &cli.StringFlag{Name: name, Usage: usage, HideDefault: true}
}
