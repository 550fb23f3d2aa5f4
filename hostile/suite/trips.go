package suite

import (
	"fmt"

	"tranca"
	"tranca/hostile"
	"tranca/hostile/report"
)

// trips tells of everything by which an attempt got what the guarantee forbids.
func trips(p *hostile.Probe, o *Observation) []string {
	found := got(p.Attempt, o.Attempt.Lines)
	tell := func(what string, all []string) {
		for _, f := range all {
			found = append(found, what+": "+f)
		}
	}
	for _, part := range o.after(p) {
		if part.ran != nil {
			tell(part.what, got(part.steps, part.ran.Lines))
		}
	}
	if o.Beside != nil {
		tell(starved, starvedSteps(p, o))
	}
	for _, f := range o.Findings {
		if f.Saw() {
			found = append(found, f.Oracle+": "+f.Text)
		}
	}
	for _, text := range o.Alive {
		found = append(found, "alive: "+text)
	}
	for _, c := range o.Collected {
		if c.Special {
			found = append(found, "collected "+c.Path+": read as if it were a file, which it is not")
		}
	}
	return append(found, overspent(p, o)...)
}

// starved begins what is told of a neighbour that did not get its share.
const starved = "neighbour starved"

// starvedSteps are those of a neighbour that failed beside the program. One that
// ran at another time, or could not try something, tells nothing.
func starvedSteps(p *hostile.Probe, o *Observation) []string {
	if o.Beside.together(&o.Attempt) < enoughTogether || len(faults(p.Beside, o.Beside.Lines)) > 0 {
		return nil
	}
	return missed(p.Beside, o.Beside.Lines, true)
}

// shortest is how many milliseconds a program has to run for its share of the
// processors to be told.
const shortest = 500

// uncounted tells why what a program used of the processors is not known.
func uncounted(p *hostile.Probe, c *report.Column, o *Observation) []string {
	switch {
	case p.Guarantee != tranca.ItemCPUs && p.Guarantee != tranca.ItemCPUTime, byRlimit(c, p.Guarantee):
		return nil
	case o.Attempt.CPUMS < 0:
		return []string{"nobody outside counted the time of its processors"}
	case p.Guarantee == tranca.ItemCPUs && o.Attempt.WallMS < shortest:
		return []string{fmt.Sprintf("it ran for %d ms, which is too short to count its share of the processors", o.Attempt.WallMS)}
	}
	return nil
}

// overspent tells what the program got of output and CPU time beyond its limit,
// as counted from outside.
func overspent(p *hostile.Probe, o *Observation) (found []string) {
	policy, err := p.Policy.Apply(tranca.Policy{}, nil)
	if err != nil {
		return []string{err.Error()}
	}
	l := policy.Limits
	const streams = 2
	if o.Attempt.Printed > streams*l.Output.Size+4096 {
		found = append(found, fmt.Sprintf("output: %d bytes came, and %d are allowed of each stream", o.Attempt.Printed, l.Output.Size))
	}
	for _, r := range []*Ran{&o.Attempt, o.Again} {
		const late = 1000 // milliseconds that noticing may take
		if spent := l.CPUTime.Milliseconds(); p.Guarantee == tranca.ItemCPUTime && r != nil && r.CPUMS > spent*3/2+late {
			found = append(found, fmt.Sprintf("cpu_time: %d ms were used, and %d are allowed", r.CPUMS, spent))
		}
	}
	if p.Guarantee != tranca.ItemCPUs || o.Attempt.CPUMS < 0 || o.Attempt.WallMS < shortest {
		return found
	}
	share := float64(o.Attempt.CPUMS) / float64(o.Attempt.WallMS)
	if allowed := float64(l.MilliCPUs) / 1000; share > allowed*1.35+0.05 {
		found = append(found, fmt.Sprintf("cpus: %.2f CPUs were used on average, and %.2f are allowed", share, allowed))
	}
	return found
}
