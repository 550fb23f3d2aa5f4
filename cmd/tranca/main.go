// Command tranca runs untrusted code behind a boundary that its operator
// chose. `tranca --help` lists what it does; package cli is its command line,
// and package app puts it together.
package main

import (
	"context"
	"os"
	"runtime/debug"

	"tranca/internal/app"
	"tranca/internal/cli"
)

func main() {
	// Most runs end before their garbage matters, and collecting it at the
	// usual 4 MiB costs a start some milliseconds. So the first collection
	// comes at 32 MiB; large heaps are collected as ever, below the limit.
	debug.SetGCPercent(800)
	debug.SetMemoryLimit(256 << 20)
	os.Exit(cli.Main(context.Background(), app.World(), os.Args))
}
