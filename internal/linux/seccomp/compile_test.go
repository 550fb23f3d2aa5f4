package seccomp

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// profiles are all that there are.
func profiles() []Profile {
	return []Profile{
		{Arch: AMD64}, {Arch: AMD64, UnixSockets: true}, {Arch: AMD64, Agent: true},
		{Arch: ARM64}, {Arch: ARM64, UnixSockets: true}, {Arch: ARM64, Agent: true},
	}
}

func (p Profile) String() string {
	if p.Agent {
		return string(p.Arch) + "/agent"
	}
	return fmt.Sprintf("%s/unix=%v", p.Arch, p.UnixSockets)
}

func compile(t testing.TB, p Profile) Program {
	t.Helper()
	prog, err := Compile(p)
	if err != nil {
		t.Fatal(err)
	}
	return prog
}

func audit(t testing.TB, a Arch) uint32 {
	t.Helper()
	v, err := a.audit()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// interesting returns values of each argument at which a rule can turn.
func interesting(r rule, out *[6][]uint64) {
	t, ok := r.(*test)
	if !ok {
		return
	}
	values := &out[t.arg]
	for _, s := range t.in {
		for _, v := range []uint32{s.lo - 1, s.lo, s.hi, s.hi + 1, s.lo - t.step(), s.hi + t.step()} {
			*values = append(*values, uint64(v), uint64(v)|1<<32, uint64(v)|math.MaxUint32<<32)
		}
	}
	*values = append(*values, uint64(t.mask), uint64(^t.mask))
	interesting(t.yes, out)
	interesting(t.no, out)
}

// vectors returns argument lists that take a rule through all its branches.
func vectors(r rule) [][6]uint64 {
	var values [6][]uint64
	interesting(r, &values)
	out := [][6]uint64{{}}
	for arg, vs := range values {
		slices.Sort(vs)
		vs = slices.Compact(vs)
		var next [][6]uint64
		for _, args := range out {
			next = append(next, args)
			for _, v := range vs {
				args[arg] = v
				next = append(next, args)
			}
		}
		out = next
	}
	return out
}

// numbersToTry are all that the table could name, x32's, and odd ones.
func numbersToTry() []uint32 {
	var out []uint32
	for n := range uint32(1024) {
		out = append(out, n, n|0x40000000, n|0x80000000)
	}
	return append(out, math.MaxUint32, math.MaxInt32, 0x40000000-1)
}

// TestVerdicts runs the program for every number on every architecture and
// holds it against the table, read without the compiler.
func TestVerdicts(t *testing.T) {
	for _, p := range profiles() {
		t.Run(p.String(), func(t *testing.T) {
			prog, arch := compile(t, p), audit(t, p.Arch)
			cov := newCoverage(prog)
			rules := p.rules()
			for _, nr := range numbersToTry() {
				r, known := rules[nr]
				if !known {
					r = notThere
				}
				for _, args := range vectors(r) {
					want := evaluate(r, args)
					got, _ := interpret(t, prog, entry{nr, arch, args}, cov)
					if got != want {
						t.Fatalf("number %d, args %#x: got %#x, want %#x", nr, args, got, want)
					}
				}
			}
			for _, a := range foreign(arch) {
				for _, nr := range numbersToTry() {
					if got, _ := interpret(t, prog, entry{nr: nr, arch: a}, cov); got != notThere {
						t.Fatalf("architecture %#x, number %d: got %#x, want ENOSYS", a, nr, got)
					}
				}
			}
			checkCovered(t, prog, cov)
		})
	}
}

// foreign returns architectures other than the native one.
func foreign(native uint32) []uint32 {
	all := []uint32{
		unix.AUDIT_ARCH_I386, unix.AUDIT_ARCH_X86_64, unix.AUDIT_ARCH_ARM, unix.AUDIT_ARCH_AARCH64,
		unix.AUDIT_ARCH_RISCV64, unix.AUDIT_ARCH_S390X, 0, math.MaxUint32, native + 1, native - 1,
	}
	return slices.DeleteFunc(all, func(a uint32) bool { return a == native })
}

// checkCovered fails for an instruction that nothing reaches and a conditional
// that only goes one way.
func checkCovered(t *testing.T, p Program, cov *coverage) {
	t.Helper()
	for i, in := range p {
		conditional := in.Code == opEqual || in.Code == opNotLess
		switch {
		case cov.ran[i] == 0:
			t.Errorf("instruction %d is never reached", i)
		case conditional && cov.yes[i] == 0:
			t.Errorf("the condition at %d is never true", i)
		case conditional && cov.no[i] == 0:
			t.Errorf("the condition at %d is never false", i)
		}
	}
}

// TestCompact holds the size and the longest path of the filter: the kernel
// runs it once for every number when it is installed, and again at each call
// that is not always allowed.
func TestCompact(t *testing.T) {
	for _, p := range profiles() {
		prog, arch, longest := compile(t, p), audit(t, p.Arch), 0
		for nr, r := range p.rules() {
			for _, args := range vectors(r) {
				_, steps := interpret(t, prog, entry{nr, arch, args}, nil)
				longest = max(longest, steps)
			}
		}
		if len(prog) > 340 || longest > 26 {
			t.Errorf("%s: %d instructions, longest path %d; want at most 340 and 26", p, len(prog), longest)
		}
	}
}

// TestHalves: the upper half of an argument never changes a verdict, as it
// never changes what the kernel does.
func TestHalves(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := rapid.SampledFrom(profiles()).Draw(rt, "profile")
		prog, arch := compile(t, p), audit(t, p.Arch)
		e := entry{nr: rapid.Uint32Range(0, 600).Draw(rt, "number"), arch: arch}
		other := e
		for i := range e.args {
			low := uint64(rapid.Uint32().Draw(rt, "low"))
			e.args[i] = low
			other.args[i] = low | uint64(rapid.Uint32().Draw(rt, "high"))<<32
		}
		a, _ := interpret(t, prog, e, nil)
		b, _ := interpret(t, prog, other, nil)
		if a != b {
			rt.Fatalf("%s number %d: %#x for %#x, %#x for %#x", p, e.nr, a, e.args, b, other.args)
		}
	})
}

