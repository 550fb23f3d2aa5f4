package backendtest

import (
	"errors"
	"time"

	"tranca"
)

func severalCases() []testCase {
	several := []Ability{RunsSeveral}
	return []testCase{
		{"Several/Apart", testSeveralApart, several},
		{"Several/Kill", testSeveralKill, several},
		{"Several/Memory", testSeveralMemory, []Ability{RunsSeveral, EndsByMemory}},
		{"Several/CPU", testSeveralCPU, []Ability{RunsSeveral, EndsByCPU}},
		{"Several/SumOfCPU", testSumOfCPU, []Ability{RunsSeveral, EndsByCPU, BoundsTreeCPU}},
		{"Several/Fresh", testSeveralFresh, []Ability{RunsSeveral, EndsByMemory, OutlivesMemory}},
		{"Several/StartUnderLimit", testStartUnderLimit, []Ability{RunsSeveral, EndsByMemory, OutlivesMemory}},
		{"Several/EndGroup", testEndGroup, several},
		{"Several/Bound", testSeveralBound, several},
	}
}

// deaf starts n programs that stay until they are killed.
func (b *box) deaf(n int) []*running {
	b.Helper()
	all := make([]*running, n)
	for i := range all {
		all[i] = b.start(b.command("deaf"))
	}
	for _, r := range all {
		r.says("deaf")
	}
	return all
}

func testSeveralApart(s *suite) {
	b := s.create()
	all := b.deaf(2)
	if exit, out := b.run("print", "beside", ""); exit != exited(0) || out != "beside" {
		s.Errorf("beside others: %+v, %q", exit, out)
	}
	if exit, _ := b.run("exit", "6"); exit != exited(6) {
		s.Errorf("beside others: %+v", exit)
	}
	if all[0].PID() == all[1].PID() {
		s.Errorf("both have process id %d", all[0].PID())
	}
	for _, r := range all {
		if err := r.SignalGroup(s.context(), tranca.SIGKILL); err != nil {
			s.Error(err)
		}
		if exit := r.wait(); exit != signaled(9) {
			s.Errorf("%+v", exit)
		}
	}
}

func testSeveralKill(s *suite) {
	b := s.create()
	all := b.deaf(5)
	before, _ := b.run("exit", "3")
	if err := b.Kill(s.context()); err != nil {
		s.Fatal(err)
	}
	for _, r := range all {
		s.killed(r.wait())
	}
	if before != exited(3) {
		s.Errorf("what had ended before: %+v", before)
	}
	b.must("exit", "0")
}

// limitEnds runs a program that passes a limit beside others, and looks for
// the reason in the ends of all.
func (b *box) limitEnds(reason tranca.Reason, program string, args ...string) {
	b.Helper()
	all := b.deaf(3)
	before, _ := b.run("exit", "3")
	exit, _ := b.run(program, args...)
	b.ends(exit, reason)
	for _, r := range all {
		b.ends(r.wait(), reason)
	}
	if before != exited(3) {
		b.Errorf("what had ended before the limit: %+v", before)
	}
	if reason == tranca.EndMemory && b.lacks(OutlivesMemory) {
		_, err := b.Start(b.context(), tranca.Command{Args: b.command("exit", "0")})
		b.class("a start in a sandbox that died of its memory limit", err, tranca.ErrGone)
		return
	}
	b.must("exit", "0")
}

func testSeveralMemory(s *suite) {
	s.create(memory(128<<20)).limitEnds(tranca.EndMemory, "alloc", "268435456")
}

func testSeveralCPU(s *suite) {
	s.create(cpuTime(s.scale(time.Second))).limitEnds(tranca.EndCPU, "spin")
}

// testSumOfCPU: two programs, neither of which passes the limit alone.
func testSumOfCPU(s *suite) {
	b := s.create(cpuTime(s.scale(time.Second)))
	for _, r := range []*running{b.start(s.command("spin")), b.start(s.command("spin"))} {
		s.ends(r.wait(), tranca.EndCPU)
	}
}

// testSeveralFresh: the counters are fresh only after all have ended.
func testSeveralFresh(s *suite) {
	b := s.create(memory(128 << 20))
	all := b.deaf(1)
	exit, _ := b.run("alloc", "268435456")
	s.ends(exit, tranca.EndMemory)
	s.ends(all[0].wait(), tranca.EndMemory)
	if exit, _ := b.run("raise", "9"); exit != signaled(9) {
		s.Errorf("a kill that no limit sent, after one that a limit did: %+v", exit)
	}
}

// testStartUnderLimit starts programs while a limit ends others: each either
// ends with them or runs in the sandbox when it is idle again.
func testStartUnderLimit(s *suite) {
	b := s.create(memory(128 << 20))
	big := b.start(s.command("alloc", "268435456"))
	var after []*running
	for range 8 {
		after = append(after, b.start(s.command("exit", "5")))
	}
	s.ends(big.wait(), tranca.EndMemory)
	for _, r := range after {
		if exit := r.wait(); exit != exited(5) && exit.Reason != tranca.EndMemory {
			s.Errorf("started meanwhile: %+v", exit)
		}
	}
	if exit, _ := b.run("exit", "5"); exit != exited(5) {
		s.Errorf("started afterwards: %+v", exit)
	}
}

// testSeveralBound: there is a bound on programs at once, and it is told.
func testSeveralBound(s *suite) {
	const most = 300
	b := s.create(func(p *tranca.Policy) { p.Limits.Processes, p.Limits.Memory = 2*most, 4<<30 })
	started := 0
	for ; started < most; started++ {
		_, err := b.Start(s.context(), tranca.Command{Args: s.command("sleep", "3600")})
		if errors.Is(err, tranca.ErrBusy) {
			break
		}
		if err != nil {
			s.Fatalf("program %d: %v", started, err)
		}
	}
	if started < 2 || started == most {
		s.Errorf("%d programs run at once", started)
	}
	if err := b.Kill(s.context()); err != nil {
		s.Fatal(err)
	}
	b.must("exit", "0")
}

// testEndGroup: what a program leaves in its process group dies with it where
// that was asked for, and only then.
func testEndGroup(s *suite) {
	b := s.create()
	b.deaf(1)
	for _, end := range []bool{false, true} {
		r := b.start(b.command("leave", "heart"), func(c *tranca.Command) { c.EndGroup = end })
		if exit := r.wait(); exit != exited(0) {
			s.Fatalf("%+v", exit)
		}
		beats := func() string {
			text, err := b.readFrom("heart", 0)
			if err != nil {
				s.Error(err)
			}
			return text
		}
		if !end {
			before := beats()
			s.eventually("it beats on", func() bool { return beats() != before })
			if err := b.Kill(s.context()); err != nil {
				s.Fatal(err)
			}
			b.deaf(1)
			continue
		}
		time.Sleep(s.scale(50 * time.Millisecond)) // a write that was under way
		before := beats()
		time.Sleep(s.scale(200 * time.Millisecond))
		if after := beats(); after != before {
			s.Errorf("it beats on after its group was ended: %q, then %q", before, after)
		}
	}
}
