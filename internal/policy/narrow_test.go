package policy

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"tranca"
)

// TestNarrowNeverWidens shows over generated policies and requests that the
// result is within the policy, valid, and the policy itself left alone.
func TestNarrowNeverWidens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, n := validPolicy(t), anyNarrowing(t)
		before := Digest(p)
		got, _ := Narrow(p, n)
		if !Within(got, p) {
			t.Fatalf("wider (-policy +narrowed):\n%s", cmp.Diff(p, got))
		}
		if bad := Validate(got); len(bad) > 0 {
			t.Fatalf("the result is not valid: %v", bad)
		}
		if Digest(p) != before {
			t.Fatal("the policy was changed")
		}
		if got.Source != p.Source {
			t.Fatalf("source %q became %q", p.Source, got.Source)
		}
	})
}

// TestNarrowGivesWhatWasAsked shows that a request without a problem gets all
// that it asked, so that "never widens" is not "never does anything".
func TestNarrowGivesWhatWasAsked(t *testing.T) {
	asked := 0
	rapid.Check(t, func(t *rapid.T) {
		p, n := validPolicy(t), anyNarrowing(t)
		got, problems := Narrow(p, n)
		refused := map[tranca.Item]bool{}
		for _, problem := range problems {
			refused[problem.Item] = true
		}
		for _, f := range table() {
			if f.ask == nil {
				continue
			}
			want, have, ask := number(f.ref(&got)), number(f.ref(&p)), number(f.ask(&n))
			switch {
			case ask == 0 || refused[f.item]:
				if want != have && f.path != "limits.disk.size" {
					t.Fatalf("%s: %d became %d unasked", f.path, have, want)
				}
			case ask < f.min || ask > have:
				t.Fatalf("%s: %d of %d asked, and no problem", f.path, ask, have)
			case want != ask && f.path != "limits.disk.size":
				t.Fatalf("%s: asked %d, got %d", f.path, ask, want)
			default:
				asked++
			}
		}
		if n.Floor > p.Floor && !refused[tranca.ItemIsolation] && got.Floor != n.Floor {
			t.Fatalf("floor: asked %v, got %v", n.Floor, got.Floor)
		}
		for _, m := range got.Mounts {
			if slices.Contains(n.DropMounts, m.Target) || ((m.Writable || m.Cow) && slices.Contains(n.ReadOnly, m.Target)) {
				t.Fatalf("mount %+v is still there or writable", m)
			}
		}
	})
	if asked == 0 {
		t.Error("no limit was ever lowered")
	}
}

func TestNarrowTwiceIsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, n := validPolicy(t), anyNarrowing(t)
		once, _ := Narrow(p, n)
		twice, _ := Narrow(once, n)
		if diff := cmp.Diff(once, twice); diff != "" {
			t.Fatalf("the second time changed (-once +twice):\n%s", diff)
		}
	})
}

// TestNarrowOrder shows that two requests meet in the same policy in either
// order. Where the documents except something, both orders must say so.
func TestNarrowOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, a, b := validPolicy(t), anyNarrowing(t), anyNarrowing(t)
		ab, inA := narrowBoth(p, a, b)
		ba, inB := narrowBoth(p, b, a)
		excepted := []cmp.Option{cmpopts.IgnoreFields(tranca.Policy{}, "Workdir")}
		if conflict(inA, inB, tranca.ItemIsolation) {
			excepted = append(excepted, cmpopts.IgnoreFields(tranca.Policy{}, "Floor", "Backend"))
		}
		if conflict(inA, inB, tranca.ItemEnvironment) {
			excepted = append(excepted, cmpopts.IgnoreFields(tranca.Policy{}, "Env"))
		}
		if diff := cmp.Diff(ab, ba, excepted...); diff != "" {
			t.Fatalf("the order counts (-a,b +b,a):\n%s", diff)
		}
	})
}

func narrowBoth(p tranca.Policy, a, b tranca.Narrowing) (tranca.Policy, []tranca.Problem) {
	first, one := Narrow(p, a)
	second, two := Narrow(first, b)
	return second, append(one, two...)
}

func conflict(a, b []tranca.Problem, item tranca.Item) bool {
	has := func(p tranca.Problem) bool { return p.Item == item }
	return slices.ContainsFunc(a, has) && slices.ContainsFunc(b, has)
}

