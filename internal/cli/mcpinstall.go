package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/urfave/cli/v3"

	"tranca"
	"tranca/internal/agentconfig"
)

const installHelp = `Writes "tranca mcp" into the configuration of the program that your agent runs
in, or prints what to write there. Whatever else is in the file stays as it is;
a copy of it is kept beside it, and a file that can't be edited with certainty
is left alone. Doing it again changes nothing.

CLIENT is one of: claude-code, cursor, vscode, codex.

The scope project writes into the folder that you are in. Whoever can write
there, your agent among them, can change what is started; so put the policy
where they can't.

Examples:
  tranca mcp install claude-code
  tranca mcp install cursor --policy ~/agent-policy.yaml
  tranca mcp install vscode --scope project
  tranca mcp install codex --print

`

func (a *app) installCommand() *cli.Command {
	return &cli.Command{
		Name:        "install",
		Usage:       "let a client start tranca for its agent",
		ArgsUsage:   "CLIENT",
		Description: installHelp + statusHelp("0      it is written, or was there already"),
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "print", Usage: "print what to write and where, and write nothing"},
			&cli.StringFlag{Name: "scope", Usage: "for whom: `user` (in every folder) or project (in this one)", Value: "user", HideDefault: true},
			&cli.StringFlag{Name: "policy", Usage: "let it read the policy from `FILE`", HideDefault: true},
		},
		Action: a.install,
	}
}

func (a *app) install(_ context.Context, c *cli.Command) error {
	if c.Args().Len() != 1 {
		return &usageError{c.FullName(), "name one client: " + strings.Join(agentconfig.Clients(), ", ")}
	}
	server, err := a.serverCommand(c.String("policy"))
	if err != nil {
		return err
	}
	folder, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("%w: the working directory: %w", tranca.ErrNotFound, err)
	}
	home := a.Getenv("HOME")
	if runtime.GOOS == "windows" {
		home = a.Getenv("USERPROFILE")
	}
	p, err := agentconfig.NewPlan(c.Args().First(), agentconfig.Scope(c.String("scope")), agentconfig.Host{
		Home: home, Folder: folder, OS: runtime.GOOS, Getenv: a.Getenv,
	}, server)
	if err != nil {
		return &usageError{c.FullName(), plain(err)}
	}
	if c.Bool("print") {
		return printPlan(a.Stdout, p)
	}
	done, err := p.Apply()
	if err != nil {
		return fmt.Errorf("nothing was written: %w\nTo do it by hand, see: tranca mcp install %s --scope %s --print", err, p.Client, c.String("scope"))
	}
	return tellInstalled(a.Stdout, p, done)
}

// serverCommand is what a client starts. A policy that can't be read would
// only be found out by the agent, so it is read here.
func (a *app) serverCommand(policyFile string) (agentconfig.Server, error) {
	path, err := os.Executable()
	if err != nil {
		return agentconfig.Server{}, fmt.Errorf("%w: where tranca itself is: %w", tranca.ErrNotFound, err)
	}
	s := agentconfig.Server{Command: path, Args: []string{"mcp"}}
	if policyFile == "" {
		return s, nil
	}
	absolute, err := filepath.Abs(policyFile)
	if err != nil {
		return s, fmt.Errorf("%w: %w", tranca.ErrInvalid, err)
	}
	if _, _, err := a.FindPolicy(absolute); err != nil {
		return s, err
	}
	s.Args = append(s.Args, "--policy", absolute)
	return s, nil
}

// printPlan says what belongs where.
func printPlan(w io.Writer, p agentconfig.Plan) error {
	text := fmt.Sprintf("In %s:\n\n%s\n", p.File(), p.Snippet)
	if p.Command != nil {
		text += "or by its own command:\n\n  " + commandText(p.Command) + "\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

func tellInstalled(w io.Writer, p agentconfig.Plan, done agentconfig.Change) error {
	text := fmt.Sprintf("%s starts tranca from now on, by %s.\n", p.Client, done.File)
	if done.Unchanged {
		text = fmt.Sprintf("%s starts tranca already, by %s: nothing was changed.\n", p.Client, done.File)
	}
	if done.Backup != "" {
		text += fmt.Sprintf("What was there before is in %s.\n", done.Backup)
	}
	if !done.Unchanged {
		text += "Start it anew, so that it reads that.\n"
	}
	_, err := io.WriteString(w, text)
	return err
}
