package suite

import (
	"slices"
	"strings"
	"testing"
	"time"

	"tranca"
	"tranca/hostile"
	"tranca/hostile/attempt"
	"tranca/hostile/report"
	"tranca/hostile/world"
)

// probe is one with a step that must not succeed, and a twin that must.
func probe(change func(*hostile.Probe)) *hostile.Probe {
	p := &hostile.Probe{
		ID: "net-01-tcp", Guarantee: tranca.ItemNetwork, Rows: []string{"NET-01"},
		Attempt: []attempt.Step{{Do: "connect"}}, Twin: []attempt.Step{{Do: "echo"}},
	}
	if change != nil {
		change(p)
	}
	return p
}

// did is an observation of a program that came to its end, with outcomes for
// its steps: "" is success.
func did(names []string, errnos []string, change func(*Observation)) *Observation {
	o := &Observation{}
	o.Attempt.Exit = tranca.Exit{Reason: tranca.EndExited}
	o.Attempt.Done = true
	for i, name := range names {
		o.Attempt.Lines = append(o.Attempt.Lines, attempt.Line{Step: i, As: name, OK: errnos[i] == "", Errno: errnos[i]})
	}
	if change != nil {
		change(o)
	}
	return o
}

func connects(errno string, change func(*Observation)) *Observation {
	return did([]string{"connect"}, []string{errno}, change)
}

func echoes(errno string) *Observation { return did([]string{"echo"}, []string{errno}, nil) }

func hostSaw(o *Observation) {
	o.Findings = append(o.Findings, world.Finding{Oracle: "reached", Text: "listener tcp4"})
}

