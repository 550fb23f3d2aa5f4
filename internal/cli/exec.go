package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v3"

	"tranca"
	"tranca/client"
	"tranca/internal/policy"
	"tranca/internal/terminal"
)

const execHelp = `Starts a program in a sandbox that lives, passes its output on as it comes, and
ends with its status. Its standard input is empty unless -i is given. What it
writes to a terminal is made harmless there, unless it has one of its own by -t;
what passes then, "tranca shell --help" says.

Ctrl-C interrupts the program, a second one kills it. If tranca is told to end,
or nobody reads its output any more, it ends the program first. With -d nothing
waits for the program: see ps, logs and kill.

Examples:
  tranca exec $id -- python3 -c 'print(6*7)'
  tranca exec -i $id -- wc -c < data.csv
  tranca exec -it $id -- python3
  proc=$(tranca exec -d --tag web $id -- python3 -m http.server) && tranca logs -f $id $proc

`

// stopAfterCommand is how many arguments stand before those of the program.
const stopAfterCommand = 2

func (a *app) execCommand() *cli.Command {
	stop := stopAfterCommand
	return &cli.Command{
		Name:        "exec",
		Usage:       "run a program in a sandbox that lives",
		ArgsUsage:   "ID -- COMMAND [ARGS]",
		Description: execHelp + statusHelp("own    the program's own status, when it ended by itself"),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "interactive", Aliases: []string{"i"}, Usage: "standard input goes to the program"},
			&cli.BoolFlag{Name: "tty", Aliases: []string{"t"}, Usage: "give it a terminal, of this one's size"},
			&cli.BoolFlag{Name: "detach", Aliases: []string{"d"}, Usage: "print the process's id and don't wait for it"},
			&cli.GenericFlag{Name: "env", Aliases: []string{"e"}, Usage: "set a variable, `NAME=VALUE`; may be repeated", HideDefault: true, Value: &values{}},
			&cli.StringFlag{Name: "workdir", Aliases: []string{"w"}, Usage: "start in this `FOLDER` inside", HideDefault: true},
			&cli.StringFlag{Name: "tag", Usage: "a `NAME` to find it by", HideDefault: true},
			durationFlag("timeout", "end it after this `TIME`"),
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "say nothing about how it ended"},
			unfilteredFlag(), serverFlag(),
		},
		UseShortOptionHandling: true,
		StopOnNthArg:           &stop,
		Action:                 a.exec,
	}
}

func (a *app) exec(ctx context.Context, c *cli.Command) error {
	if c.Args().Len() < stopAfterCommand {
		return &usageError{c.FullName(), "name the sandbox and the program: tranca exec ID -- COMMAND [ARGS]"}
	}
	if c.Bool("detach") && c.Bool("interactive") {
		return &usageError{c.FullName(), "-d waits for nothing, so there is no input to pass on: leave out -i"}
	}
	o, err := a.startOptions(c)
	if err != nil {
		return err
	}
	return a.atServer(ctx, c, func(ctx context.Context, s *client.Client) error {
		p, err := a.startNamed(ctx, s, tranca.ID(c.Args().First()), o)
		switch {
		case err != nil:
			return err
		case c.Bool("detach"):
			_, err := fmt.Fprintln(a.Stdout, terminal.Clean(string(p.ID())))
			return err
		case c.Bool("tty"):
			t := &attachment{a: a, p: p, unfiltered: c.Bool("unfiltered")}
			if c.Bool("interactive") {
				t.input = a.Stdin
			}
			err = t.run(ctx)
		default:
			err = a.execPiped(ctx, c, p)
		}
		return a.programEnd(p, err, o.Wall, c.Bool("quiet"))
	})
}

// startOptions reads the flags of exec.
func (a *app) startOptions(c *cli.Command) (o tranca.StartRequest, err error) {
	o.Args = c.Args().Slice()[1:]
	o.Dir, o.Tag = c.String("workdir"), c.String("tag")
	o.Stdin = c.Bool("interactive")
	if o.Wall, err = duration(c, "timeout"); err != nil {
		return o, err
	}
	if o.Env, err = pairs(c, "env"); err != nil {
		return o, err
	}
	if c.Bool("tty") {
		size := a.terminalSize()
		o.Terminal = &size
	}
	return o, nil
}

// startNamed finds a sandbox and starts a program in it. Until that runs, a
// signal is for this process.
func (a *app) startNamed(ctx context.Context, s *client.Client, id tranca.ID, o tranca.StartRequest) (*client.Process, error) {
	ctx, stop := interruptible(ctx, a.Quit)
	defer stop()
	box, err := findSandbox(ctx, s, id)
	if err != nil {
		return nil, err
	}
	return a.start(ctx, box, o)
}

