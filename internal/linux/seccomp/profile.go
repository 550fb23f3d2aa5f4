package seccomp

import (
	"fmt"
	"maps"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"
)

// Arch is a processor architecture by its Go name.
type Arch string

// The architectures that have a table.
const (
	AMD64 Arch = "amd64"
	ARM64 Arch = "arm64"
)

// Profile says what a filter allows beyond what every filter does. The zero
// value is the strictest filter of the running architecture.
type Profile struct {
	// Arch is the architecture that the code runs on; empty for that of this
	// process.
	Arch Arch
	// UnixSockets allows socket(AF_UNIX) and datagram socket pairs. Without
	// it, no socket file of the host can be reached even where a mount shows
	// it, and programs inside can talk by pairs and pipes only.
	UnixSockets bool
	// Agent is for the guest agent instead of code: all that it does after its
	// boot, which is nearly everything but what makes or enters namespaces and
	// mounts or reaches into the kernel or other processes. Its children have
	// this filter too, below their own.
	Agent bool
	// Contained is for an agent in a root that somebody else made: its children
	// may also enter the user namespace that it made for them at its boot.
	Contained bool
}

// Compile makes the filter of a profile. The same profile always gives the same
// program, which may be kept. The error wraps [ErrUnsupported]: there is
// no table for the architecture, and then nothing may run.
func Compile(p Profile) (Program, error) {
	if p.Arch == "" {
		p.Arch = Arch(runtime.GOARCH)
	}
	auditArch, err := p.Arch.audit()
	if err != nil {
		return nil, err
	}
	a := newAssembler()
	a.dispatch(auditArch, a.numbers(p), notThere)
	prog := a.program()
	if len(prog) > MaxInstructions {
		return nil, fmt.Errorf("%w: seccomp filter of %d instructions, the kernel takes %d",
			ErrUnsupported, len(prog), MaxInstructions)
	}
	return prog, nil
}

// audit returns the name by which the kernel tells a filter the architecture.
func (a Arch) audit() (uint32, error) {
	switch a {
	case AMD64:
		return unix.AUDIT_ARCH_X86_64, nil
	case ARM64:
		return unix.AUDIT_ARCH_AARCH64, nil
	}
	return 0, fmt.Errorf("%w: seccomp has no table for architecture %q, only for %s and %s",
		ErrUnsupported, string(a), AMD64, ARM64)
}

// number returns the call's number, or none.
func (c call) number(a Arch) int {
	if a == ARM64 {
		return c.arm64
	}
	return c.amd64
}

// numbers emits the rules of all calls and returns where each number goes.
// Returns are emitted last, to be near the search.
func (a *assembler) numbers(p Profile) []segment {
	runs := p.runs()
	segs := make([]segment, len(runs))
	for i, r := range runs {
		if t, ok := r.rule.(*test); ok {
			segs[i] = segment{r.start, a.rule(t)}
		}
	}
	for i, r := range runs {
		if v, ok := r.rule.(verdict); ok {
			segs[i] = segment{r.start, a.rule(v)}
		}
	}
	return segs
}

// run is a range of numbers with one rule, up to where the next begins.
type run struct {
	start uint32
	rule  rule
}

// runs divides all numbers, known or not, by their rules.
func (p Profile) runs() []run {
	rules := p.rules()
	var out []run
	add := func(start uint32, r rule) {
		if n := len(out); n == 0 || out[n-1].rule != r {
			out = append(out, run{start, r})
		}
	}
	next := uint32(0)
	for _, n := range slices.Sorted(maps.Keys(rules)) {
		if n > next {
			add(next, notThere)
		}
		add(n, rules[n])
		next = n + 1
	}
	add(next, notThere)
	return out
}

// widest is the profile by whose arguments an agent is judged: that of the code
// which it may have to start.
func (p Profile) widest() Profile {
	p.UnixSockets = p.UnixSockets || p.Agent
	return p
}

// rules returns the rule of every number that the table knows.
func (p Profile) rules() map[uint32]rule {
	out := map[uint32]rule{}
	for _, g := range groups() {
		for _, c := range g.calls {
			n := c.number(p.Arch)
			if n == none {
				continue
			}
			r := g.rule
			if p.Agent {
				r = agentRule(p, g, c)
			}
			if r == nil {
				r = argumentRule(c.name, p.widest())
			}
			out[uint32(n)] = r
		}
	}
	return out
}
