package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"github.com/urfave/cli/v3"

	"tranca"
	"tranca/internal/policy"
	"tranca/internal/terminal"
)

const runHelp = `Without a policy file you are the operator: what you write as a flag is the
policy, within fixed maxima. With --policy, or where a policy file is found in
/etc/tranca or in your configuration folder, flags only narrow. With --server
the server's operator has settled it, and flags only narrow too.

Standard input goes to the program, unless the code came by it. Put arguments
that begin with a dash after --.

Ctrl-C ends the sandbox; a second one doesn't wait for it.

Examples:
  tranca run -c 'print(6*7)'
  tranca run analyse.py -- --top 10 < data.csv
  tranca run --lang sh -c 'ls -la /'
  tranca run --mount ./project:/project:cow --apply fix.py
  tranca run --timeout 5s --memory 128MiB --mount ./data:/data script.py
  echo 'print(1)' | tranca run --json -
  tranca run --server https://sandboxes.example:7070 script.py

`

func (a *app) runCommand() *cli.Command {
	flags := []cli.Flag{
		&cli.StringFlag{Name: "code", Aliases: []string{"c"}, Usage: "run this `CODE`", HideDefault: true},
		&cli.StringFlag{Name: "lang", Usage: "the `LANGUAGE` of the code: python, sh, or another that this host has", Value: "python"},
		&cli.StringFlag{Name: "policy", Usage: "read the policy from `FILE`", HideDefault: true},
		jsonFlag("print the whole result as JSON, with what was enforced and by what"),
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "say nothing about how the run ended"},
		runServerFlag(), keepFlag(), applyFlag(),
		&cli.StringFlag{Name: "profile", Usage: "with --server: under its operator's policy of this `NAME`", HideDefault: true},
	}
	flags = append(flags, valueFlags("Where it runs", placeFlags())...)
	flags = append(flags, valueFlags("What it sees", sightFlags())...)
	flags = append(flags, valueFlags("Limits", limitFlags())...)
	return &cli.Command{
		Name:        "run",
		Usage:       "run code in a fresh sandbox",
		ArgsUsage:   "[FILE | -c CODE | -] [-- ARGS]",
		Description: runHelp + statusHelp("own    the program's own status, when it ended by itself"),
		Flags:       flags,
		Action:      a.run,
	}
}

func (a *app) run(ctx context.Context, c *cli.Command) error {
	err := a.runCode(ctx, c)
	var own *exitError
	if err != nil && c.Bool("json") && !errors.As(err, &own) {
		if jsonErr := a.printErrorJSON(err); jsonErr != nil {
			return jsonErr
		}
	}
	return err
}

func (a *app) runCode(ctx context.Context, c *cli.Command) error {
	ctx, stop := interruptible(ctx, a.Quit)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s, err := a.settleRun(c)
	if err != nil {
		return err
	}
	if err := checkApply(c, s); err != nil {
		return err
	}
	req, err := a.request(ctx, c)
	if err != nil {
		return err
	}
	req.Narrow, req.Profile = s.narrow, c.String("profile")
	engine, err := a.runner(c, s.policy)
	if err != nil {
		return err
	}
	defer a.closeEngine(engine)
	var res *tranca.Result
	if c.Bool("json") {
		res, err = engine.Run(ctx, req)
	} else {
		res, err = a.stream(ctx, cancel, engine, req, s.wall())
	}
	var caught *signalError
	stopped := errors.As(context.Cause(ctx), &caught)
	switch {
	case err != nil && stopped:
		return caught
	case err != nil:
		return err
	case stopped && caught == errReaderGone && res.Exit.Reason == tranca.EndClosed:
		return caught
	}
	notApplied := a.applyRun(ctx, c, res)
	if err := a.show(ctx, c, s, res); err != nil {
		return err
	}
	if notApplied != nil {
		return notApplied
	}
	if stopped && res.Exit.Reason == tranca.EndClosed {
		return exit(errorStatus(caught))
	}
	return exit(exitStatus(res.Exit))
}

// settled is the policy that a command works under.
type settled struct {
	policy tranca.Policy
	// narrow is what flags ask of a policy file.
	narrow tranca.Narrowing
	// fromFile says that flags only narrow.
	fromFile bool
}

// wall is the time that a program is given.
func (s settled) wall() time.Duration {
	return cmp.Or(s.narrow.Wall, s.policy.Limits.Wall)
}

