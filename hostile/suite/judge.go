package suite

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"tranca"
	"tranca/hostile"
	"tranca/hostile/report"
	"tranca/hostile/world"
)

// Judge decides a cell from the twin, the control and the attempt. control is
// nil in the control's own column, and form is the name of the one that was made:
// [NoBoundary] or [NoBoundaryPython].
func Judge(p *hostile.Probe, c *report.Column, form string, twin, control, tried *Observation) report.Cell {
	cell := report.Cell{
		Probe: p.ID, Column: c.Name, Seconds: tried.Seconds,
		Promised: c.Promises(p.Guarantee),
		Evidence: evidence(p, tried),
	}
	expect(&cell, p, c)
	bites := control != nil && len(trips(p, control)) > 0
	cell.Verdict, cell.Why = verdict(p, c, twin, control, tried, bites)
	if cell.Verdict == report.Contained || cell.Verdict == report.Limited {
		cell.Unproven = unproven(p.Attempt, control.Attempt.Lines)
	}
	switch {
	case control == nil:
	case bites:
		cell.Control = form + ": escaped"
	default:
		cell.Control = form + ": not escaped"
		if cell.Verdict == report.Unknown || cell.Verdict == report.NotApplicable {
			cell.Evidence = append(cell.Evidence, evidence(p, control)...)
		}
	}
	return cell
}

// verdict decides; bites says that the control escaped.
func verdict(p *hostile.Probe, c *report.Column, twin, control, tried *Observation, bites bool) (report.Verdict, string) {
	if v, why := nothing(c, tried, "the attempt"); v != "" {
		return v, why
	}
	found := trips(p, tried)
	seen := slices.ContainsFunc(tried.Findings, world.Finding.Saw)
	alike := len(starvedOnly(found)) > 0 && twin != nil && len(failing(p, twin)) > 0
	if len(found) > 0 && !alike && !(p.Kernel && ownKernel(c) && !seen) {
		return report.Escaped, strings.Join(firsts(found), "; ")
	}
	if control == nil {
		return uncontrolled(p, tried)
	}
	if v, why := nothing(c, control, "the control"); v != "" {
		return report.Unknown, why
	}
	if !bites {
		return uncontrolled(p, control)
	}
	if v, why := nothing(c, twin, "the benign twin"); v != "" {
		return v, why
	}
	if bad := failing(p, twin); len(bad) > 0 {
		return report.Unknown, "the benign twin does not work here, so that denied means nothing: " + strings.Join(firsts(bad), "; ")
	}
	if p.Kernel && ownKernel(c) {
		return report.NotApplicable, "its own kernel answers, not the host's"
	}
	if i := slices.IndexFunc(tried.Findings, func(f world.Finding) bool { return !f.Saw() }); i >= 0 {
		if tried.Findings[i].Oracle == world.Unseen && ownKernel(c) {
			return report.NotApplicable, "no process of the program is the host's: a kernel of its own runs it"
		}
		return report.Unknown, tried.Findings[i].Text
	}
	if bad := unshown(p, c, tried); len(bad) > 0 {
		return report.Unknown, strings.Join(firsts(bad), "; ")
	}
	return kept(p, c, tried)
}

// failing tells why a twin does not show that what is benign works: a step of it
// failed, its neighbour's did, or nothing that it made could be collected.
func failing(p *hostile.Probe, twin *Observation) (found []string) {
	found = missed(p.Twin, twin.Attempt.Lines, true)
	if !twin.Attempt.Done {
		found = append(found, "it ended with "+twin.Attempt.Exit.String())
	}
	if len(p.Beside) > 0 && twin.Beside == nil {
		found = append(append(found, "its neighbour was not run"), twin.Trouble...)
	} else if twin.Beside != nil {
		for _, f := range missed(p.Beside, twin.Beside.Lines, true) {
			found = append(found, "its neighbour: "+f)
		}
	}
	if len(p.Collect) > 0 && len(twin.Collected) == 0 {
		found = append(found, "nothing of it was collected")
	}
	for _, c := range twin.Collected {
		if !c.Brought {
			found = append(found, "collected "+c.String())
		}
	}
	return found
}

