package suite

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"tranca"
	"tranca/hostile"
	"tranca/hostile/attempt"
	"tranca/hostile/report"
	"tranca/hostile/world"
)

// trips tells of everything by which an attempt got what the guarantee forbids.
func trips(p *hostile.Probe, o *Observation) []string {
	found := got(p.Attempt, o.Attempt.Lines)
	for _, part := range []struct {
		what string
		ran  *Ran
		do   func() []string
	}{
		{"second run", o.Again, func() []string { return got(p.Again, o.Again.Lines) }},
		{"next sandbox", o.Next, func() []string { return got(p.Next, o.Next.Lines) }},
		{"neighbour starved", o.Beside, func() []string { return missed(p.Beside, o.Beside.Lines, true) }},
	} {
		if part.ran == nil {
			continue
		}
		for _, f := range part.do() {
			found = append(found, part.what+": "+f)
		}
	}
	for _, f := range o.Findings {
		if f.Oracle != world.Unseen {
			found = append(found, f.Oracle+": "+f.Text)
		}
	}
	for _, text := range o.Alive {
		found = append(found, "alive: "+text)
	}
	if slices.Contains(o.Collected, specialRead) {
		found = append(found, "collected: "+specialRead)
	}
	return append(found, overspent(p, o)...)
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
	if p.Guarantee != tranca.ItemCPUs || o.Attempt.CPUMS < 0 || o.Attempt.WallMS < 500 {
		return found
	}
	share := float64(o.Attempt.CPUMS) / float64(o.Attempt.WallMS)
	if allowed := float64(l.MilliCPUs) / 1000; share > allowed*1.35+0.05 {
		found = append(found, fmt.Sprintf("cpus: %.2f CPUs were used on average, and %.2f are allowed", share, allowed))
	}
	return found
}

// Judge decides a cell from the twin, the control and the attempt. control is
// nil in the control's own column.
func Judge(p *hostile.Probe, c *report.Column, twin, control, tried *Observation) report.Cell {
	cell := report.Cell{
		Probe: p.ID, Column: c.Name, Seconds: tried.Seconds,
		Promised: c.Promises(p.Guarantee),
		Evidence: evidence(p, tried),
	}
	expect(&cell, p, c)
	bites := control != nil && len(trips(p, control)) > 0
	cell.Verdict, cell.Why = verdict(p, c, twin, control, tried, bites)
	switch {
	case control == nil:
	case bites:
		cell.Control = NoBoundary + ": escaped"
	default:
		cell.Control = NoBoundary + ": not escaped"
		if cell.Verdict == report.Unknown || cell.Verdict == report.NotApplicable {
			cell.Evidence = append(cell.Evidence, evidence(p, control)...)
		}
	}
	return cell
}

// verdict decides; bites says that the control escaped.
func verdict(p *hostile.Probe, c *report.Column, twin, control, tried *Observation, bites bool) (report.Verdict, string) {
	if v, why := nothing(tried, "the attempt"); v != "" {
		return v, why
	}
	found := trips(p, tried)
	if len(found) > 0 && !(p.Kernel && ownKernel(c) && len(tried.Findings) == 0) {
		return report.Escaped, strings.Join(firsts(found), "; ")
	}
	if control != nil {
		if v, why := nothing(control, "the control"); v != "" {
			return report.Unknown, why
		}
	}
	if !bites {
		return uncontrolled(p)
	}
	if v, why := nothing(twin, "the benign twin"); v != "" {
		return v, why
	}
	if bad := missed(p.Twin, twin.Attempt.Lines, true); len(bad) > 0 || !twin.Attempt.Done {
		return report.Unknown, "the benign twin does not work here, so that denied means nothing: " + strings.Join(append(firsts(bad), "it ended with "+twin.Attempt.Exit.String()), "; ")
	}
	if p.Kernel && ownKernel(c) {
		return report.NotApplicable, "its own kernel answers, not the host's"
	}
	if slices.ContainsFunc(tried.Findings, func(f world.Finding) bool { return f.Oracle == world.Unseen }) {
		if ownKernel(c) {
			return report.NotApplicable, "no process of the program is the host's: a kernel of its own runs it"
		}
		return report.Unknown, "no process of the program was seen on the host"
	}
	if bad := unshown(p, tried); len(bad) > 0 {
		return report.Unknown, strings.Join(firsts(bad), "; ")
	}
	return kept(p, c, tried)
}