// TestNarrowProblems holds what is said when a request asks for more.
func TestNarrowProblems(t *testing.T) {
	p := atProcess()
	p.Env = map[string]string{"A": "1"}
	p.Mounts = []tranca.Mount{{Source: "/s", Target: "/t", Writable: true}}
	many := make([]string, maxMounts+1)
	for _, c := range []struct {
		name string
		n    tranca.Narrowing
		want tranca.Problem
	}{
		{"more memory", tranca.Narrowing{Memory: gib}, tranca.Problem{Item: tranca.ItemMemory, Asked: "limits.memory 1GiB", Missing: "the policy gives 256MiB", Mend: "limits.memory: 1GiB"}},
		{"more than the most", tranca.Narrowing{Wall: 25 * time.Hour}, tranca.Problem{Item: tranca.ItemWall, Asked: "limits.wall 25h", Missing: "the policy gives 30s"}},
		{"negative", tranca.Narrowing{Processes: -1}, tranca.Problem{Item: tranca.ItemPIDs, Asked: "limits.processes -1", Missing: "a limit is more than 0"}},
		{"too little", tranca.Narrowing{Memory: 1}, tranca.Problem{Item: tranca.ItemMemory, Asked: "limits.memory 1B", Missing: "the least that works is 8MiB"}},
		{"lower floor", tranca.Narrowing{Floor: tranca.LevelSubprocess}, tranca.Problem{Item: tranca.ItemIsolation, Asked: "isolation subprocess", Missing: "the policy's floor is process", Mend: "floor: subprocess"}},
		{"no floor", tranca.Narrowing{Floor: 9}, tranca.Problem{Item: tranca.ItemIsolation, Asked: "isolation level(9)", Missing: "there is no such level"}},
		{"subprocess", tranca.Narrowing{Backend: "subprocess"}, tranca.Problem{Item: tranca.ItemIsolation, Asked: "backend subprocess", Missing: "the policy's floor is process, and subprocess is below it", Mend: "floor: subprocess"}},
		{"bad backend", tranca.Narrowing{Backend: "a\nb"}, tranca.Problem{Item: tranca.ItemIsolation, Asked: `backend "a\nb"`, Missing: "that is no name of a backend"}},
		{"other value", tranca.Narrowing{Env: map[string]string{"A": "2"}}, tranca.Problem{Item: tranca.ItemEnvironment, Asked: "variable A", Missing: "the policy sets it to another value", Mend: "leave A out of environment in the policy"}},
		{"NUL", tranca.Narrowing{Env: map[string]string{"B": "\x00"}}, tranca.Problem{Item: tranca.ItemEnvironment, Asked: "variable B", Missing: "the value holds a NUL"}},
		{"no such mount", tranca.Narrowing{DropMounts: []string{"/x"}}, tranca.Problem{Item: tranca.ItemMounts, Asked: "no mount /x", Missing: "the policy has no mount at /x"}},
		{"no such mount to read", tranca.Narrowing{ReadOnly: []string{"/x"}}, tranca.Problem{Item: tranca.ItemMounts, Asked: "mount /x read-only", Missing: "the policy has no mount at /x"}},
		{"many mounts", tranca.Narrowing{ReadOnly: many}, tranca.Problem{Item: tranca.ItemMounts, Asked: "65 mounts less", Missing: "a policy has at most 64"}},
		{"workdir", tranca.Narrowing{Workdir: "../x"}, tranca.Problem{Item: tranca.ItemFiles, Asked: "workdir ../x", Missing: `path "../x" is not absolute`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, problems := Narrow(p, c.n)
			if diff := cmp.Diff([]tranca.Problem{c.want}, problems); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(p, got); diff != "" {
				t.Errorf("the policy changed:\n%s", diff)
			}
		})
	}
}

// TestNarrowNamedBackend shows that the policy's backend stays.
func TestNarrowNamedBackend(t *testing.T) {
	p := Default()
	p.Backend = "process"
	if _, problems := Narrow(p, tranca.Narrowing{Backend: "other"}); len(problems) != 1 || problems[0].Mend != "backend: other" {
		t.Errorf("got %v", problems)
	}
	p.Floor, p.Backend = tranca.LevelSubprocess, "subprocess"
	got, problems := Narrow(p, tranca.Narrowing{Floor: tranca.LevelProcess})
	if len(problems) != 1 || got.Floor != tranca.LevelSubprocess {
		t.Errorf("a floor above the named backend: got %v, %v", got.Floor, problems)
	}
}

// TestNarrowManyVariables shows that a flood is one problem.
func TestNarrowManyVariables(t *testing.T) {
	env := map[string]string{}
	for i := range 10_000 {
		env["A"+strings.Repeat("x", i%50)+FormatCPUs(int64(i*1000))] = ""
	}
	if _, problems := Narrow(Default(), tranca.Narrowing{Env: env}); len(problems) != 1 {
		t.Errorf("got %d problems", len(problems))
	}
}

// TestNarrowDisk shows that a space in memory follows the memory down.
func TestNarrowDisk(t *testing.T) {
	got, problems := Narrow(Default(), tranca.Narrowing{Memory: 64 * mib})
	if len(problems) > 0 || got.Limits.Disk.Size != 32*mib {
		t.Errorf("got %s, %v; want 32MiB", FormatSize(got.Limits.Disk.Size), problems)
	}
	p := Default()
	p.Limits.Disk.Backing = tranca.BackingFile
	got, problems = Narrow(p, tranca.Narrowing{Memory: 64 * mib})
	if len(problems) > 0 || got.Limits.Disk.Size != 64*mib {
		t.Errorf("a space on disk: got %s, %v; want 64MiB", FormatSize(got.Limits.Disk.Size), problems)
	}
}
