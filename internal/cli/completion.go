package cli

import (
	"context"
	"embed"
	"fmt"

	"github.com/urfave/cli/v3"
)

// completionScripts ask this program what fits, by its hidden command
// __complete. The parser's own scripts are not used: they evaluate the words of
// the command line, so that completing a command would run what stands in it.
//
//go:embed completion
var completionScripts embed.FS

func (a *app) completionCommand() *cli.Command {
	root := &cli.Command{
		Name:  "completion",
		Usage: "print what lets a shell complete tranca's commands, sandboxes and processes",
		Description: "Examples:\n" +
			"  source <(tranca completion bash)                 # in ~/.bashrc\n" +
			"  source <(tranca completion zsh)                  # in ~/.zshrc, after compinit\n" +
			"  tranca completion fish > ~/.config/fish/completions/tranca.fish",
		Action: noCommand,
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		root.Commands = append(root.Commands, &cli.Command{
			Name:  shell,
			Usage: "print the script for " + shell,
			Action: func(_ context.Context, c *cli.Command) error {
				if err := noArguments(c); err != nil {
					return err
				}
				script, err := completionScripts.ReadFile("completion/tranca." + shell)
				if err != nil {
					return err
				}
				_, err = a.Stdout.Write(script)
				return err
			},
		})
	}
	return root
}

// completeCommand prints what fits the last of its arguments, which are the
// words behind "tranca" up to the cursor: one on a line, a tab, and a few words
// about it. The line ":files" says that names of files fit too, and ":nospace"
// that what fits may go on.
func (a *app) completeCommand() *cli.Command {
	return &cli.Command{
		Name: "__complete", Hidden: true, SkipFlagParsing: true, HideHelp: true,
		Action: func(ctx context.Context, c *cli.Command) error {
			q := newCompletion(a, c.Root(), c.Args().Slice())
			q.answer(ctx)
			for _, line := range q.lines() {
				if _, err := fmt.Fprintln(a.Stdout, line); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
