// Command tranca-sentry is gVisor for tranca: a kernel in user space that runs
// hostile code, and the file server beside it. It is a binary of its own, which
// tranca carries, since linking gVisor costs every start of a program some ten
// milliseconds.
//
// It can be two things. To tranca's own backend it is a Sentry and a file
// server that are set up by one message each, without runsc's second and third
// start of itself; see [runKernel] and [serveFiles]. To a container engine it
// is an OCI runtime with runsc's commands; see [runtimeCommands].
//
// Whoever starts it for tranca has put it into new namespaces and its control
// group; what it does first is to give up its rights.
package main

import (
	"fmt"
	"os"

	"tranca/internal/guest/sentryspec"
)

func main() {
	if len(os.Args) == 2 {
		var run func() error
		switch os.Args[1] {
		case sentryspec.FilesCommand:
			run = serveFiles
		case sentryspec.KernelCommand:
			run = runKernel
		}
		if run != nil {
			if err := run(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		}
	}
	runRuntime()
}
