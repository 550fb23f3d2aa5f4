// Command tranca-guest is the guest agent: the first process in every local
// sandbox. It is not meant to be run by hand; it expects its host at the other
// end of descriptor 3 or, with the argument "stdio", of standard input and
// output, as a container engine gives them. With the argument "kernel" it is a
// program that says which kernel it runs under, and ends: the one program that
// is in every container.
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
	if len(os.Args) == 2 {
		switch os.Args[1] {
		case "stdio":
			run = boot.RunStdio
		case "kernel":
			run = sayKernel
		}
	}
	if run() != nil {
		os.Exit(1)
	}
}

func sayKernel() error {
	text, err := os.ReadFile("/proc/version")
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(text)
	return err
}
