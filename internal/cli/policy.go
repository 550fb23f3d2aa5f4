package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/urfave/cli/v3"

	"tranca"
	"tranca/internal/policy"
)

func (a *app) policyCommand() *cli.Command {
	return &cli.Command{
		Name:  "policy",
		Usage: "write, check and explain policy files",
		Description: "Policies are found by --policy, then in /etc/tranca, then in your configuration\n" +
			"folder, never in the working directory.",
		Commands: []*cli.Command{
			a.policyInit(), a.policyCheck(), a.policyExplain(), a.policySchema(),
		},
		Action: noCommand,
	}
}

func (a *app) policyInit() *cli.Command {
	return &cli.Command{
		Name:      "init",
		Usage:     "write a commented policy that says the same as the defaults",
		ArgsUsage: "[FILE]",
		Flags:     []cli.Flag{&cli.BoolFlag{Name: "force", Usage: "replace the file if it is there"}},
		Description: "Without FILE it writes to standard output.\n\nExamples:\n" +
			"  tranca policy init > policy.yaml\n" +
			"  tranca policy init ~/.config/tranca/policy.yaml\n\n" + statusHelp("0      written"),
		Action: func(_ context.Context, c *cli.Command) error {
			path, err := oneFile(c)
			if err != nil {
				return err
			}
			if path == "" {
				_, err := a.Stdout.Write(policy.Starter())
				return err
			}
			return writePolicy(path, policy.Starter(), c.Bool("force"))
		},
	}
}

// writePolicy makes the file for its owner to change and everybody to read;
// a policy that others can write would be refused.
func writePolicy(path string, text []byte, force bool) error {
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(path, flags, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %s; --force replaces it", tranca.ErrExists, path)
	}
	if err != nil {
		return fileError(err)
	}
	if _, err := f.Write(text); err != nil {
		f.Close()
		return fileError(err)
	}
	return f.Close()
}

func (a *app) policyCheck() *cli.Command {
	return &cli.Command{
		Name:      "check",
		Usage:     "say whether a policy file is right, or what is wrong and where",
		ArgsUsage: "[FILE]",
		Flags:     []cli.Flag{jsonFlag("print as JSON")},
		Description: "Without FILE it checks the policy that would be in force.\n\nExamples:\n" +
			"  tranca policy check policy.yaml\n" +
			"  tranca policy check --json policy.yaml\n\n" + statusHelp("0      the policy is right"),
		Action: func(_ context.Context, c *cli.Command) error {
			p, err := a.policyArgument(c)
			if c.Bool("json") {
				return errors.Join(a.printCheck(p, err), err)
			}
			if err == nil {
				fmt.Fprintf(a.Stdout, "ok: %s (%s)\n", p.Source, policy.Digest(p))
			}
			return err
		},
	}
}

// checkJSON is what policy check --json prints.
type checkJSON struct {
	OK     bool           `json:"ok"`
	Source string         `json:"source,omitempty"`
	Digest string         `json:"digest,omitempty"`
	Errors []checkProblem `json:"errors,omitempty"`
}

type checkProblem struct {
	File       string `json:"file,omitempty"`
	Line       int    `json:"line,omitempty"`
	Column     int    `json:"column,omitempty"`
	Path       string `json:"path,omitempty"`
	Message    string `json:"message"`
	Suggestion string `json:"suggestion,omitempty"`
}

func (a *app) printCheck(p tranca.Policy, err error) error {
	if err == nil {
		return a.printJSON(checkJSON{OK: true, Source: p.Source, Digest: policy.Digest(p)})
	}
	out := checkJSON{}
	var all policy.Errors
	if !errors.As(err, &all) {
		out.Errors = []checkProblem{{Message: err.Error()}}
	}
	for _, e := range all {
		out.Errors = append(out.Errors, checkProblem{e.File, e.Line, e.Column, e.Path, e.Message, e.Suggestion})
	}
	return a.printJSON(out)
}

func (a *app) policyExplain() *cli.Command {
	return &cli.Command{
		Name:      "explain",
		Usage:     "say in sentences what code may do, and how this host enforces it",
		ArgsUsage: "[FILE]",
		Description: "Without FILE it explains the policy that would be in force. It tries this host's\n" +
			"mechanisms, and changes nothing.\n\nExamples:\n" +
			"  tranca policy explain\n" +
			"  tranca policy explain policy.yaml\n\n" + statusHelp("0      explained"),
		Action: func(ctx context.Context, c *cli.Command) error {
			p, err := a.policyArgument(c)
			if err != nil {
				return err
			}
			ctx, stop := interruptible(ctx, a.Quit)
			defer stop()
			_, err = fmt.Fprint(shielded(a.Stdout), policy.Explain(p, chosen(p, a.Probe(ctx))))
			return err
		},
	}
}

// chosen returns the report of the backend that a policy would run on: the
// one it names, or the weakest that holds all it needs; where none does, the
// weakest at or above the floor, so that what is missing can be explained.
func chosen(p tranca.Policy, probed []Probed) tranca.Report {
	var first, best tranca.Report
	for _, b := range probed {
		r := b.Report
		named := p.Backend == r.Backend
		if b.Err != nil || r.Level < p.Floor || (p.Backend != "" && !named) {
			continue
		}
		if r.Level <= tranca.LevelSubprocess && !named {
			continue // it is never chosen
		}
		if first.Backend == "" || r.Level < first.Level {
			first = r
		}
		if len(policy.Check(p, r)) == 0 && (best.Backend == "" || r.Level < best.Level) {
			best = r
		}
	}
	if best.Backend == "" {
		return first
	}
	return best
}

func (a *app) policySchema() *cli.Command {
	return &cli.Command{
		Name:  "schema",
		Usage: "print the JSON schema of policy files, for editors",
		Description: "Example:\n" +
			"  tranca policy schema > tranca-policy.schema.json\n\n" + statusHelp("0      printed"),
		Action: func(_ context.Context, c *cli.Command) error {
			if err := noArguments(c); err != nil {
				return err
			}
			_, err := a.Stdout.Write(policy.Schema())
			return err
		},
	}
}

// policyArgument reads the policy that a command names or, where it names
// none, the one that would be in force.
func (a *app) policyArgument(c *cli.Command) (tranca.Policy, error) {
	path, err := oneFile(c)
	if err != nil {
		return tranca.Policy{}, err
	}
	p, found, err := a.FindPolicy(path)
	if err == nil && !found {
		p = policy.Default()
	}
	return p, err
}

// oneFile returns the only argument, or "" where there is none.
func oneFile(c *cli.Command) (string, error) {
	if c.Args().Len() > 1 {
		return "", &usageError{c.FullName(), fmt.Sprintf("%s takes one file, but was given %d arguments", c.FullName(), c.Args().Len())}
	}
	return c.Args().First(), nil
}