// starvedOnly returns what was found where all of it is about a neighbour.
func starvedOnly(found []string) []string {
	for _, f := range found {
		if !strings.HasPrefix(f, starved) {
			return nil
		}
	}
	return found
}

// unshown tells why a program that got nothing may have tried nothing: a needed
// step failed, a line is missing, or what should have followed did not run to its
// end.
func unshown(p *hostile.Probe, c *report.Column, o *Observation) (found []string) {
	limited := func(r *Ran) bool { return p.Limit != "" && p.Limit.Named(r.Exit.Reason, r.Hits) }
	found = append(missed(p.Attempt, o.Attempt.Lines, false), untold(p.Attempt, &o.Attempt)...)
	found = append(found, faults(p.Attempt, o.Attempt.Lines)...)
	found = append(found, uncounted(p, c, o)...)
	switch {
	case len(p.Beside) > 0 && o.Beside == nil:
		found = append(append(found, "its neighbour was not run"), o.Trouble...)
	case o.Beside == nil:
	case o.Beside.together(&o.Attempt) < enoughTogether:
		found = append(found, "the neighbour and the program hardly ran at the same time")
	default:
		found = append(found, faults(p.Beside, o.Beside.Lines)...)
	}
	if o.Unseen != "" {
		found = append(found, o.Unseen)
	}
	if o.Lost != "" && !limited(&o.Attempt) {
		found = append(found, "what it made could not be collected: "+o.Lost)
	}
	if len(o.Attempt.Lines) == 0 && !limited(&o.Attempt) && !o.Attempt.Exit.Reason.Limited() && !p.KillSupervisor {
		found = append(found, "the program told nothing, and ended with "+o.Attempt.Exit.String())
	}
	for _, part := range o.after(p) {
		if len(part.steps) == 0 || limited(&o.Attempt) {
			continue
		}
		if part.ran == nil || !part.ran.Done && !limited(part.ran) {
			found = append(found, part.what+": it did not come to its end")
			continue
		}
		for _, f := range slices.Concat(missed(part.steps, part.ran.Lines, false), untold(part.steps, part.ran), faults(part.steps, part.ran.Lines)) {
			found = append(found, part.what+": "+f)
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
func nothing(c *report.Column, o *Observation, what string) (report.Verdict, string) {
	switch {
	case o == nil:
		return report.Unknown, what + " was not run"
	case o.Broken != "":
		return report.Unknown, what + " could not be run: " + o.Broken
	case o.Refused != "" && len(o.Findings) > 0:
		return report.Escaped, "refused, and yet " + o.Findings[0].Oracle + ": " + o.Findings[0].Text
	case o.Refused != "" && c.Kind == report.ColumnBackend && promisesAll(c, o.RefusedFor):
		return report.Unknown, "what it promises was refused, and nothing was run: " + o.Refused
	case o.Refused != "":
		return report.NotApplicable, "refused, and nothing was run: " + o.Refused
	case len(o.Lacks) > 0:
		return report.NotApplicable, "this host has no " + strings.Join(o.Lacks, ", ")
	}
	return "", ""
}

// uncontrolled decides where bare code does not escape either. A need that is not
// met explains that only where the bare code was really tried.
func uncontrolled(p *hostile.Probe, control *Observation) (report.Verdict, string) {
	bad := faults(p.Attempt, control.Attempt.Lines)
	for _, part := range control.after(p) {
		if part.ran != nil {
			bad = append(bad, faults(part.steps, part.ran.Lines)...)
		}
	}
	if !control.Attempt.Done && p.Ends == "" {
		bad = append(bad, "it ended with "+control.Attempt.Exit.String())
	}
	if len(bad) > 0 {
		return report.Unknown, "bare code did not get it either, and was not really tried: " + strings.Join(firsts(bad), "; ")
	}
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
