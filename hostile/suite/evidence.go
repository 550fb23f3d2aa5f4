package suite

import (
	"fmt"
	"slices"

	"tranca/hostile"
)

func evidence(p *hostile.Probe, o *Observation) []string {
	var all []string
	if o.Broken == "" && o.Refused == "" && len(o.Lacks) == 0 {
		all = told("", p.Attempt, o.Attempt.Lines)
	}
	for _, part := range append(o.after(p), part{"neighbour", p.Beside, o.Beside}) {
		if part.ran != nil {
			all = append(all, told(part.what+":", part.steps, part.ran.Lines)...)
		}
	}
	for _, f := range o.Findings {
		all = append(all, "seen from the host, "+f.Oracle+": "+f.Text)
	}
	for _, c := range o.Collected {
		all = append(all, "collected "+c.String())
	}
	if o.Broken == "" && o.Refused == "" && len(o.Lacks) == 0 {
		a := o.Attempt
		all = append(all, fmt.Sprintf("ended with %s after %d ms, %d ms of CPU, limits hit %v, %d bytes of output", a.Exit, a.WallMS, a.CPUMS, a.Hits, a.Printed))
	}
	return append(all, o.Trouble...)
}

// firsts are as many as a sentence takes.
func firsts(all []string) []string {
	const enough = 3
	if len(all) > enough {
		return append(slices.Clone(all[:enough]), fmt.Sprintf("and %d more", len(all)-enough))
	}
	return all
}
