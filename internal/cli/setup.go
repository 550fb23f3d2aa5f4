package cli

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"github.com/urfave/cli/v3"

	"tranca"
	"tranca/internal/hostsetup"
)

const setupHelp = `Makes the changes to this host that need root once, so that tranca then runs
without it: an AppArmor profile where user namespaces are restricted,
subordinate ids, and control groups that the user may use. Each may be made
again at any time, and undone.

As root it makes the changes and shows each. With --print, or as another user,
it only prints them, as a shell script to read and run. It never calls sudo.

Examples:
  tranca setup --print
  tranca setup --print > setup.sh && less setup.sh && su -c 'sh setup.sh'
  tranca setup --user alice
  tranca setup --undo --user alice

`

func (a *app) setupCommand() *cli.Command {
	return &cli.Command{
		Name:  "setup",
		Usage: "make this host ready for tranca without root, or print how",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "print", Usage: "print the commands, change nothing"},
			&cli.BoolFlag{Name: "undo", Usage: "take the changes back"},
			&cli.StringFlag{Name: "user", Usage: "who will run tranca, by `NAME`; left out, you, also behind sudo", HideDefault: true},
		},
		Description: setupHelp + "Exit status:\n" +
			"  0      done, or printed\n" +
			"  125    a step failed or could not be made\n" +
			"  126    it has to be run by root",
		Action: a.setup,
	}
}

func (a *app) setup(_ context.Context, c *cli.Command) error {
	if err := noArguments(c); err != nil {
		return err
	}
	if a.Elsewhere != nil {
		return a.Elsewhere
	}
	host, err := a.setupHost(c.String("user"))
	if err != nil {
		return err
	}
	steps, err := hostsetup.Plan(host)
	if err != nil {
		return err
	}
	undo := c.Bool("undo")
	switch {
	case len(steps) == 0:
		fmt.Fprintln(a.Stderr, "tranca: root needs no set-up; name another user with --user")
		return nil
	case c.Bool("print"):
		return hostsetup.Print(a.Stdout, steps, undo)
	case os.Geteuid() != 0:
		if err := hostsetup.Print(a.Stdout, steps, undo); err != nil {
			return err
		}
		return fmt.Errorf("%w: nothing was changed: the commands above need root, and tranca never asks for it itself", tranca.ErrRefused)
	}
	return hostsetup.Apply(a.Stdout, steps, undo)
}

// setupHost finds out for whom this host is to be set up, and where tranca is
// installed. Behind sudo it is for the person who called it: root needs none.
func (a *app) setupHost(name string) (hostsetup.Host, error) {
	if name == "" && os.Geteuid() == 0 {
		name = a.Getenv("SUDO_USER")
	}
	find := func() (*user.User, error) { return user.Lookup(name) }
	if name == "" {
		find = user.Current
	}
	u, err := find()
	if err != nil {
		return hostsetup.Host{}, fmt.Errorf("%w: %w", tranca.ErrNotFound, err)
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return hostsetup.Host{}, fmt.Errorf("%w: user id %q", tranca.ErrInvalid, u.Uid)
	}
	program, err := os.Executable()
	if err != nil {
		return hostsetup.Host{}, err
	}
	if program, err = filepath.EvalSymlinks(program); err != nil { //nolint:forbidigo // it is printed, not opened
		return hostsetup.Host{}, err
	}
	return hostsetup.Host{Root: "/", Program: program, User: u.Username, UID: uid}, nil
}