// unshown tells why a program that got nothing may have tried nothing: a needed
// step failed, a line is missing, or what should have followed did not run to its
// end.
func unshown(p *hostile.Probe, o *Observation) (found []string) {
	limited := func(r *Ran) bool { return p.Limit != "" && p.Limit.Named(r.Exit.Reason, r.Hits) }
	found = append(missed(p.Attempt, o.Attempt.Lines, false), untold(p.Attempt, &o.Attempt)...)
	if len(o.Attempt.Lines) == 0 && !limited(&o.Attempt) && !o.Attempt.Exit.Reason.Limited() && !p.KillSupervisor {
		found = append(found, "the program told nothing, and ended with "+o.Attempt.Exit.String())
	}
	for _, part := range []struct {
		what  string
		steps []attempt.Step
		ran   *Ran
	}{{"second run: ", p.Again, o.Again}, {"next sandbox: ", p.Next, o.Next}} {
		if len(part.steps) == 0 || limited(&o.Attempt) {
			continue
		}
		if part.ran == nil || !part.ran.Done && !limited(part.ran) {
			found = append(found, part.what+"it did not come to its end")
			continue
		}
		for _, f := range append(missed(part.steps, part.ran.Lines, false), untold(part.steps, part.ran)...) {
			found = append(found, part.what+f)
		}
	}
	return found
}

// kept decides between limited, contained and failed where nothing escaped.
func kept(p *hostile.Probe, c *report.Column, o *Observation) (report.Verdict, string) {
	if len(o.Trouble) > 0 {
		return report.Failed, strings.Join(o.Trouble, "; ")
	}
	end, hits := o.Attempt.Exit, o.Attempt.Hits
	if o.Again != nil && !p.Limit.Named(end.Reason, hits) {
		end, hits = o.Again.Exit, o.Again.Hits // what followed met it
	}
	switch {
	case p.Limit == "":
		end = o.Attempt.Exit
	case c.Command != "":
		return report.Contained, "it was stopped: " + end.String() + "; such a tool has no words for limits"
	case p.Limit.Named(end.Reason, hits):
		return report.Limited, fmt.Sprintf("ended with %s, limits hit %v", end, hits)
	case byRlimit(c, p.Guarantee):
		return report.Contained, fmt.Sprintf("it was stopped by a limit of the process, which counts nothing that a result could tell: ended with %s", end)
	default:
		return report.Failed, fmt.Sprintf("the limit %s stopped it, and the result says %s, limits hit %v", p.Limit, end, hits)
	}
	if ended(p, c, o) || end.Reason == tranca.EndCPU && o.Attempt.CPUMS < 0 && byRlimit(c, tranca.ItemCPUTime) {
		return report.Contained, "denied; ended with " + end.String()
	}
	return report.Failed, "nothing escaped, and the program ended with " + end.String() + " before its end"
}

// byRlimit reports whether a column holds an item by a limit of each process, as
// where a user has no control groups: the kernel then refuses, and keeps no
// count of it.
func byRlimit(c *report.Column, item tranca.Item) bool {
	if slices.Contains(c.Waived, item) {
		return true
	}
	for _, g := range c.Guarantees {
		if g.Item == item {
			return strings.Contains(g.Mechanism, "RLIMIT")
		}
	}
	return false
}

// ended reports whether the program ended in a way that the probe allows.
// Somebody else's command tells a signal as a shell does, by 128 and its number.
func ended(p *hostile.Probe, c *report.Column, o *Observation) bool {
	e := o.Attempt.Exit
	if p.Ends == "" {
		return e.Success() && o.Attempt.Done || p.KillSupervisor
	}
	ways := strings.Split(p.Ends, ", ")
	if c.Command != "" && e.Code > 128 && slices.Contains(ways, fmt.Sprintf("signal %d", e.Code-128)) {
		return true
	}
	return slices.Contains(ways, e.String()) || e.Success() && o.Attempt.Done
}

