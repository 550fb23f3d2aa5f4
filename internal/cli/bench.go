package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"tranca"
	"tranca/internal/bench"
	"tranca/internal/bench/measure"
	"tranca/internal/bench/report"
	"tranca/internal/terminal"
)

const benchHelp = `Measures every backend that this host can run, beside the bare interpreter and
others' sandboxes that are installed: bubblewrap, firejail, runsc do, docker run.
All of them are measured in one run, by turns in random order, and only ratios
within one run count. docs/BENCH.md says what each measure is. The programs are
built in; nothing of yours is run.

A full run takes several minutes, --quick less than one, on a host that does
nothing else. The bare interpreter is measured first and last: where the two
differ too much, the result says that it can't be trusted.

Containers need an engine with an image that has python3: --image NAME, or
TRANCA_CONTAINER_IMAGE, which docker run needs too.

The last whole result of each user is kept in tranca/bench.json of the folder for
state (XDG_STATE_HOME, or ~/.local/state).

Ctrl-C ends it; what was measured until then is shown and marked as partial.

Examples:
  tranca bench --quick
  tranca bench --json > before.json
  tranca bench --compare before.json --html bench.html
  tranca bench --only process,bubblewrap --rounds 500
  tranca bench --show before.json --svg plots
  tranca bench --quick --waive limits.cpu_time --waive limits.cpus

`

// The exit status of a result that doesn't stand, or is worse than before.
const benchBad = 1

// BenchSetup is what to measure.
type BenchSetup struct {
	// Only names subjects; empty is all.
	Only []string
	// Quick makes it short.
	Quick bool
	// Rounds is how often fast subjects are started at most.
	Rounds int
	// Seed makes the order of the rounds, and the bootstrap.
	Seed uint64
	// Waive lists items that need not be enforced.
	Waive []tranca.Item
	// Image is what containers run; empty leaves it to the backend.
	Image string
	// Progress is told of each step.
	Progress func(measure.Step)
}

func (a *app) benchCommand() *cli.Command {
	return &cli.Command{
		Name:  "bench",
		Usage: "measure what each backend costs on this host",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "quick", Usage: "end within a minute: fewer rounds, wider intervals"},
			listFlag("only", "measure these backends and baselines alone, `NAMES` with commas between; may be repeated"),
			&cli.IntFlag{Name: "rounds", Usage: fmt.Sprintf("start each at most this `NUMBER` of times (%d, with --quick %d)", measure.DefaultRounds, measure.QuickRounds), HideDefault: true},
			&cli.Uint64Flag{Name: "seed", Usage: "the `NUMBER` from which the random order is made", Value: 1},
			listFlag("waive", "do without enforcing this `ITEM`, and say so; may be repeated"),
			&cli.StringFlag{Name: "image", Usage: "the image of this `NAME` or digest for containers", HideDefault: true},
			jsonFlag("print all figures as JSON"),
			&cli.StringFlag{Name: "html", Usage: "write a page with tables and plots to `FILE`", HideDefault: true},
			&cli.StringFlag{Name: "svg", Usage: "write the plots to this `FOLDER`", HideDefault: true},
			&cli.StringFlag{Name: "show", Usage: "measure nothing, and show the result in `FILE`, made by --json", HideDefault: true},
			&cli.StringFlag{Name: "compare", Usage: "say what has changed since the result in `FILE`, made by --json", HideDefault: true},
		},
		Description: benchHelp + "Exit status:\n" +
			"  0      measured, and nothing is worse than in the file of --compare\n" +
			"  1      it can't be trusted, something failed or was left, a file could not be\n" +
			"         written, or something is worse than in the file of --compare\n" +
			"  125    tranca itself failed, or the request is malformed\n" +
			"  126    nothing of what was asked for can run on this host\n" +
			"  128+n  signal n ended it: 130 is Ctrl-C",
		Action: a.bench,
	}
}

func (a *app) bench(ctx context.Context, c *cli.Command) error {
	ctx, stop := interruptible(ctx, a.Quit)
	defer stop()
	setup, err := benchSetup(c)
	if err != nil {
		return err
	}
	before, err := earlier("compare", c.String("compare"), bench.Read)
	if err != nil {
		return err
	}
	res, err := earlier("show", c.String("show"), bench.Read)
	if err != nil {
		return err
	}
	var caught *signalError
	stopped := false
	if res == nil {
		p := a.benchProgress()
		setup.Progress = p.step
		res, err = a.Bench(ctx, setup)
		p.stop()
		stopped = errors.As(err, &caught)
		if res == nil || err != nil && !stopped {
			return err
		}
		a.keepBench(res)
	}
	bad := a.showBench(c, res, before)
	switch {
	case stopped:
		fmt.Fprintln(a.Stderr, "tranca: stopped before its end: the result is a partial one")
		return exit(errorStatus(caught))
	case ranNothing(res):
		return exit(statusRefused)
	case bad || len(res.Sound()) > 0:
		return exit(benchBad)
	}
	return nil
}