// TestAssembler compiles rules of any shape and size, up to ones whose jumps
// don't fit into 8 bits, and holds the program against the rule.
func TestAssembler(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		segs := rapid.IntRange(2, 700).Draw(rt, "numbers")
		rules := map[uint32]rule{}
		for nr := range segs {
			rules[uint32(nr)] = drawRule(rt, 2)
		}
		a := newAssembler()
		var to []segment
		for nr := range segs {
			to = append(to, segment{uint32(nr), a.rule(rules[uint32(nr)])})
		}
		to = append(to, segment{uint32(segs), a.ret(1)})
		a.dispatch(unix.AUDIT_ARCH_X86_64, to, 2)
		prog := a.program()
		if err := prog.check(); err != nil {
			rt.Fatal(err)
		}
		for range 50 {
			nr := uint32(rapid.IntRange(0, segs-1).Draw(rt, "number"))
			e := entry{nr: nr, arch: unix.AUDIT_ARCH_X86_64}
			for i := range e.args {
				e.args[i] = rapid.Uint64Range(0, 40).Draw(rt, "arg")
			}
			if got, _ := interpret(t, prog, e, nil); got != evaluate(rules[nr], e.args) {
				rt.Fatalf("number %d of %d, args %v: got %#x", nr, segs, e.args, got)
			}
		}
	})
}

// drawRule makes a verdict, or a test of at most the given depth.
func drawRule(rt *rapid.T, depth int) rule {
	if depth == 0 || rapid.IntRange(0, 3).Draw(rt, "leaf") > 0 {
		return verdict(rapid.Uint32Range(3, 6).Draw(rt, "verdict"))
	}
	values := rapid.SliceOfNDistinct(rapid.Uint32Range(0, 40), 1, 12, rapid.ID[uint32]).Draw(rt, "values")
	return &test{
		arg:  rapid.IntRange(0, 5).Draw(rt, "argument"),
		mask: rapid.SampledFrom([]uint32{allBits, 0x1f, 0xf}).Draw(rt, "mask"),
		in:   only(values...),
		yes:  drawRule(rt, depth-1),
		no:   drawRule(rt, depth-1),
	}
}

func TestUnknownArch(t *testing.T) {
	_, err := Compile(Profile{Arch: "riscv64"})
	if !errors.Is(err, ErrUnsupported) {
		t.Fatalf("got %v, want an error that is ErrUnsupported", err)
	}
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		if _, err := Compile(Profile{}); err != nil {
			b.Fatal(err)
		}
	}
}
