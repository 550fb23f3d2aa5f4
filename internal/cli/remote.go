package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v3"

	"tranca"
	"tranca/client"
)

// runServerFlag is the server of run, which needs none.
func runServerFlag() cli.Flag {
	return &cli.StringFlag{
		Name: "server", HideDefault: true,
		Usage: "run it on the server at this `URL|SOCKET`, with the key in TRANCA_KEY; flags then only narrow",
	}
}

func keepFlag() cli.Flag {
	return &cli.BoolFlag{Name: "keep", Usage: "keep the sandbox and say its id; needs a server, yours where --server names none"}
}

// remote reports whether run is to go to a server.
func remote(c *cli.Command) bool { return c.IsSet("server") || c.Bool("keep") }

// settleRemote is settle where the operator is the server's: flags only narrow,
// by how much the server knows.
func settleRemote(c *cli.Command, sets ...[]valueFlag) (settled, error) {
	if c.IsSet("policy") {
		return settled{}, fmt.Errorf("%w: --policy names a file of this host, and what code may do on a server its operator has settled: leave it out, or choose one of his policies with --profile", tranca.ErrRefused)
	}
	o, err := overrides(c, sets...)
	if err != nil {
		return settled{}, err
	}
	p := tranca.Policy{Source: "a profile of the server"}
	if problems := widening(p, o); len(problems) > 0 {
		return settled{}, &tranca.RefusalError{Problems: problems}
	}
	n, err := o.Narrowing()
	return settled{policy: p, narrow: n, fromFile: true}, err
}

// settleRun finds out who the operator of a run is.
func (a *app) settleRun(c *cli.Command) (settled, error) {
	sets := [][]valueFlag{limitFlags(), placeFlags(), sightFlags()}
	if remote(c) {
		return settleRemote(c, sets...)
	}
	if c.IsSet("profile") {
		return settled{}, &usageError{c.FullName(), "--profile names a policy of a server's operator: it goes with --server; a policy of this host is named with --policy"}
	}
	return a.settle(c, sets...)
}

// runner returns what runs the request: a server elsewhere, or the one in this
// process. Close it.
func (a *app) runner(c *cli.Command, p tranca.Policy) (Engine, error) {
	if !remote(c) {
		return a.Open(p)
	}
	s, err := a.connect(c)
	if err != nil {
		return nil, err
	}
	if c.Bool("keep") {
		return keeper{connection{s}, a, c.Bool("quiet") || c.Bool("json")}, nil
	}
	return connection{s}, nil
}

// connection is a client in the place of an engine.
type connection struct{ *client.Client }

// Close frees the connection.
func (s connection) Close(context.Context) error { return s.Client.Close() }

// keeper runs in a sandbox that is made for the run and stays.
type keeper struct {
	connection
	a     *app
	quiet bool
}

// Run makes the sandbox, runs in it and says its id. One in which nothing ran
// is removed.
func (k keeper) Run(ctx context.Context, req tranca.Request) (*tranca.Result, error) {
	box, err := k.Create(ctx, tranca.CreateRequest{Profile: req.Profile, Narrow: req.Narrow})
	if err != nil {
		return nil, err
	}
	req.Profile, req.Narrow = "", tranca.Narrowing{}
	res, err := box.Run(ctx, req)
	if err != nil {
		return nil, errors.Join(err, box.Close(context.WithoutCancel(ctx)))
	}
	if !k.quiet {
		fmt.Fprintf(k.a.Stderr, "tranca: the sandbox stays: tranca exec %s -- ls; tranca rm %[1]s\n", box.ID())
	}
	return res, nil
}