func TestJudge(t *testing.T) {
	process := report.Column{Name: "process", Kind: report.ColumnBackend, Level: tranca.LevelProcess, Guarantees: []tranca.Guarantee{
		{Item: tranca.ItemNetwork, Held: true}, {Item: tranca.ItemCPUs, Held: true}, {Item: tranca.ItemCPUTime, Held: true},
	}}
	refusing := report.Column{Name: "process", Kind: report.ColumnBackend, Guarantees: []tranca.Guarantee{{Item: tranca.ItemNetwork, Held: true, Mechanism: "what could reach it is refused"}}}
	gvisor := report.Column{Name: "gvisor", Kind: report.ColumnBackend, Level: tranca.LevelGVisor, Guarantees: process.Guarantees}
	kernel := func(p *hostile.Probe) { p.Kernel = true }
	memory := func(p *hostile.Probe) { p.Limit = "memory" }
	needy := func(p *hostile.Probe) { p.Needs = []string{"host: no such device"} }
	cpus := func(p *hostile.Probe) { p.Guarantee = tranca.ItemCPUs }
	cpuTime := func(p *hostile.Probe) { p.Guarantee, p.Policy.CPUTime = tranca.ItemCPUTime, "2s" }
	collecting := func(p *hostile.Probe) { p.Collect = []hostile.Collect{{Path: "{space}/f"}} }
	collected := func(said string, brought bool) *Observation {
		o := echoes("")
		o.Collected = []Collected{{Path: "/f", Said: said, Brought: brought}}
		return o
	}
	besides := func(p *hostile.Probe) { p.Beside = []attempt.Step{{Do: "connect"}} }
	starves := func(o *Observation) {
		o.Attempt.Began, o.Attempt.WallMS = time.Unix(1, 0), 2000
		o.Beside = &Ran{Began: time.Unix(1, 0), WallMS: 2000, Done: true}
	}
	with := func(o *Observation, change func(*Observation)) *Observation {
		change(o)
		return o
	}
	withNeighbour := func(o *Observation) *Observation {
		o.Beside = &connects("", nil).Attempt
		return o
	}
	beside := func(late time.Duration) func(*Observation) {
		return func(o *Observation) {
			o.Attempt.Began, o.Attempt.WallMS = time.Unix(1, 0), 2000
			o.Beside = &Ran{Began: time.Unix(1, 0).Add(late), WallMS: 2000, Done: true}
		}
	}
	for _, c := range []struct {
		name                 string
		probe                *hostile.Probe
		column               report.Column
		twin, control, tried *Observation
		want                 report.Verdict
		why                  string
	}{
		{"denied, with everything that makes it mean something", probe(nil), process, echoes(""), connects("", hostSaw), connects("ENETUNREACH", nil), report.Contained, "denied"},
		{"the step succeeded", probe(nil), process, echoes(""), connects("", nil), connects("", nil), report.Escaped, "connect succeeded"},
		{"the program says no and the host saw it", probe(nil), process, echoes(""), connects("", nil), connects("EPERM", hostSaw), report.Escaped, "reached"},
		{"nobody gets it", probe(nil), process, echoes(""), connects("EPERM", nil), connects("EPERM", nil), report.Unknown, "bare code did not get it"},
		{"nobody gets it, for a reason that was given", probe(needy), process, echoes(""), connects("EPERM", nil), connects("EPERM", nil), report.NotApplicable, "no such device"},
		{"the twin fails", probe(nil), process, echoes("EPERM"), connects("", nil), connects("EPERM", nil), report.Unknown, "twin"},
		{"the twin was refused", probe(nil), process, &Observation{Refused: "no", RefusedFor: []tranca.Item{tranca.ItemMounts}}, connects("", nil), connects("EPERM", nil), report.NotApplicable, "refused"},
		{"no control could be made", probe(nil), process, echoes(""), &Observation{Broken: "no namespaces"}, connects("EPERM", nil), report.Unknown, "no namespaces"},
		{"the backend broke", probe(nil), process, echoes(""), connects("", nil), &Observation{Broken: "gone"}, report.Unknown, "gone"},
		{"refused for what is not promised", probe(nil), process, echoes(""), connects("", nil), &Observation{Refused: "policy", RefusedFor: []tranca.Item{tranca.ItemMounts}}, report.NotApplicable, "policy"},
		{"refused for what is promised", probe(nil), process, echoes(""), connects("", nil), &Observation{Refused: "policy", RefusedFor: []tranca.Item{tranca.ItemNetwork}}, report.Unknown, "what it promises was refused"},
		{"refused for nothing", probe(nil), process, echoes(""), connects("", nil), &Observation{Refused: "policy"}, report.Unknown, "what it promises was refused"},
		{"refused, as it promises to", probe(nil), refusing, echoes(""), connects("", nil), &Observation{Refused: "policy", RefusedFor: []tranca.Item{tranca.ItemNetwork}}, report.NotApplicable, "policy"},
		{"its interpreter could not try it", probe(nil), process, echoes(""), connects("", nil), connects("ModuleNotFoundError: No module named '_socket'", nil), report.Unknown, "connect could not be tried"},
		{"the control's interpreter could not try it", probe(needy), process, echoes(""), connects("ModuleNotFoundError: No module named '_socket'", nil), connects("EPERM", nil), report.Unknown, "was not really tried"},
		{"the control broke off", probe(needy), process, echoes(""), connects("EPERM", func(o *Observation) { o.Attempt.Done = false }), connects("EPERM", nil), report.Unknown, "was not really tried"},
		{"it could not ask the kernel", probe(func(p *hostile.Probe) { p.Attempt[0].Reach = true }), process, echoes(""), connects("", nil), connects("ModuleNotFoundError: No module named '_ctypes'", nil), report.Unknown, "could not be tried"},
		{"the control could not ask the kernel", probe(func(p *hostile.Probe) { p.Attempt[0].Reach = true }), process, echoes(""), connects("ModuleNotFoundError: No module named '_ctypes'", nil), connects("EPERM", nil), report.Unknown, "was not really tried"},
		{"it asked the kernel", probe(func(p *hostile.Probe) { p.Attempt[0].Reach = true }), process, echoes(""), connects("", nil), connects("EINVAL", nil), report.Escaped, "reached the kernel"},
		{"no kernel of its own was seen", probe(nil), gvisor, echoes(""), connects("", nil), connects("EPERM", func(o *Observation) {
			o.Findings = []world.Finding{{Oracle: world.UnseenKernel, Text: "nothing was seen"}}
		}), report.Unknown, "nothing was seen"},
		{"the neighbour starved", probe(besides), process, withNeighbour(echoes("")), connects("", nil), connects("EPERM", starves), report.Escaped, "neighbour starved"},
		{"the neighbour starves beside the twin, too", probe(besides), process, with(echoes(""), starves), connects("", nil), connects("EPERM", starves), report.Unknown, "its neighbour: connect was never done"},
		{"the neighbour was not run", probe(besides), process, withNeighbour(echoes("")), connects("", nil), connects("EPERM", nil), report.Unknown, "its neighbour was not run"},
		{"the neighbour ran at another time", probe(nil), process, echoes(""), connects("", nil), connects("EPERM", beside(3*time.Second)), report.Unknown, "hardly ran at the same time"},
		{"the neighbour ran at the same time", probe(nil), process, echoes(""), connects("", nil), connects("EPERM", beside(0)), report.Contained, "denied"},
		{"its file interface was gone", probe(collecting), process, collected("benign", true), connects("", nil), connects("EPERM", func(o *Observation) { o.Lost = "gone" }), report.Unknown, "could not be collected: gone"},
		{"nothing of the twin was collected", probe(collecting), process, collected("no such file", false), connects("", nil), connects("EPERM", nil), report.Unknown, "collected /f: no such file"},
		{"nobody counted its processors", probe(cpus), process, echoes(""), connects("", nil), connects("EPERM", func(o *Observation) { o.Attempt.CPUMS = -1 }), report.Unknown, "nobody outside counted"},
		{"it was too short to count its processors", probe(cpus), process, echoes(""), connects("", nil), connects("EPERM", nil), report.Unknown, "too short"},
		{"it got more of the processors than it may", probe(cpuTime), process, echoes(""), connects("", nil), connects("EPERM", func(o *Observation) { o.Attempt.CPUMS = 5000 }), report.Escaped, "5000 ms were used"},
		{"refused, and it ran", probe(nil), process, echoes(""), connects("", nil), &Observation{Refused: "policy", Findings: []world.Finding{{Oracle: "reached"}}}, report.Escaped, "refused, and yet"},
		{"the backend is no more", probe(nil), process, echoes(""), connects("", nil), &Observation{Broken: "unavailable"}, report.Unknown, "unavailable"},
		{"it hung", probe(nil), process, echoes(""), connects("", nil), connects("EPERM", func(o *Observation) { o.Trouble = []string{"it hung"} }), report.Failed, "hung"},
		{"it broke off", probe(nil), process, echoes(""), connects("", nil), connects("EPERM", func(o *Observation) { o.Attempt.Done = false; o.Attempt.Exit.Code = 2 }), report.Failed, "exit 2"},
		{"a kernel of its own answers", probe(kernel), gvisor, echoes(""), connects("", nil), connects("", nil), report.NotApplicable, "its own kernel"},
		{"a kernel of its own, and the host saw it", probe(kernel), gvisor, echoes(""), connects("", nil), connects("", hostSaw), report.Escaped, "reached"},
		{"limited and told", probe(memory), process, echoes(""), connects("", nil), connects("ENOMEM", func(o *Observation) { o.Attempt.Exit.Reason = tranca.EndMemory }), report.Limited, "limit:memory"},
		{"limited and not told", probe(memory), process, echoes(""), connects("", nil), connects("ENOMEM", func(o *Observation) { o.Attempt.Exit.Reason = tranca.EndSignaled }), report.Failed, "the limit memory stopped it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cell := Judge(c.probe, &c.column, NoBoundary, c.twin, c.control, c.tried)
			if cell.Verdict != c.want || !strings.Contains(cell.Why, c.why) {
				t.Errorf("%s: %s; want %s: %s", cell.Verdict, cell.Why, c.want, c.why)
			}
			if !cell.Promised {
				t.Error("the column promises it, and the cell says that it doesn't")
			}
		})
	}
}

