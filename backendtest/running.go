package backendtest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"tranca"
	"tranca/internal/policy"
)

func reportCases() []testCase {
	return []testCase{
		{"Probe", testProbe, nil},
		{"Enforcement", testEnforcement, nil},
		{"AttachUnknown", testAttachUnknown, nil},
	}
}

func testProbe(s *suite) {
	first, err := s.backend.Probe(s.context())
	if err != nil {
		s.Fatal(err)
	}
	if first.Backend != s.backend.Name() || !slices.Contains(tranca.Levels(), first.Level) {
		s.Errorf("report of %q at level %s", first.Backend, first.Level)
	}
	seen := map[tranca.Item]bool{}
	for _, g := range first.Guarantees {
		if seen[g.Item] || !slices.Contains(tranca.Items(), g.Item) {
			s.Errorf("item %q is listed twice or unknown", g.Item)
		}
		seen[g.Item] = true
		if g.Held && g.Mechanism == "" || !g.Held && g.Missing == "" {
			s.Errorf("item %q: held %t without a mechanism or what is missing", g.Item, g.Held)
		}
	}
	again, err := s.backend.Probe(s.context())
	if err != nil {
		s.Fatal(err)
	}
	for _, item := range tranca.Items() {
		if first.Holds(item) != again.Holds(item) {
			s.Errorf("two probes differ in %s", item)
		}
	}
}

// mayBeWaived reports whether the operator waived an item: by its name, or by
// naming the level that never promises it.
func (s *suite) mayBeWaived(item tranca.Item) bool {
	p := s.policy()
	return p.Waives(item) ||
		(p.Floor == tranca.LevelSubprocess && !slices.Contains(policy.Required(tranca.LevelSubprocess), item))
}

func testEnforcement(s *suite) {
	b := s.create()
	all := b.Enforcement()
	order := tranca.Items()
	last := -1
	for _, e := range all {
		at := slices.Index(order, e.Item)
		if at <= last {
			s.Errorf("item %q is unknown, doubled or out of order", e.Item)
		}
		last = at
		if e.Status == tranca.StatusWaived && !s.mayBeWaived(e.Item) {
			s.Errorf("item %q is waived, and the policy does not waive it", e.Item)
		}
		if e.Mechanism == "" {
			s.Errorf("item %q has no mechanism", e.Item)
		}
	}
	if !slices.ContainsFunc(all, func(e tranca.Enforcement) bool { return e.Item == tranca.ItemIsolation }) {
		s.Error("the statement does not say what the boundary is")
	}
	all[0].Mechanism = "changed"
	if b.Enforcement()[0].Mechanism == "changed" {
		s.Error("the statement can be changed from outside")
	}
}

func testAttachUnknown(s *suite) {
	if _, err := s.backend.Attach(s.context(), tranca.NewID()); !errors.Is(err, tranca.ErrGone) && !errors.Is(err, tranca.ErrNotFound) {
		s.Errorf("attaching to a sandbox that never was: %v", err)
	}
}

func runningCases() []testCase {
	return []testCase{
		{"ExitCodes", testExitCodes, nil},
		{"Signals", testSignals, nil},
		{"SignalSent", testSignalSent, nil},
		{"SignalGroup", testSignalGroup, nil},
		{"Arguments", testArguments, nil},
		{"Environment", testEnvironment, nil},
		{"Folder", testFolder, nil},
		{"OwnFolder", testOwnFolder, []Ability{OwnWorkdir}},
		{"PathLookup", testPathLookup, nil},
		{"NotFound", testNotFound, nil},
		{"BadCommands", testBadCommands, nil},
		{"WaitAgain", testWaitAgain, nil},
		{"StartCancelled", testStartCancelled, nil},
	}
}

func testExitCodes(s *suite) {
	b := s.create()
	for _, code := range []string{"0", "3", "137", "255"} {
		exit, _ := b.run("exit", code)
		if want := map[string]int{"0": 0, "3": 3, "137": 137, "255": 255}[code]; exit != exited(want) {
			s.Errorf("exit %s: %+v", code, exit)
		}
	}
}

func testSignals(s *suite) {
	b := s.create()
	if exit, _ := b.run("raise", "9"); exit != signaled(9) {
		s.Errorf("killed by itself with 9: %+v", exit)
	}
	if exit, _ := b.run("raise", "15"); exit != signaled(15) {
		s.Errorf("killed by itself with 15: %+v", exit)
	}
	if exit, _ := b.run("segv"); exit != signaled(11) {
		s.Errorf("segmentation fault: %+v", exit)
	}
}

func testSignalSent(s *suite) {
	b := s.create()
	r := b.start(s.command("deaf"))
	r.says("deaf")
	if r.PID() <= 0 {
		s.Errorf("process id %d", r.PID())
	}
	for _, sig := range []tranca.Signal{tranca.SIGTERM, tranca.SIGINT, tranca.SIGHUP} {
		if err := r.Signal(s.context(), sig); err != nil {
			s.Errorf("signal %d: %v", sig, err)
		}
	}
	short, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := r.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
		s.Errorf("a program that ignores signals ended, or Wait ignores its context: %v", err)
	}
	if err := r.Signal(s.context(), tranca.SIGKILL); err != nil {
		s.Error(err)
	}
	if exit := r.wait(); exit != signaled(9) {
		s.Errorf("after SIGKILL: %+v", exit)
	}
	if err := r.Signal(s.context(), tranca.SIGKILL); !errors.Is(err, tranca.ErrGone) {
		s.Errorf("a signal to a program that has ended: %v", err)
	}
}

