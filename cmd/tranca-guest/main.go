// Command tranca-guest is the guest agent: the first process in every local
// sandbox. It is not meant to be run by hand; it expects its host at the other
// end of descriptor 3 or, with the argument "stdio", of standard input and
// output, as a container engine gives them.
package main

import (
	"os"

	"tranca/internal/guest/boot"
	"tranca/internal/guest/bootspec"
)

func main() {
	// Without other arguments of any kind: nothing about the host shows in
	// /proc/PID/cmdline.
	run := func() error { return boot.Run(bootspec.StreamFD) }
	if len(os.Args) == 2 && os.Args[1] == "stdio" {
		run = boot.RunStdio
	}
	if run() != nil {
		os.Exit(1)
	}
}
