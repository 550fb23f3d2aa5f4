package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/urfave/cli/v3"

	"tranca"
	"tranca/client"
	"tranca/internal/terminal"
)

const shellHelp = `Opens a shell with a terminal in a sandbox: bash where it is there, else sh.
Without an ID the sandbox is made for it and removed at its end; --keep leaves it
and prints its id.

All keys go to the shell, Ctrl-C too, and so do changes of the size; TERM is
handed on. This terminal is left as it was found, however the shell ends. At the
beginning of a line a tilde means tranca:
  ~.  leave; the shell goes on, for --attach or until its sandbox ends
  ~?  what the tilde can do
  ~~  a tilde

What runs inside can draw on this terminal, and nothing else: titles, the
clipboard, links, pictures and files sent through the terminal are dropped, and
so are questions to it, but for those that editors ask (what it is, where the
cursor is), and modes that could not be taken back. --unfiltered passes all on,
as ssh does: then what runs inside can type into this terminal by its answers.

Examples:
  tranca shell
  tranca shell --profile strict --memory 1GiB --keep
  tranca shell i0k3v7q2m9x4c8b1z5n6a
  tranca shell i0k3v7q2m9x4c8b1z5n6a --attach p3

`

func (a *app) shellCommand() *cli.Command {
	flags := []cli.Flag{
		&cli.StringFlag{Name: "attach", Usage: "no new shell: go on with the `PROCESS`, which has a terminal", HideDefault: true},
		&cli.BoolFlag{Name: "keep", Usage: "don't remove the sandbox that was made for the shell"},
		unfilteredFlag(), serverFlag(),
	}
	flags = append(flags, sandboxFlags()...)
	return &cli.Command{
		Name:        "shell",
		Usage:       "open a shell in a sandbox",
		ArgsUsage:   "[ID]",
		Description: shellHelp + statusHelp("own    the shell's own status", "0      it was left with ~."),
		Flags:       append(flags, narrowFlags()...),
		Action:      a.shell,
	}
}

func (a *app) shell(ctx context.Context, c *cli.Command) error {
	if err := argumentCount(c, 0, 1); err != nil {
		return err
	}
	id := tranca.ID(c.Args().First())
	if err := checkShell(c, id != ""); err != nil {
		return err
	}
	o, err := createOptions(c)
	if err != nil {
		return err
	}
	return a.atServer(ctx, c, func(ctx context.Context, s *client.Client) error {
		if id != "" {
			box, err := findSandbox(ctx, s, id)
			if err != nil {
				return err
			}
			p, from, err := a.openShell(ctx, c, box)
			if err != nil {
				return err
			}
			return a.useShell(ctx, c, p, from, id)
		}
		return a.freshShell(ctx, c, s, o)
	})
}

// checkShell refuses flags that would be ignored.
func checkShell(c *cli.Command, there bool) error {
	if !there {
		if c.IsSet("attach") {
			return &usageError{c.FullName(), "--attach needs the ID of the sandbox"}
		}
		return nil
	}
	own := append([]cli.Flag{&cli.BoolFlag{Name: "keep"}}, sandboxFlags()...)
	for _, f := range append(own, narrowFlags()...) {
		if c.IsSet(f.Names()[0]) {
			return &usageError{c.FullName(), fmt.Sprintf("--%s is for a new sandbox, and one was named", f.Names()[0])}
		}
	}
	return nil
}

// freshShell opens a shell in a sandbox of its own.
func (a *app) freshShell(ctx context.Context, c *cli.Command, s *client.Client, o tranca.CreateRequest) (err error) {
	starting, stopped := interruptible(ctx, a.Quit)
	stop := sync.OnceFunc(stopped)
	defer stop()
	waiting := a.progress("waiting for a sandbox", 0)
	box, err := s.Create(starting, o)
	waiting.stop()
	if err != nil {
		return err
	}
	defer func() {
		if c.Bool("keep") {
			fmt.Fprintf(a.Stderr, "tranca: the sandbox is kept: %s\n", terminal.Clean(string(box.ID())))
			return
		}
		// In a time of its own: a signal ends the shell, and not the removal.
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), removePatience)
		defer cancel()
		if closed := box.Close(ending); closed != nil && err == nil {
			err = fmt.Errorf("remove the sandbox %s: %w", box.ID(), closed)
		}
	}()
	p, from, err := a.openShell(starting, c, box)
	if err != nil {
		return err
	}
	stop()
	keeping, cancel := context.WithCancel(ctx)
	defer cancel()
	if !c.IsSet("ttl") {
		go keepAlive(keeping, box)
	}
	return a.useShell(ctx, c, p, from, box.ID())
}

const removePatience = 30 * time.Second

// keepAlive lets a sandbox live until ctx ends. If this process dies the
// sandbox does so after the time that the server gives.
func keepAlive(ctx context.Context, box *client.Sandbox) {
	for {
		wait := max(time.Until(box.Info().Expires)/2, time.Second)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		if _, err := box.KeepAlive(ctx, 0); err != nil && !errors.Is(err, tranca.ErrUnavailable) {
			return
		}
	}
}

// openShell starts a shell, or finds the program to go on with, and says where
// in its output to begin.
func (a *app) openShell(ctx context.Context, c *cli.Command, box *client.Sandbox) (*client.Process, int64, error) {
	if c.IsSet("attach") {
		return find(ctx, box, c.String("attach"))
	}
	size := a.terminalSize()
	var p *client.Process
	var err error
	for _, shell := range []string{"bash", "sh"} {
		p, err = a.start(ctx, box, tranca.StartRequest{Args: []string{shell}, Terminal: &size, Stdin: true})
		if !errors.Is(err, tranca.ErrNotFound) {
			break
		}
	}
	return p, 0, err
}

// find finds a program with a terminal. Its screen is what it draws from now
// on.
func find(ctx context.Context, box *client.Sandbox, process string) (*client.Process, int64, error) {
	p, err := findProcess(ctx, box, process)
	if err != nil {
		return nil, 0, err
	}
	info := p.Info()
	switch {
	case info.Exit != nil:
		return nil, 0, fmt.Errorf("%w: process %s has ended", tranca.ErrGone, info.ID)
	case info.Terminal == nil:
		return nil, 0, fmt.Errorf("%w: process %s has no terminal; its output: tranca logs -f %s %s", tranca.ErrInvalid, info.ID, box.ID(), info.ID)
	}
	return p, info.Stdout.Written, nil
}

func (a *app) useShell(ctx context.Context, c *cli.Command, p *client.Process, from int64, id tranca.ID) error {
	t := &attachment{a: a, p: p, input: a.Stdin, from: from, escapes: true, unfiltered: c.Bool("unfiltered")}
	err := t.run(ctx)
	if errors.Is(err, errDetached) {
		if c.Args().Present() || c.Bool("keep") {
			fmt.Fprintf(a.Stderr, "tranca: left; go on: tranca shell %s --attach %s\n", terminal.Clean(string(id)), terminal.Clean(string(p.ID())))
		}
		return nil
	}
	return a.programEnd(p, err, 0, false)
}