// ranNothing reports whether bare is all that ran.
func ranNothing(r *bench.Result) bool {
	return !slices.ContainsFunc(r.Subjects, func(s bench.Subject) bool {
		return s.Unavailable == "" && (s.Kind != bench.KindBare || slices.Contains(r.Only, s.Name))
	})
}

func benchSetup(c *cli.Command) (BenchSetup, error) {
	if err := noArguments(c); err != nil {
		return BenchSetup{}, err
	}
	s := BenchSetup{Quick: c.Bool("quick"), Rounds: c.Int("rounds"), Seed: c.Uint64("seed"), Image: c.String("image")}
	const most = 100_000
	if c.IsSet("rounds") && (s.Rounds < 2 || s.Rounds > most) {
		return s, &usageError{c.FullName(), fmt.Sprintf("--rounds %d: want 2 to %d", s.Rounds, most)}
	}
	if !c.IsSet("rounds") {
		s.Rounds = measure.DefaultRounds
		if s.Quick {
			s.Rounds = measure.QuickRounds
		}
	}
	for _, list := range listed(c, "only") {
		for name := range strings.SplitSeq(list, ",") {
			if name = strings.TrimSpace(name); name != "" && !slices.Contains(s.Only, name) {
				s.Only = append(s.Only, name)
			}
		}
	}
	var err error
	s.Waive, err = waived(c)
	return s, err
}

// showBench prints the result and writes what was asked for. It reports whether
// something is bad beside the result itself.
func (a *app) showBench(c *cli.Command, res, before *bench.Result) (bad bool) {
	failed := func(err error) { bad = a.told(err) || bad }
	if c.Bool("json") {
		failed(res.Write(shielded(a.Stdout)))
	} else {
		failed(report.Table(a.Stdout, res))
	}
	if path := c.String("html"); path != "" {
		failed(written("--html", writeText(path, report.HTML(res))))
	}
	if dir := c.String("svg"); dir != "" {
		failed(written("--svg", writePlots(dir, res)))
	}
	if before != nil {
		changes := bench.Compare(before, res)
		out := a.Stdout
		if c.Bool("json") {
			out = a.Stderr
		}
		failed(report.Changes(out, before, res, changes))
		bad = bad || slices.ContainsFunc(changes, func(ch bench.Change) bool { return ch.Verdict == bench.Worse })
	}
	return bad
}

// told explains an error, and reports whether there was one.
func (a *app) told(err error) bool {
	if err != nil {
		explainError(a.Stderr, err)
	}
	return err != nil
}

// writePlots writes each plot into a file of the folder, which is made where it
// is missing.
func writePlots(dir string, res *bench.Result) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, p := range report.Plots(res) {
		if err := writeText(filepath.Join(dir, p.Name+".svg"), p.SVG); err != nil {
			return err
		}
	}
	return nil
}

func writeText(path, text string) error {
	return writeWhole(path, 0o644, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

func written(flag string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return nil
}

// benchSteps shows on standard error how far a run is: on a terminal in one line
// that is taken away at the end, else in a line for each phase.
type benchSteps struct {
	a    *app
	live bool
	said int
}

func (a *app) benchProgress() *benchSteps { return &benchSteps{a: a, live: terminal.Is(a.Stderr)} }

func (p *benchSteps) step(s measure.Step) {
	if p.live {
		text := fmt.Sprintf("%d/%d %s  %s", s.Number, s.Of, s.Phase, s.Subject)
		if s.Samples > 0 {
			text += fmt.Sprintf("  %d samples", s.Samples)
		}
		fmt.Fprint(p.a.Stderr, "\r"+terminal.Clean(text)+"\x1b[K")
		return
	}
	if p.said != s.Number {
		p.said = s.Number
		fmt.Fprintf(p.a.Stderr, "tranca: bench %d/%d %s\n", s.Number, s.Of, s.Phase)
	}
}

func (p *benchSteps) stop() {
	if p.live {
		fmt.Fprint(p.a.Stderr, "\r\x1b[K")
	}
}
