package seccomp

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"tranca/internal/require"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestNumbers holds the table against the numbers that x/sys took from the
// kernel's headers: each call that is there is in exactly one group.
func TestNumbers(t *testing.T) {
	dir := sysDir(t)
	for _, a := range []Arch{AMD64, ARM64} {
		want := headerNumbers(t, filepath.Join(dir, "zsysnum_linux_"+string(a)+".go"))
		delete(want, "arch_specific_syscall") // the start of a range, not a call
		got := map[string]int{}
		for _, g := range groups() {
			for _, c := range g.calls {
				if _, twice := got[c.name]; twice {
					t.Errorf("%s is in the table twice", c.name)
				}
				if n := c.number(a); n != none {
					got[c.name] = n
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: table differs from x/sys (-x/sys +table):\n%s", a, diff)
		}
	}
}

func sysDir(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "golang.org/x/sys/unix").Output()
	require.Check(t, "go", err == nil, fmt.Sprintf("go list: %v", err))
	return strings.TrimSpace(string(out))
}

func headerNumbers(t *testing.T, file string) map[string]int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for _, m := range regexp.MustCompile(`\bSYS_(\w+)\s*=\s*(\d+)`).FindAllStringSubmatch(string(text), -1) {
		n, err := strconv.Atoi(m[2])
		if err != nil {
			t.Fatal(err)
		}
		out[strings.ToLower(m[1])] = n
	}
	if len(out) < 300 {
		t.Fatalf("%s has only %d numbers", file, len(out))
	}
	return out
}

// TestArgumentRules: each call of the group "checked" has a test, and each test
// is one that the compiler's search may rely on.
func TestArgumentRules(t *testing.T) {
	for _, p := range profiles() {
		for _, g := range groups() {
			if g.rule != nil {
				continue
			}
			for _, c := range g.calls {
				r, ok := argumentRule(c.name, p).(*test)
				if !ok {
					t.Errorf("%s: %s is to be judged by arguments, but is not", p, c.name)
					continue
				}
				checkTest(t, c.name, r)
			}
		}
	}
}

func checkTest(t *testing.T, name string, r rule) {
	t.Helper()
	x, ok := r.(*test)
	if !ok {
		return
	}
	if x.arg < 0 || x.arg > 5 || len(x.in) == 0 || x.mask == 0 {
		t.Errorf("%s: argument %d, mask %#x, %d spans", name, x.arg, x.mask, len(x.in))
	}
	for i, s := range x.in {
		if s.lo > s.hi || s.lo&^x.mask != 0 || (i > 0 && x.in[i-1].hi >= s.lo) {
			t.Errorf("%s: span %#x-%#x is empty, not let through by the mask, or out of order", name, s.lo, s.hi)
		}
	}
	checkTest(t, name, x.yes)
	checkTest(t, name, x.no)
}

// TestGolden shows every change of what is allowed as a change of a file.
func TestGolden(t *testing.T) {
	for _, p := range profiles() {
		name := fmt.Sprintf("%s-unix-%v.golden", p.Arch, p.UnixSockets)
		if p.Agent {
			name = string(p.Arch) + "-agent.golden"
		}
		path := filepath.Join("testdata", name)
		got := listing(p)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatalf("%v (go test -update writes it)", err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

// listing writes out the verdict of every call.
func listing(p Profile) string {
	names := map[uint32]string{}
	for _, g := range groups() {
		for _, c := range g.calls {
			if n := c.number(p.Arch); n != none {
				names[uint32(n)] = c.name
			}
		}
	}
	rules := p.rules()
	var b strings.Builder
	for _, nr := range slices.Sorted(maps.Keys(rules)) {
		fmt.Fprintf(&b, "%d %s: ", nr, names[nr])
		describe(&b, rules[nr], 1)
	}
	b.WriteString("any other: ")
	describe(&b, notThere, 1)
	return b.String()
}

func describe(b *strings.Builder, r rule, depth int) {
	if v, ok := r.(verdict); ok {
		if v == allow {
			b.WriteString("allow\n")
			return
		}
		fmt.Fprintf(b, "%s\n", unix.ErrnoName(unix.Errno(v&unix.SECCOMP_RET_DATA)))
		return
	}
	t := r.(*test)
	fmt.Fprintf(b, "argument %d", t.arg)
	if t.mask != allBits {
		fmt.Fprintf(b, " & %#x", t.mask)
	}
	b.WriteString(" in")
	for _, s := range t.in {
		if s.lo == s.hi {
			fmt.Fprintf(b, " %#x", s.lo)
		} else {
			fmt.Fprintf(b, " %#x-%#x", s.lo, s.hi)
		}
	}
	indent := strings.Repeat("  ", depth)
	fmt.Fprintf(b, "\n%syes: ", indent)
	describe(b, t.yes, depth+1)
	fmt.Fprintf(b, "%sno: ", indent)
	describe(b, t.no, depth+1)
}
