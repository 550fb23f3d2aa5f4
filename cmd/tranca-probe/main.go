// Command tranca-probe runs a hostile program, which it reads as JSON from
// standard input: one of the two interpreters of the language that
// docs/PROBES.md describes. Its argument is the mark of the run, by which the
// host finds its processes; it is not looked at. It tells of each step on
// standard output and exits with 0, whatever the steps achieved.
package main

import (
	"fmt"
	"os"

	"tranca/hostile/attempt"
)

func main() {
	program, err := attempt.Read(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, "tranca-probe:", err)
		os.Exit(2)
	}
	os.Exit(attempt.Run(program, os.Stdout))
}
