// Command hostileshort reads a report of `tranca hostile` and writes what of it
// is kept in hostile/expected, for later runs to be compared with. With -bad it
// names what made the run fail instead.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"

	"tranca/hostile/report"
)

func main() {
	bad := flag.Bool("bad", false, "name what made the run fail")
	flag.Parse()
	act := keep
	if *bad {
		act = printBad
	}
	text, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = act(text)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "hostileshort:", err)
		os.Exit(1)
	}
}

func keep(text []byte) error {
	r, err := report.Read(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return r.Short().WriteJSON(os.Stdout)
}