// TestSecretsOfTheHostAreNoEvidence shows that what a program read is not
// repeated in a report: where a boundary does not hold, it is the host's own.
func TestSecretsOfTheHostAreNoEvidence(t *testing.T) {
	const secret = "API_KEY=hunter2"
	for _, do := range []string{"read", "find", "env", "list", "run", "shm"} {
		p := probe(func(p *hostile.Probe) { p.Attempt = []attempt.Step{{Do: do}} })
		o := did([]string{do}, []string{""}, func(o *Observation) { o.Attempt.Lines[0].Value = secret })
		cell := Judge(p, &report.Column{Name: "none", Kind: report.ColumnControl}, NoBoundary, o, nil, o)
		if text := cell.Why + strings.Join(cell.Evidence, " "); strings.Contains(text, "hunter2") {
			t.Errorf("%s: %s", do, text)
		}
	}
}

// TestUnproven: what got through nowhere is named beside what is contained.
func TestUnproven(t *testing.T) {
	p := probe(func(p *hostile.Probe) {
		p.Attempt = []attempt.Step{{Do: "connect", As: "one"}, {Do: "connect", As: "other"}, {Do: "syscall", As: "asked", Reach: true}}
	})
	all := []string{"one", "other", "asked"}
	control, tried := did(all, []string{"", "ENETUNREACH", "EINVAL"}, nil), did(all, []string{"EPERM", "EPERM", "EPERM"}, nil)
	cell := Judge(p, &report.Column{Name: "process", Kind: report.ColumnBackend}, NoBoundaryPython, echoes(""), control, tried)
	if cell.Verdict != report.Contained || !slices.Equal(cell.Unproven, []string{"other"}) || cell.Control != "none (Python): escaped" {
		t.Errorf("%+v", cell)
	}
}