func testSignalGroup(s *suite) {
	r := s.create().start(s.command("sleep", "3600"))
	if err := r.SignalGroup(s.context(), tranca.SIGTERM); err != nil {
		s.Fatal(err)
	}
	if exit := r.wait(); exit != signaled(15) {
		s.Errorf("after SIGTERM to the group: %+v", exit)
	}
}

func testArguments(s *suite) {
	args := []string{"", "-x", "--", "$(id)", "a b", "'\"\\", "new\nline", "ü", "bad\xff\xfebytes", "*"}
	if out := s.create().must("args", args...); out != strings.Join(args, "\x00") {
		s.Errorf("arguments arrived as %q", out)
	}
}

func testEnvironment(s *suite) {
	s.Setenv("TRANCA_TEST_LEAK", "leaked")
	b := s.create(func(p *tranca.Policy) { p.Env = map[string]string{"GIVEN": "by policy"} })
	r := b.start(s.command("env"), func(c *tranca.Command) { c.Env = map[string]string{"ADDED": "by command"} })
	if exit := r.wait(); !exit.Success() {
		s.Fatal(exit)
	}
	got := map[string]string{}
	for line := range strings.SplitSeq(strings.TrimSuffix(r.out.String(), "\x00"), "\x00") {
		name, value, _ := strings.Cut(line, "=")
		got[name] = value
	}
	if got["GIVEN"] != "by policy" || got["ADDED"] != "by command" {
		s.Errorf("declared variables are missing: %q", got)
	}
	for name := range got {
		if !slices.Contains([]string{"GIVEN", "ADDED", "HOME", "PATH", "USER", "LOGNAME", "LANG", "PWD", "TMPDIR"}, name) &&
			!slices.Contains(s.expect.Environment, name) {
			s.Errorf("%s was not declared", name)
		}
	}
}

func testFolder(s *suite) {
	b := s.create()
	if _, err := b.Files().MakeDir(s.context(), "sub"); err != nil {
		s.Fatal(err)
	}
	home := b.must("pwd")
	r := b.start(s.command("pwd"), func(c *tranca.Command) { c.Dir = "sub" })
	if exit := r.wait(); !exit.Success() || r.out.String() != home+"/sub" {
		s.Errorf("%s, in %q and not in %s/sub", exit, r.out.String(), home)
	}
	_, err := b.Start(s.context(), tranca.Command{Args: s.command("pwd"), Dir: "missing"})
	if !errors.Is(err, tranca.ErrNotFound) && !errors.Is(err, tranca.ErrInvalid) {
		s.Errorf("a missing folder: %v", err)
	}
}

func testOwnFolder(s *suite) {
	if dir := s.create().must("pwd"); dir != s.policy().Workdir {
		s.Errorf("it starts in %q and not in the policy's %q", dir, s.policy().Workdir)
	}
}

func testPathLookup(s *suite) {
	argv := s.command("exit", "4")
	argv[0] = argv[0][strings.LastIndex(argv[0], "/")+1:]
	if exit := s.create().start(argv).wait(); exit != exited(4) {
		s.Errorf("%s found by its name: %+v", argv[0], exit)
	}
}

func testNotFound(s *suite) {
	b := s.create()
	for _, name := range []string{"/nowhere/to/be/found", "not-a-program"} {
		if _, err := b.Start(s.context(), tranca.Command{Args: []string{name}}); !errors.Is(err, tranca.ErrNotFound) {
			s.Errorf("%s: %v", name, err)
		}
	}
	if exit, _ := b.run("exit", "0"); exit != exited(0) {
		s.Errorf("after it: %+v", exit)
	}
}

func testBadCommands(s *suite) {
	b := s.create()
	for name, cmd := range map[string]tranca.Command{
		"no program":      {},
		"NUL in argument": {Args: append(s.command("args"), "a\x00b")},
		"NUL in variable": {Args: s.command("env"), Env: map[string]string{"A": "x\x00y"}},
		"= in a name":     {Args: s.command("env"), Env: map[string]string{"A=B": "x"}},
		"NUL in folder":   {Args: s.command("pwd"), Dir: "a\x00b"},
	} {
		if _, err := b.Start(s.context(), cmd); !errors.Is(err, tranca.ErrInvalid) {
			s.Errorf("%s: %v", name, err)
		}
	}
}

func testWaitAgain(s *suite) {
	r := s.create().start(s.command("exit", "7"))
	for range 3 {
		if exit := r.wait(); exit != exited(7) {
			s.Errorf("%+v", exit)
		}
	}
}

func testStartCancelled(s *suite) {
	b := s.create()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := b.Start(ctx, tranca.Command{Args: s.command("sleep", "3600")}); err == nil {
		s.Error("a program was started for a caller who has gone")
	}
	ctx, cancel = context.WithCancel(context.Background())
	r := &running{box: b, out: &buffer{}, err: &buffer{}}
	p, err := b.Start(ctx, tranca.Command{Args: s.command("exit", "5"), Stdout: r.out})
	if err != nil {
		s.Fatal(err)
	}
	cancel() // it bounds the start, not the program
	r.Process = p
	if exit := r.wait(); exit != exited(5) {
		s.Errorf("%+v", exit)
	}
}
