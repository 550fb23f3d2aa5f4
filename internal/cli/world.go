package cli

import (
	"context"
	"errors"
	"io"

	"github.com/urfave/cli/v3"

	"tranca"
	"tranca/hostile/report"
	"tranca/internal/advise"
	"tranca/internal/bench"
)

// World is everything that the command line uses from outside itself. The
// composition root fills it; tests fill it with what they like.
type World struct {
	// Stdin, Stdout and Stderr are this process's streams. Where one is an
	// [os.File] it may turn out to be a terminal.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Getenv is [os.Getenv].
	Getenv func(string) string
	// Quit ends the process at once, without clean-up.
	Quit func(status int)

	// FindPolicy reads the policy file at path or, where path is empty, the
	// first that there is in the places for policies. found is false where
	// path is empty and there is none.
	FindPolicy func(path string) (p tranca.Policy, found bool, err error)
	// Open returns an engine for a policy. It starts nothing yet.
	Open func(tranca.Policy) (Engine, error)
	// Probe tries every backend.
	Probe func(context.Context) []Probed
	// Inspect does what Probe does, and looks at the host itself. nil: there is
	// nothing to look at but what Probe says.
	Inspect func(ctx context.Context, setup InspectSetup) (Inspection, error)
	// Evidence reads what earlier runs of bench and hostile have kept; nil: there
	// is nothing.
	Evidence func() advise.Evidence
	// Bench measures what this host can run. Where ctx ends first, the result is
	// a partial one and there is an error too.
	Bench func(context.Context, BenchSetup) (*bench.Result, error)
	// MCP serves the Model Context Protocol over in and out until in ends or
	// ctx does. Nothing but the protocol is written to out.
	MCP func(ctx context.Context, setup MCPSetup) error
	// Serve serves the HTTP API until ctx ends, and returns when nothing is
	// left.
	Serve func(ctx context.Context, setup ServeSetup) error
	// Images returns the store of images; nil where there is none.
	Images func() Images
	// Changes opens where changes to mounts of mode cow are kept; nil where there
	// are none.
	Changes func() (Changes, error)
	// Hostile runs the hostile suite. Where ctx ends first it returns, besides or
	// instead of an error, what was found until then, as a partial report.
	Hostile func(ctx context.Context, setup HostileSetup) (*report.Report, error)
	// HostileProbes reads the probes of a folder; those of this build where dir
	// is empty.
	HostileProbes func(dir string) ([]report.Probe, error)
	// HostilePlace is the inside of the suite's disposable place, and
	// HostileSupervisor what it kills while a program runs: both are processes
	// that the suite starts. They read what to do.
	HostilePlace      func(ctx context.Context, in io.Reader, out io.Writer) error
	HostileSupervisor func(ctx context.Context, in io.Reader, out io.Writer) error
	// Guest returns the digest of the guest agent inside this binary, or "".
	Guest func() string
	// Notice is what everybody has to be told of this build; empty for one that
	// anybody may use.
	Notice string
	// Elsewhere says why this host can run nothing itself, and what works
	// instead; nil where it can.
	Elsewhere error
}

// Engine runs code under the policy that it was opened with.
type Engine interface {
	tranca.Runner
	Close(context.Context) error
}

// Probed is what one backend said about this host.
type Probed struct {
	Backend string
	Report  tranca.Report
	// Err says why the backend can't run here at all.
	Err error
}

// MCPSetup is what a server of the Model Context Protocol is made from.
type MCPSetup struct {
	Policy tranca.Policy
	Narrow tranca.Narrowing
	In     io.Reader
	Out    io.Writer
	Log    io.Writer
	// Report shows an error in full to the operator.
	Report  func(error)
	Version string
}

// Main runs the command line args, program name included, and returns the
// exit status of the process.
func Main(ctx context.Context, w World, args []string) int {
	a := &app{World: w}
	err := a.root(args).Run(ctx, args)
	if err != nil && !silent(err) {
		explainError(w.Stderr, err)
	}
	return errorStatus(err)
}

// silent reports whether an error needs no word: all was said already, or
// nobody is there to read it.
func silent(err error) bool {
	var own *exitError
	return errors.As(err, &own) || errors.Is(err, errReaderGone) || brokenPipe(err)
}

// app holds what all commands share.
type app struct{ World }

// root is the command tree.
func (a *app) root(args []string) *cli.Command {
	root := &cli.Command{
		Name:     "tranca",
		Usage:    "run untrusted code behind a boundary that you chose",
		Commands: a.commands(args),
		Action:   noCommand,
	}
	a.prepare(root, "tranca")
	return root
}

// commands are those that there are. Where run is asked for it is made alone:
// the others would cost its start a part of what the sandbox does.
func (a *app) commands(args []string) []*cli.Command {
	if len(args) > 1 && args[1] == "run" {
		return []*cli.Command{a.runCommand()}
	}
	if len(args) > 1 && (args[1] == HostilePlace || args[1] == HostileSupervisor) {
		return a.insideCommands()
	}
	return []*cli.Command{
		a.runCommand(), a.policyCommand(), a.adviseCommand(), a.doctorCommand(), a.hostileCommand(), a.benchCommand(),
		a.imageCommand(), a.setupCommand(), a.serveCommand(), a.mcpCommand(), a.versionCommand(),
		a.createCommand(), a.listCommand(), a.keepCommand(), a.rmCommand(),
		a.execCommand(), a.shellCommand(), a.psCommand(), a.logsCommand(), a.killCommand(),
		a.portCommand(), a.cpCommand(), a.diffCommand(), a.applyCommand(), a.completionCommand(), a.completeCommand(),
	}
}
