// Testrun compiles the suite once and runs the binaries in runs that differ in
// user and host, so that neither compiler nor module cache is needed there. It
// closes with the lines of `go test`.
//
//	testrun build -o DIR [PACKAGE...]
//	testrun run   -bin DIR -log DIR -name RUN [-only REGEXP] [-without REGEXP] [-run TESTS]
//	              [-jobs N] [-first REGEXP] [-alone REGEXP]
//	testrun check -log DIR [-absent PART,...]
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("want build, run or check"))
	}
	commands := map[string]func([]string) error{"build": build, "run": run, "check": check}
	command, ok := commands[os.Args[1]]
	if !ok {
		fail(fmt.Errorf("unknown command %q: want build, run or check", os.Args[1]))
	}
	heed()
	if err := command(os.Args[2:]); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "testrun:", err)
	os.Exit(1)
}
