package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"tranca/hostile/report"
)

// printBad names the cells that made the run fail, and what is worse than in the
// run that it was compared with. A cell may be named for both.
func printBad(text []byte) error {
	r, err := report.Read(bytes.NewReader(text))
	if err != nil {
		return err
	}
	for _, c := range r.BadCells() {
		fmt.Printf("%s in %s: %s, want %s: %s\n", c.Probe, c.Column, c.Verdict, c.Expected, c.Why)
	}
	var compared struct {
		Changes report.Changes `json:"changes"` // none where it was compared with nothing
	}
	if err := json.Unmarshal(text, &compared); err != nil {
		return err
	}
	printWorse(compared.Changes)
	return nil
}

func printWorse(c report.Changes) {
	for _, cell := range c.Cells {
		if cell.Regression {
			fmt.Printf("%s in %s: %s, before %s: %s\n", cell.Probe, cell.Column, cell.After, cell.Before, cell.Why)
		}
	}
	for _, p := range c.Promises {
		if !p.Held {
			fmt.Printf("(promise) %s in %s: no more: %s\n", p.Item, p.Column, p.Why)
		}
	}
	for _, p := range slices.Concat(c.Columns, c.Probes) {
		if !p.There {
			fmt.Printf("(suite) %s: no more: %s\n", p.Name, p.Why)
		}
	}
}