// settle finds out who the operator is: the writer of a policy file, or the
// person at this command line.
func (a *app) settle(c *cli.Command, sets ...[]valueFlag) (settled, error) {
	o, err := overrides(c, sets...)
	if err != nil {
		return settled{}, err
	}
	p, found, err := a.FindPolicy(c.String("policy"))
	if err != nil {
		return settled{}, err
	}
	if found {
		return narrowed(p, o)
	}
	p, err = policy.Apply(policy.Default(), o)
	return settled{policy: p}, err
}

// narrowed takes flags as a request to the policy of a file.
func narrowed(p tranca.Policy, o policy.Overrides) (settled, error) {
	if problems := widening(p, o); len(problems) > 0 {
		return settled{}, &tranca.RefusalError{Problems: problems}
	}
	n, err := o.Narrowing()
	if err != nil {
		return settled{}, err
	}
	if _, problems := policy.Narrow(p, n); len(problems) > 0 {
		for i := range problems {
			locate(&problems[i], p.Source)
		}
		return settled{}, &tranca.RefusalError{Problems: problems}
	}
	return settled{policy: p, narrow: n, fromFile: true}, nil
}

// widening lists the flags that can only widen, or ask for something else.
func widening(p tranca.Policy, o policy.Overrides) []tranca.Problem {
	var problems []tranca.Problem
	add := func(item tranca.Item, asked, mend string) {
		problem := tranca.Problem{
			Item: item, Asked: asked, Mend: mend,
			Missing: "a policy that was written beforehand is in force, so flags only narrow",
		}
		locate(&problem, p.Source)
		problems = append(problems, problem)
	}
	for _, m := range o.Mounts {
		mode := "ro"
		switch {
		case m.Writable:
			mode = "rw"
		case m.Cow:
			mode = "cow"
		}
		add(tranca.ItemMounts, fmt.Sprintf("--mount %s:%s:%s", m.Source, m.Target, mode),
			fmt.Sprintf("mounts: [{source: %q, target: %q, mode: %s}]", m.Source, m.Target, mode))
	}
	for _, item := range o.Waive {
		add(item, "--waive "+string(item), fmt.Sprintf("waive: [%s]", item))
	}
	if o.Image != nil {
		add(tranca.ItemFiles, "--image "+*o.Image, "image: "+*o.Image)
	}
	if o.Runtime != nil {
		add(tranca.ItemIsolation, "--runtime "+*o.Runtime, "runtime: "+*o.Runtime)
	}
	return problems
}

// locate turns the line of a policy that would mend a problem into an
// instruction that names the file.
func locate(p *tranca.Problem, source string) {
	if p.Mend != "" {
		if source == policy.SourceDefault {
			source = "a policy file"
		}
		p.Mend = "the operator may write in " + source + ": " + p.Mend
	}
}

// errReaderGone is the cause of a run that was ended because nobody reads its
// output any more.
var errReaderGone = &signalError{syscall.SIGPIPE}

// stream runs the request and passes output on as it comes.
func (a *app) stream(ctx context.Context, cancel context.CancelCauseFunc, r tranca.Runner, req tranca.Request, wall time.Duration) (*tranca.Result, error) {
	failed := func(err error) {
		if brokenPipe(err) {
			err = errReaderGone
		}
		cancel(err)
	}
	out, errs := newStream(shielded(a.Stdout), failed), newStream(shielded(a.Stderr), failed)
	req.Stdout, req.Stderr = out, errs
	res, err := r.Run(ctx, req)
	for _, s := range []struct {
		*stream
		w io.Writer
	}{{out, a.Stdout}, {errs, a.Stderr}} {
		lost := s.end(ctx, readerPatience(s.w, wall))
		var unread *unreadError
		switch {
		case s.stream == errs && errors.As(lost, &unread):
			err = exit(statusFailed) // there is no one to tell
		case err != nil || lost == nil || brokenPipe(lost):
		default:
			err = fmt.Errorf("the output can't be written: %w", lost)
		}
	}
	return res, err
}

// show prints the result, or what the person should know of how the run ended.
func (a *app) show(ctx context.Context, c *cli.Command, s settled, res *tranca.Result) error {
	if c.Bool("json") {
		return a.printResult(ctx, res, s.wall())
	}
	if c.Bool("quiet") {
		return nil
	}
	lines := endLines(s, res)
	if line := changesLine(c, res); line != "" {
		lines = append(lines, line)
	}
	for _, line := range lines {
		fmt.Fprintln(a.Stderr, "tranca: "+terminal.Clean(line))
	}
	return nil
}

// closeEngine frees the engine. It must not depend on the run's context, which
// may have ended.
func (a *app) closeEngine(e Engine) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := e.Close(ctx); err != nil {
		explainError(a.Stderr, fmt.Errorf("clean up: %w", err))
	}
}
