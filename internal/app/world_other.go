//go:build !linux

package app

import (
	"context"
	"fmt"
	"os"
	"runtime"

	"tranca"
	"tranca/internal/bench"
	"tranca/internal/cli"
)

// World returns what the command line uses in a real process. Here that is
// everything that a server does; nothing runs on this host itself.
func World() cli.World {
	err := elsewhere(runtime.GOOS)
	return cli.World{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Getenv: os.Getenv,
		Quit:   os.Exit,
		// Without local runs there is no policy that one could be under.
		FindPolicy: func(string) (tranca.Policy, bool, error) { return tranca.Policy{}, false, err },
		Open:       func(tranca.Policy) (cli.Engine, error) { return nil, err },
		Probe:      func(context.Context) []cli.Probed { return []cli.Probed{{Backend: "process", Err: err}} },
		MCP:        func(context.Context, cli.MCPSetup) error { return err },
		Serve:      func(context.Context, cli.ServeSetup) error { return err },
		Bench:      func(context.Context, cli.BenchSetup) (*bench.Result, error) { return nil, err },
		Guest:      func() string { return "" },
		Elsewhere:  err,
	}
}

// elsewhere says why nothing runs on this host, and what works instead.
func elsewhere(goos string) error {
	name, instead := goos, "on a Linux host"
	switch goos {
	case "darwin":
		name, instead = "macOS", "in a Linux VM on this Mac"
	case "windows":
		name, instead = "Windows", "within WSL2"
	}
	return fmt.Errorf("%w: tranca's boundaries are made of the Linux kernel's mechanisms, and this is %s: run tranca %s, or use a server that runs there (tranca serve) by --server URL",
		tranca.ErrUnavailable, name, instead)
}
