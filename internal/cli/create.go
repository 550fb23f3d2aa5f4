package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"tranca"
	"tranca/client"
	"tranca/internal/terminal"
)

const createHelp = `Makes a sandbox that lives on the server until its time is over, nothing was
asked of it for its idle time, or it is removed. Prints its id and nothing else,
for scripts; on a terminal also what to do with it.

The server's operator gives profiles; flags only narrow what the profile gives.

Examples:
  tranca create
  tranca create --ttl 1h --idle 10m --meta task=17
  id=$(tranca create --profile strict --memory 128MiB) && tranca exec $id -- python3 -V

`

func (a *app) createCommand() *cli.Command {
	flags := append(sandboxFlags(), serverFlag(), jsonFlag("print all that is known of it as JSON"))
	return &cli.Command{
		Name:        "create",
		Usage:       "make a sandbox that outlives the command",
		Description: createHelp + statusHelp("0      it was made"),
		Flags:       append(flags, narrowFlags()...),
		Action:      a.create,
	}
}

// sandboxFlags are those of commands that make a sandbox.
func sandboxFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "profile", Usage: "the operator's policy of this `NAME`", HideDefault: true},
		durationFlag("ttl", "let it live for this `TIME` unless it is kept alive"),
		durationFlag("idle", "end it when nothing was asked of it for this `TIME`"),
		metaFlag("remember `NAME=VALUE` with it; may be repeated"),
	}
}

// narrowSets are the flags of run that can narrow.
func narrowSets() [][]valueFlag {
	sight := slices.DeleteFunc(sightFlags(), func(f valueFlag) bool { return f.name == "mount" || f.name == "waive" })
	sets := [][]valueFlag{placeFlags(), sight, limitFlags()}
	for _, set := range sets {
		for i := range set {
			// The defaults of run are not those of the server's profile.
			set[i].usage, _, _ = strings.Cut(set[i].usage, " (")
		}
	}
	return sets
}

func narrowFlags() []cli.Flag {
	var flags []cli.Flag
	sets := narrowSets()
	for i, category := range []string{"Where it runs", "What it sees", "Limits"} {
		flags = append(flags, valueFlags(category, sets[i])...)
	}
	return flags
}

func (a *app) create(ctx context.Context, c *cli.Command) error {
	if err := noArguments(c); err != nil {
		return err
	}
	o, err := createOptions(c)
	if err != nil {
		return err
	}
	return a.withServer(ctx, c, func(ctx context.Context, s *client.Client) error {
		p := a.progress("waiting for a sandbox", 0)
		box, err := s.Create(ctx, o)
		p.stop()
		if err != nil {
			return err
		}
		if c.Bool("json") {
			return a.printJSON(box.Info())
		}
		if _, err := fmt.Fprintln(a.Stdout, box.ID()); err != nil {
			return err
		}
		if terminal.Is(a.Stdout) {
			a.sayCreated(box.Info())
		}
		return nil
	})
}

// createOptions reads the flags of [sandboxFlags] and [narrowFlags].
func createOptions(c *cli.Command) (o tranca.CreateRequest, err error) {
	o.Profile = c.String("profile")
	if o.TTL, err = duration(c, "ttl"); err != nil {
		return o, err
	}
	if o.IdleTimeout, err = duration(c, "idle"); err != nil {
		return o, err
	}
	if o.Metadata, err = pairs(c, "meta"); err != nil {
		return o, err
	}
	over, err := overrides(c, narrowSets()...)
	if err != nil {
		return o, err
	}
	o.Narrow, err = over.Narrowing()
	return o, err
}

func (a *app) sayCreated(info tranca.SandboxInfo) {
	lines := []string{fmt.Sprintf("it lives for %s; longer: tranca keep %s", span(time.Until(info.Expires)+time.Second), info.ID)}
	for _, next := range []string{"tranca shell %s", "tranca exec %s -- COMMAND", "tranca cp FILE %s:", "tranca rm %s"} {
		lines = append(lines, "  "+fmt.Sprintf(next, info.ID))
	}
	for _, line := range lines {
		fmt.Fprintln(a.Stderr, terminal.Clean(line))
	}
}