// start starts a program. One with a terminal is told what kind it is, unless
// the policy or the caller says so.
func (a *app) start(ctx context.Context, box *client.Sandbox, o tranca.StartRequest) (*client.Process, error) {
	kind := a.Getenv("TERM")
	_, given := o.Env["TERM"]
	if o.Terminal == nil || given || !termName(kind) {
		return box.Start(ctx, o)
	}
	told := o
	told.Env = map[string]string{"TERM": kind}
	for k, v := range o.Env {
		told.Env[k] = v
	}
	p, err := box.Start(ctx, told)
	if errors.Is(err, tranca.ErrRefused) {
		return box.Start(ctx, o)
	}
	return p, err
}

// waitingOutput bounds what waits in this process for a slow reader. Beyond it
// the program waits.
const waitingOutput = 64 << 20

// outputs are this process's own, for what a program in a sandbox writes,
// however much that is.
type outputs struct {
	out, errs *stream
	still     []func() bool
}

// newOutputs begins to pass output on until end. What waits is given up when
// ctx ends. failed is told of the first error of each.
func (a *app) newOutputs(ctx context.Context, failed func(error)) *outputs {
	o := &outputs{out: newStream(shielded(a.Stdout), failed), errs: newStream(shielded(a.Stderr), failed)}
	for _, s := range []*stream{o.out, o.errs} {
		s.room = waitingOutput
		o.still = append(o.still, context.AfterFunc(ctx, func() { s.abandon(context.Cause(ctx)) }))
	}
	return o
}

// end waits until all was passed on, and returns the first error.
func (o *outputs) end(ctx context.Context) error {
	var first error
	for _, s := range []*stream{o.out, o.errs} {
		if lost := s.end(ctx, readerPatience(s.dst, time.Minute)); first == nil {
			first = lost
		}
	}
	for _, stop := range o.still {
		stop()
	}
	return first
}

// execPiped waits for a program that has no terminal.
func (a *app) execPiped(ctx context.Context, c *cli.Command, p *client.Process) error {
	ctx, w, stop := watchOver(ctx, p, a.Quit)
	defer stop()
	failed := func(err error) {
		if brokenPipe(err) {
			w.end(errReaderGone)
		} else {
			w.abandon(fmt.Errorf("the output can't be written: %w", err))
		}
	}
	o := a.newOutputs(ctx, failed)
	if c.Bool("interactive") {
		go feed(ctx, p, a.programInput())
	}
	err := a.follow(ctx, p.Follow(client.FollowOptions{}), o.out, o.errs)
	if lost := o.end(ctx); err == nil && lost != nil && !brokenPipe(lost) {
		err = fmt.Errorf("the output can't be written: %w", lost)
	}
	if why := w.reason(); why != nil {
		return why
	}
	return err
}

// feed gives a program what r gives, and the end of it. That a program ends
// without reading all is its own affair.
func feed(ctx context.Context, p *client.Process, r io.Reader) {
	in := p.Stdin(ctx)
	if r != nil {
		_, _ = io.Copy(in, r)
	}
	_ = in.Close()
}

// follow passes output on until the program has ended. It closes f.
func (a *app) follow(ctx context.Context, f *client.Follower, out, errs io.Writer) error {
	defer f.Close()
	for {
		chunk, err := f.Next(ctx)
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		w, name := out, "output"
		if chunk.Stderr {
			w, name = errs, "error output"
		}
		a.sayDropped(chunk.Dropped, name)
		// Who follows is told of a writer that failed, and ends the program.
		_, _ = w.Write(chunk.Data)
	}
}

// programEnd says how a program ended, and returns its status.
func (a *app) programEnd(p *client.Process, err error, wall time.Duration, quiet bool) error {
	end := p.Info().Exit
	if err != nil || end == nil {
		return err
	}
	if line := programEndLine(*end, wall); line != "" && !quiet {
		fmt.Fprintln(a.Stderr, "tranca: "+line)
	}
	return exit(exitStatus(*end))
}

func programEndLine(end tranca.Exit, wall time.Duration) string {
	switch end.Reason {
	case tranca.EndExited:
		return ""
	case tranca.EndWall:
		if wall > 0 {
			return "stopped: it ran for longer than " + policy.FormatDuration(wall)
		}
		return "stopped: the sandbox's time is over"
	case tranca.EndCPU:
		return "stopped: the sandbox used more CPU time than it may"
	case tranca.EndMemory:
		return "stopped: the sandbox needed more memory than it may"
	case tranca.EndOutput:
		return "stopped: it wrote more than it may"
	case tranca.EndSignaled:
		return "the program was ended by " + signalName(end.Signal)
	case tranca.EndClosed:
		return "stopped: its sandbox was removed, or its time was over"
	}
	return "the sandbox failed, and how the program ended is not known"
}
