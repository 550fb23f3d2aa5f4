package cgroup

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"tranca"
)

func TestCreateSetsLimits(t *testing.T) {
	bothKinds(t, func(t *testing.T, tree *Tree) {
		g := create(t, tree, "limits", defaultLimits)
		agent := place{tree.at(ctlPIDs).dir, "limits.agent"}
		for _, c := range []struct {
			p          place
			v1, v2     string
			want       string
			controller string
		}{
			{g.memory.place, "memory.limit_in_bytes", "memory.max", "67108864", ctlMemory},
			{g.pids.place, "pids.max", "pids.max", "40", ctlPIDs},
			{g.cpu.place, "cpu.cfs_quota_us", "cpu.max", "100000", ctlCPU},
			{agent, "pids.max", "pids.max", "64", ctlPIDs},
		} {
			file := c.v1
			if tree.at(c.controller).v2 {
				file = c.v2
			}
			got, err := c.p.read(file)
			if err != nil {
				t.Error(err)
			}
			if got, _, _ := strings.Cut(strings.TrimSpace(got), " "); got != c.want {
				t.Errorf("%s/%s is %q, want %q", c.p, file, got, c.want)
			}
		}
	})
}

func TestJoin(t *testing.T) {
	bothKinds(t, func(t *testing.T, tree *Tree) {
		g := create(t, tree, "join", defaultLimits)
		code, agent := start(t, g.Code(), "sleep"), start(t, g.Agent(), "sleep")
		for _, c := range []struct {
			pid  int
			want string
		}{{code.Process.Pid, "/join"}, {agent.Process.Pid, "/join.agent"}} {
			text, err := os.ReadFile("/proc/" + strconv.Itoa(c.pid) + "/cgroup")
			if err != nil {
				t.Fatal(err)
			}
			if !hasController(t, string(text), ctlMemory, c.want) || !hasController(t, string(text), ctlPIDs, c.want) {
				t.Errorf("process is not in %s:\n%s", c.want, text)
			}
		}
		if s := stats(t, g); s.Processes < 1 || s.Memory == 0 {
			t.Errorf("the code's counters do not see it: %+v", s)
		}
	})
}

// hasController reports whether the group of a controller ends in suffix.
func hasController(t *testing.T, text, controller, suffix string) bool {
	t.Helper()
	all, err := parseMemberships(text)
	if err != nil {
		t.Fatal(err)
	}
	v2 := false
	for _, m := range all {
		for _, c := range m.controllers {
			if c == controller {
				return strings.HasSuffix(m.path, suffix)
			}
		}
		v2 = v2 || (m.v2() && strings.HasSuffix(m.path, suffix))
	}
	return v2
}

func TestDestroyLeavesNothing(t *testing.T) {
	bothKinds(t, func(t *testing.T, tree *Tree) {
		before := descriptors(t)
		running := tree.events != nil
		leaks := goleak.IgnoreCurrent()
		g, err := tree.Create("gone", defaultLimits)
		if err != nil {
			t.Fatal(err)
		}
		start(t, g.Code(), "forks")
		agent := start(t, g.Agent(), "sleep")
		ctx := context.Background()
		for range 2 { // the second does nothing
			if err := g.Destroy(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if alive(t, agent.Process.Pid) {
			t.Error("the agent lives")
		}
		if _, err := g.Stats(); !errors.Is(err, tranca.ErrClosed) {
			t.Errorf("Stats after Destroy: %v", err)
		}
		if err := g.Kill(ctx); err != nil {
			t.Errorf("Kill after Destroy: %v", err)
		}
		for _, h := range append(tree.v1, tree.v2) {
			if h == nil {
				continue
			}
			if names, err := subgroups(place{h.dir, "."}); err != nil || len(names) > 0 {
				t.Errorf("left in %s: %v %v", h.dir.Name(), names, err)
			}
		}
		if !running {
			return // the tree's watcher stays until the tree is closed
		}
		goleak.VerifyNone(t, leaks)
		// Two pipes of the helpers are open until the test ends.
		if after := descriptors(t); after > before+2*2 {
			t.Errorf("%d descriptors before, %d after", before, after)
		}
	})
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestManyGroupsLeakNoDescriptor(t *testing.T) {
	defer goleak.VerifyNone(t)
	tree := needTree(t, Options{})
	cycle := func() {
		g, err := tree.Create("again", defaultLimits)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Begin(); err != nil {
			t.Fatal(err)
		}
		if err := g.Destroy(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	cycle()
	before := descriptors(t)
	for range 50 {
		cycle()
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
	if err := tree.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestCreateRefuses(t *testing.T) {
	tree := needTree(t, Options{})
	for _, name := range []string{"", ".", "..", "a/b", "a.agent", "A", "a\n", strings.Repeat("x", 65)} {
		if _, err := tree.Create(name, defaultLimits); !errors.Is(err, tranca.ErrInvalid) {
			t.Errorf("name %q: %v", name, err)
		}
	}
	if _, err := tree.Create("negative", Limits{Memory: -1}); !errors.Is(err, tranca.ErrInvalid) {
		t.Errorf("negative limit: %v", err)
	}
	g := create(t, tree, "twice", defaultLimits)
	if _, err := tree.Create("twice", defaultLimits); !errors.Is(err, unix.EEXIST) {
		t.Errorf("a name that is taken: %v", err)
	}
	if _, err := g.Stats(); err != nil {
		t.Errorf("the first of that name is broken: %v", err)
	}
}

// A limit that the host can't hold is an error, and nothing of the group is
// left; so is a value that the kernel refuses half-way.
func TestCreateFailsClosed(t *testing.T) {
	tree := needTree(t, Options{})
	lame := &Tree{support: tree.support}
	lame.support.Memory = Feature{Missing: "taken away by the test"}
	if _, err := lame.Create("lame", defaultLimits); !errors.Is(err, tranca.ErrUnavailable) {
		t.Errorf("limit without a controller: %v", err)
	}
	l := defaultLimits
	l.Processes = 1 << 60 // more than the kernel takes
	if _, err := tree.Create("refused", l); !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ERANGE) {
		t.Errorf("pids.max of 2^60: %v", err)
	}
	for _, h := range append(tree.v1, tree.v2) {
		if h == nil {
			continue
		}
		if names, err := subgroups(place{h.dir, "."}); err != nil || len(names) > 0 {
			t.Errorf("left in %s: %v %v", h.dir.Name(), names, err)
		}
	}
}

// The bound is the kernel's: the code can't have had more than its share,
// however busy the host is.
func TestShareOfCPUs(t *testing.T) {
	bothKinds(t, func(t *testing.T, tree *Tree) {
		l := defaultLimits
		l.MilliCPUs = 100
		g := create(t, tree, "share", l)
		begin := time.Now()
		start(t, g.Code(), "spin")
		eventually(t, "100 ms of CPU time", func() bool {
			used, err := g.CPUTime()
			if err != nil {
				t.Fatal(err)
			}
			return used > 100*time.Millisecond
		})
		wall := time.Since(begin)
		// One period's quota on each CPU can be used ahead.
		if used := stats(t, g).CPUTime; used > wall/10+40*time.Millisecond {
			t.Errorf("%v of CPU time in %v at a tenth of a CPU", used, wall)
		}
		if err := g.Begin(); err != nil {
			t.Fatal(err)
		}
		if used, err := g.CPUTime(); err != nil || used > 60*time.Millisecond {
			t.Errorf("%v of CPU time after Begin, %v", used, err)
		}
	})
}
