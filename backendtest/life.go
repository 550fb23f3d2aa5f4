package backendtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"tranca"
)

func lifeCases() []testCase {
	return []testCase{
		{"Kill/Tree", testKillTree, nil},
		{"Kill/Bomb", testKillBomb, []Ability{BoundsProcesses, KillsTree}},
		{"Kill/Daemon", testKillDaemon, []Ability{KillsTree}},
		{"Kill/Idle", testKillIdle, nil},
		{"Close/Twice", testCloseTwice, nil},
		{"Close/Running", testCloseRunning, nil},
		{"Close/Then", testAfterClose, nil},
		{"Create/Cancelled", testCreateCancelled, nil},
		{"Create/CancelledMidway", testCreateCancelledMidway, nil},
		{"Create/Many", testMany, nil},
		{"NothingLeft", testNothingLeft, nil},
		{"Apart", testSandboxesApart, nil},
	}
}

func testKillTree(s *suite) {
	b := s.create()
	r := b.start(s.command("deaf"))
	r.says("deaf")
	if err := b.Kill(s.context()); err != nil {
		s.Fatal(err)
	}
	s.killed(r.wait())
	b.must("exit", "0") // it can be used again
}

// killed fails the test where an end is not that of a program that its owner
// killed.
func (s *suite) killed(exit tranca.Exit) {
	s.Helper()
	if exit.Code != -1 || exit != signaled(9) && exit.Reason != tranca.EndClosed {
		s.Errorf("killed: %+v", exit)
	}
}

func testKillBomb(s *suite) {
	b := s.create()
	r := b.start(s.command("bomb"))
	time.Sleep(s.scale(300 * time.Millisecond))
	s.returns("killing a fork bomb", func() {
		if err := b.Kill(s.context()); err != nil {
			s.Error(err)
		}
	})
	s.killed(r.wait())
	b.must("exit", "0")
}

func testKillDaemon(s *suite) {
	b := s.create()
	b.must("beat", "heart")
	s.eventually("the daemon beats", func() bool {
		text, err := b.readFrom("heart", 0)
		n, _ := strconv.Atoi(text)
		return err == nil && n > 2
	})
	if err := b.Kill(s.context()); err != nil {
		s.Fatal(err)
	}
	before, err := b.readFrom("heart", 0)
	if err != nil {
		s.Fatal(err)
	}
	time.Sleep(s.scale(200 * time.Millisecond))
	if after, err := b.readFrom("heart", 0); err != nil || after != before {
		s.Errorf("it beats after Kill: %q, then %q (%v)", before, after, err)
	}
}

func testKillIdle(s *suite) {
	b := s.create()
	for range 2 {
		if err := b.Kill(s.context()); err != nil {
			s.Error(err)
		}
	}
	b.must("exit", "0")
}

func testCloseTwice(s *suite) {
	b := s.create()
	for range 3 {
		if err := b.Close(s.context()); err != nil {
			s.Error(err)
		}
	}
}

func testCloseRunning(s *suite) {
	b := s.create()
	r := b.start(s.command("deaf"))
	r.says("deaf")
	s.returns("closing a sandbox in which something runs", func() {
		if err := b.Close(s.context()); err != nil {
			s.Error(err)
		}
	})
	s.returns("Wait after Close", func() {
		exit, err := r.Wait(r.context())
		if err == nil && exit.Reason == tranca.EndExited {
			s.Errorf("a program that was destroyed ended with %+v", exit)
		}
	})
}

func testAfterClose(s *suite) {
	b := s.create()
	if err := b.Close(s.context()); err != nil {
		s.Fatal(err)
	}
	_, err := b.Start(s.context(), tranca.Command{Args: s.command("exit", "0")})
	s.class("Start after Close", err, tranca.ErrGone, tranca.ErrClosed)
}

func testCreateCancelled(s *suite) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	sb, err := s.backend.Create(ctx, tranca.Spec{ID: tranca.NewID(), Policy: s.policy()})
	if err == nil {
		s.Error("a sandbox was made for a caller who has gone")
		_ = sb.Close(s.context())
	}
}

