// Command tranca runs untrusted code behind a boundary that its operator
// chose. `tranca help` lists what it does; package cli is its command line and
// package app puts it together.
package main

import (
	"context"
	"os"

	"tranca/internal/app"
	"tranca/internal/cli"
)

func main() {
	os.Exit(cli.Main(context.Background(), app.World(), os.Args))
}
