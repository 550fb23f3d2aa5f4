package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"
)

// prepare gives a command and those below it what all of them share: our
// streams, errors that come back instead of being printed half way, and no
// splitting of values at commas.
func (a *app) prepare(c *cli.Command, path string) {
	c.Reader, c.Writer, c.ErrWriter = a.Stdin, a.Stdout, a.Stderr
	c.HideHelpCommand = true
	c.HideVersion = true
	c.DisableSliceFlagSeparator = true
	c.ExitErrHandler = func(context.Context, *cli.Command, error) {}
	c.OnUsageError = func(_ context.Context, c *cli.Command, err error, _ bool) error {
		return badFlag(c, path, err)
	}
	for _, sub := range c.Commands {
		a.prepare(sub, path+" "+sub.Name)
	}
}

// badFlag turns the parser's error into ours and suggests the flag that was
// most likely meant.
func badFlag(c *cli.Command, path string, err error) error {
	const unknown, bare = "flag provided but not defined: -", "flag needs an argument: "
	text := err.Error()
	if name, ok := strings.CutPrefix(text, unknown); ok {
		message := fmt.Sprintf("%s has no flag %s", path, dashed(name))
		if near := nearestFlag(c, name); near != "" {
			message += fmt.Sprintf("; did you mean %s?", near)
		}
		if c.Name == "run" || c.Name == "exec" {
			message += "\n(flags for the program stand after --)"
		}
		return &usageError{path, message}
	}
	if name, ok := strings.CutPrefix(text, bare); ok {
		text = fmt.Sprintf("the flag %s needs a value", name)
	}
	return &usageError{path, text}
}

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// nearestFlag returns the flag that name is most likely a misspelling of, or
// "" where none is near.
func nearestFlag(c *cli.Command, name string) string {
	near := cli.SuggestFlag(c.Flags, name, true)
	if near == "" || !similar(strings.TrimLeft(near, "-"), name) {
		return ""
	}
	return near
}

// similar reports whether the one word could be a slip of the other: they
// share their beginning, or most of their letters.
func similar(a, b string) bool {
	if strings.HasPrefix(a, b) || strings.HasPrefix(b, a) {
		return true
	}
	left := []rune(a)
	shared := 0
	for _, r := range b {
		for i, l := range left {
			if l == r {
				left = append(left[:i], left[i+1:]...)
				shared++
				break
			}
		}
	}
	return 3*shared >= 2*max(len(a), len(b))
}

// noCommand is what tranca does without a command, or with one that it does
// not know.
func noCommand(_ context.Context, c *cli.Command) error {
	name := c.Args().First()
	if name == "" {
		return cli.ShowSubcommandHelp(c)
	}
	message := fmt.Sprintf("%s has no command %q", c.FullName(), name)
	if near := cli.SuggestCommand(c.Commands, name); near != "" && similar(near, name) {
		message += fmt.Sprintf("; did you mean %q?", near)
	}
	return &usageError{c.FullName(), message}
}

// noArguments refuses arguments that a command would silently ignore.
func noArguments(c *cli.Command) error {
	if c.Args().Present() {
		return &usageError{c.FullName(), fmt.Sprintf("%s takes no argument, but was given %q", c.FullName(), c.Args().First())}
	}
	return nil
}