// testCreateCancelledMidway lets the caller go at many moments; whatever
// comes of it, nothing may be left.
func testCreateCancelledMidway(s *suite) {
	before := s.warm()
	for i := range 30 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i)*time.Millisecond)
		sb, err := s.backend.Create(ctx, tranca.Spec{ID: tranca.NewID(), Policy: s.policy()})
		cancel()
		if err == nil {
			if err := sb.Close(s.context()); err != nil {
				s.Error(err)
			}
		}
	}
	s.unchanged(before)
	s.create().must("exit", "0")
}

func testMany(s *suite) {
	const many = 16
	boxes := make([]*box, many)
	var all sync.WaitGroup
	errs := make([]error, many)
	for i := range boxes {
		all.Go(func() {
			sb, err := s.backend.Create(s.context(), tranca.Spec{ID: tranca.NewID(), Policy: s.policy()})
			if err != nil {
				errs[i] = err
				return
			}
			b := &box{s, sb}
			errs[i] = b.answers(strconv.Itoa(i))
			if err := sb.Close(s.context()); err != nil {
				errs[i] = err
			}
		})
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			s.Errorf("sandbox %d: %v", i, err)
		}
	}
}

// answers runs a program that says a text, and returns what went wrong. It is
// for goroutines, where a test can't be ended.
func (b *box) answers(text string) error {
	out := &buffer{}
	p, err := b.Start(b.context(), tranca.Command{Args: b.command("print", text, ""), Stdout: out})
	if err != nil {
		return err
	}
	exit, err := p.Wait(b.context())
	if err != nil || !exit.Success() || out.String() != text {
		return errors.Join(fmt.Errorf("%s, %q", exit, out.String()), err)
	}
	return nil
}

func testNothingLeft(s *suite) {
	if _, err := s.backend.Probe(s.context()); err != nil {
		s.Fatal(err)
	}
	before := s.warm()
	for range 5 {
		b := s.create()
		b.start(s.command("deaf"))
		b.write("file", "x")
		if _, err := s.backend.Probe(s.context()); err != nil {
			s.Error(err)
		}
		if err := b.Close(s.context()); err != nil {
			s.Error(err)
		}
	}
	s.unchanged(before)
}

// state is what this process has on the host: a backend may keep something of
// its own, but nothing for each sandbox.
type state struct{ files, children, mounts int }

func ownState() state {
	var st state
	entries, _ := os.ReadDir("/proc/self/fd")
	st.files = len(entries)
	tasks, _ := os.ReadDir("/proc/self/task")
	for _, task := range tasks {
		list, _ := os.ReadFile("/proc/self/task/" + task.Name() + "/children")
		st.children += len(strings.Fields(string(list)))
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	st.mounts = strings.Count(string(mounts), "\n")
	return st
}

// warm lets the backend make whatever it makes once or ahead, and returns what
// this process has then.
func (s *suite) warm() state {
	s.Helper()
	for range 3 {
		b := s.create()
		b.must("exit", "0")
		if err := b.Close(s.context()); err != nil {
			s.Fatal(err)
		}
	}
	last := ownState()
	for range 50 {
		time.Sleep(100 * time.Millisecond)
		now := ownState()
		if now == last {
			break
		}
		last = now
	}
	return last
}

func (s *suite) unchanged(before state) {
	s.Helper()
	var now state
	for end := time.Now().Add(s.scale(10 * time.Second)); ; time.Sleep(10 * time.Millisecond) {
		now = ownState()
		if now.files <= before.files && now.children <= before.children && now.mounts <= before.mounts {
			return
		}
		if time.Now().After(end) {
			s.Fatalf("this process had %+v, and has %+v", before, now)
		}
	}
}

func testSandboxesApart(s *suite) {
	one, other := s.create(), s.create()
	one.write("token", "secret")
	if exit, out := other.run("read", "token"); exit.Success() {
		s.Errorf("another sandbox reads %q", out)
	}
	one.reads("token", "secret")
}