func TestLinesOfChildrenAreNotTheStep(t *testing.T) {
	steps := []attempt.Step{{Do: "spawn", Setup: true}, {Do: "connect"}}
	out := "noise\n" + attempt.Prefix + `{"step":0,"as":"connect","ok":true}` + "\n" +
		attempt.Prefix + `{"step":1,"as":"connect","errno":"EPERM"}` + "\n" + attempt.Prefix + "{broken\n" +
		attempt.Prefix + `{"step":-1}` + "\n"
	lines, done := readLines([]byte(out))
	if len(lines) != 2 || !done {
		t.Fatalf("%v, done %v", lines, done)
	}
	if found := got(steps, lines); len(found) != 0 {
		t.Errorf("%q escaped", found)
	}
}

func FuzzLines(f *testing.F) {
	f.Add([]byte(attempt.Prefix + `{"step":0,"ok":true}` + "\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		lines, _ := readLines(out)
		if len(lines) > maxLines {
			t.Error("too many")
		}
	})
}

// TestWhatIsNotThereRefusesNothing: a backend that dies in mid-suite leaves cells
// that are unknown, not ones to which nothing applies.
func TestWhatIsNotThereRefusesNothing(t *testing.T) {
	gone := &tranca.RefusalError{Backend: "container", Unavailable: true, Problems: []tranca.Problem{{Item: tranca.ItemIsolation}}}
	asked := &tranca.RefusalError{Backend: "container", Problems: []tranca.Problem{{Item: tranca.ItemMounts}}}
	if refused(gone) || !refused(asked) {
		t.Errorf("gone: %v, asked too much: %v", refused(gone), refused(asked))
	}
}
