package cli

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v3"
)

// Version is set when a release is linked.
var Version = "dev"

type versionInfo struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
	Guest   string `json:"guest,omitempty"`
	Notice  string `json:"notice,omitempty"`
}

func (a *app) versionCommand() *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "say which tranca this is",
		Flags: []cli.Flag{jsonFlag("print as JSON")},
		Description: "Examples:\n" +
			"  tranca version\n" +
			"  tranca version --json",
		Action: func(_ context.Context, c *cli.Command) error {
			if err := noArguments(c); err != nil {
				return err
			}
			return a.printVersion(c.Bool("json"))
		},
	}
}

func (a *app) printVersion(asJSON bool) error {
	v := versionInfo{
		Version: Version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
		Guest: a.Guest(), Notice: a.Notice,
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v.Commit = s.Value
			}
		}
	}
	if asJSON {
		return a.printJSON(v)
	}
	fmt.Fprintf(a.Stdout, "tranca %s (%s %s/%s)\n", v.Version, v.Go, v.OS, v.Arch)
	if v.Commit != "" {
		fmt.Fprintf(a.Stdout, "commit %s\n", v.Commit)
	}
	if v.Guest != "" {
		fmt.Fprintf(a.Stdout, "guest agent %s\n", v.Guest)
	}
	if v.Notice != "" {
		fmt.Fprintln(a.Stdout, v.Notice)
	}
	return nil
}