// nothing says why an observation shows nothing.
func nothing(o *Observation, what string) (report.Verdict, string) {
	switch {
	case o == nil:
		return report.Unknown, what + " was not run"
	case o.Broken != "":
		return report.Unknown, what + " could not be run: " + o.Broken
	case o.Refused != "" && len(o.Findings) > 0:
		return report.Escaped, "refused, and yet " + o.Findings[0].Oracle + ": " + o.Findings[0].Text
	case o.Refused != "":
		return report.NotApplicable, "refused, and nothing was run: " + o.Refused
	case len(o.Lacks) > 0:
		return report.NotApplicable, "this host has no " + strings.Join(o.Lacks, ", ")
	}
	return "", ""
}

// uncontrolled decides where bare code does not escape either.
func uncontrolled(p *hostile.Probe) (report.Verdict, string) {
	for _, need := range p.Needs {
		if why := lacking(need); why != "" {
			return report.NotApplicable, "bare code can't do it here either: " + why
		}
	}
	return report.Unknown, "bare code did not get it either, so that denied means nothing"
}

// lacking says why a need is not met here, or may not be; "" where it is.
func lacking(need string) string {
	switch need {
	case "root":
		if os.Geteuid() != 0 {
			return "it takes root"
		}
		return ""
	case "user":
		if os.Geteuid() == 0 {
			return "it takes a user who isn't root"
		}
		return ""
	case "amd64", "ia32":
		if runtime.GOARCH != "amd64" {
			return "it is for amd64"
		}
		if need == "ia32" {
			return "the kernel has no calls of i386"
		}
		return ""
	case "ipv6", "lan":
		return "there is no " + need + " here"
	}
	return strings.TrimPrefix(need, "host: ")
}

// ownKernel reports whether the code's system calls are not the host kernel's.
func ownKernel(c *report.Column) bool { return c.Level >= tranca.LevelGVisor }

// expect fills in what was to be expected.
func expect(cell *report.Cell, p *hostile.Probe, c *report.Column) {
	backend, _, _ := strings.Cut(c.Name, " (")
	if c.Kind == report.ColumnBackend && ownKernel(c) && backend == "container" {
		backend = "gvisor"
	}
	if e, ok := p.Expect[backend]; ok {
		cell.Expected, cell.Because = e.Verdict, e.Why
		// It is about more than what this backend promises by that item.
		cell.Promised = cell.Promised && e.Verdict != report.Escaped
		return
	}
	switch {
	case c.Kind == report.ColumnControl:
		cell.Expected, cell.Because = report.Escaped, "it has no boundary"
	case !cell.Promised:
	case p.Kernel && ownKernel(c):
		cell.Expected, cell.Because = report.NotApplicable, "its own kernel answers"
	case p.Limit != "" && !byRlimit(c, p.Guarantee):
		cell.Expected, cell.Because = report.Limited, "it promises "+string(p.Guarantee)
	case p.Limit != "": // told or not, as the kernel lets
	default:
		cell.Expected, cell.Because = report.Contained, "it promises "+string(p.Guarantee)
	}
}

func evidence(p *hostile.Probe, o *Observation) []string {
	var all []string
	if o.Broken == "" && o.Refused == "" && len(o.Lacks) == 0 {
		all = told("", p.Attempt, o.Attempt.Lines)
	}
	for _, part := range []struct {
		what  string
		steps []attempt.Step
		ran   *Ran
	}{{"second run:", p.Again, o.Again}, {"next sandbox:", p.Next, o.Next}, {"neighbour:", p.Beside, o.Beside}} {
		if part.ran != nil {
			all = append(all, told(part.what, part.steps, part.ran.Lines)...)
		}
	}
	for _, f := range o.Findings {
		all = append(all, "seen from the host, "+f.Oracle+": "+f.Text)
	}
	for _, c := range o.Collected {
		all = append(all, "collected "+clip(c))
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
