package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"tranca"
	"tranca/client"
)

func (a *app) killCommand() *cli.Command {
	return &cli.Command{
		Name:      "kill",
		Usage:     "send a signal to a program in a sandbox",
		ArgsUsage: "ID PROCESS",
		Description: "Programs are named by their id, by the pid of one that runs, or by tag=NAME.\n\nExamples:\n" +
			"  tranca kill $id p3\n" +
			"  tranca kill -s KILL --group $id tag=web\n\n" +
			statusHelp("0      it was sent"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "signal", Aliases: []string{"s"}, Usage: "the `SIGNAL`, by name or number", Value: "TERM"},
			&cli.BoolFlag{Name: "group", Aliases: []string{"g"}, Usage: "send it to what the program started too, as Ctrl-C in a terminal does"},
			serverFlag(),
		},
		Action: a.kill,
	}
}

func (a *app) kill(ctx context.Context, c *cli.Command) error {
	sig, err := parseSignal(c.String("signal"))
	if err != nil {
		return &usageError{c.FullName(), "--signal: " + plain(err)}
	}
	return a.withProcess(ctx, c, func(ctx context.Context, p *client.Process) error {
		return p.Signal(ctx, sig, c.Bool("group"))
	})
}

// furtherSignals are Linux's that end no program by default, or seldom, with
// their numbers inside.
var furtherSignals = map[tranca.Signal]string{
	16: "SIGSTKFLT", 17: "SIGCHLD", 18: "SIGCONT", 19: "SIGSTOP", 20: "SIGTSTP", 21: "SIGTTIN", 22: "SIGTTOU",
	23: "SIGURG", 26: "SIGVTALRM", 27: "SIGPROF", 28: "SIGWINCH", 29: "SIGIO", 30: "SIGPWR",
}

// lastSignal is Linux's SIGRTMAX.
const lastSignal = 64

// parseSignal reads "TERM", "sigterm" or "15".
func parseSignal(text string) (tranca.Signal, error) {
	if n, err := strconv.Atoi(text); err == nil {
		if n < 1 || n > lastSignal {
			return 0, fmt.Errorf("%w: %d is not 1 to %d", tranca.ErrInvalid, n, lastSignal)
		}
		return tranca.Signal(n), nil
	}
	want := "SIG" + strings.TrimPrefix(strings.ToUpper(text), "SIG")
	for _, names := range []map[tranca.Signal]string{signalNames, furtherSignals} {
		for n, name := range names {
			if name == want {
				return n, nil
			}
		}
	}
	return 0, fmt.Errorf("%w: there is no signal %q: want a name such as TERM, or 1 to %d", tranca.ErrInvalid, text, lastSignal)
}
