// Command hostileshort reads a report of `tranca hostile` and writes what of it
// is kept in hostile/expected, for later runs to be compared with. With -bad it
// names the cells that made the run fail instead.
package main

import (
	"flag"
	"fmt"
	"os"

	"tranca/hostile/report"
)

func main() {
	bad := flag.Bool("bad", false, "name the cells that made the run fail")
	flag.Parse()
	r, err := report.Read(os.Stdin)
	if err == nil && *bad {
		for _, c := range r.BadCells() {
			fmt.Printf("%s in %s: %s, want %s: %s\n", c.Probe, c.Column, c.Verdict, c.Expected, c.Why)
		}
		return
	}
	if err == nil {
		err = r.Short().WriteJSON(os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "hostileshort:", err)
		os.Exit(1)
	}
}
