package seccomp

import (
	"slices"

	"golang.org/x/sys/unix"
)

// The instructions that a filter of ours is made of.
const (
	opLoad    = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	opAnd     = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
	opJump    = unix.BPF_JMP | unix.BPF_JA
	opEqual   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	opNotLess = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	opReturn  = unix.BPF_RET | unix.BPF_K
)

// Offsets into struct seccomp_data. Both architectures are little-endian, so
// the lower half of an argument comes first.
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16
)

// reach is how far a conditional jump may go. The operand has 8 bits; the rest
// is room for two landing places that may be put in between.
const reach = 255 - 2

// label is an instruction, counted from the end of the program: jumps only go
// forward, so a program is built from its end, and a label never moves.
type label int

// assembler builds a program from its end.
type assembler struct {
	reversed []unix.SockFilter
	returns  map[uint32]label // the last copy of each return
	hops     map[label]label  // the last jump put down towards a label
}

func newAssembler() *assembler {
	return &assembler{returns: map[uint32]label{}, hops: map[label]label{}}
}

// program returns what was built, first instruction first.
func (a *assembler) program() Program {
	p := make(Program, len(a.reversed))
	for i, in := range a.reversed {
		p[len(p)-1-i] = in
	}
	return p
}

// put adds one instruction in front of all others.
func (a *assembler) put(code uint16, k uint32) label {
	a.reversed = append(a.reversed, unix.SockFilter{Code: code, K: k})
	return label(len(a.reversed) - 1)
}

// distance is how many instructions the next one would have to skip.
func (a *assembler) distance(to label) int { return len(a.reversed) - int(to) - 1 }

// ret returns a near return of the value.
func (a *assembler) ret(value uint32) label {
	if l, ok := a.returns[value]; ok && a.distance(l) <= reach {
		return l
	}
	l := a.put(opReturn, value)
	a.returns[value] = l
	return l
}

// near returns a label within reach that leads to the given one.
func (a *assembler) near(to label) label {
	if a.distance(to) <= reach {
		return to
	}
	if in := a.reversed[to]; in.Code == opReturn {
		return a.ret(in.K) // a copy is as small as a jump, and faster
	}
	if hop, ok := a.hops[to]; ok && a.distance(hop) <= reach {
		return hop
	}
	hop := a.put(opJump, uint32(a.distance(to)))
	a.hops[to] = hop
	return hop
}

// branch compares the accumulator with k.
func (a *assembler) branch(code uint16, k uint32, yes, no label) label {
	if yes == no {
		return yes
	}
	yes, no = a.near(yes), a.near(no)
	jt, jf := a.distance(yes), a.distance(no)
	l := a.put(code, k)
	a.reversed[l].Jt, a.reversed[l].Jf = uint8(jt), uint8(jf)
	return l
}

// segment says where to go for values from start up to the next segment.
type segment struct {
	start uint32
	to    label
}

// search leads the accumulator to its segment, in a number of comparisons that
// is logarithmic in the number of segments. The first starts at 0.
func (a *assembler) search(segs []segment) label {
	switch {
	case len(segs) == 1:
		return segs[0].to
	case len(segs) == 3 && segs[0].to == segs[2].to && segs[2].start-segs[1].start == 1:
		return a.branch(opEqual, segs[1].start, segs[1].to, segs[0].to)
	}
	mid := len(segs) / 2
	high := a.search(segs[mid:])
	low := a.search(segs[:mid])
	return a.branch(opNotLess, segs[mid].start, high, low)
}

// lead is a search that what is put next falls into.
func (a *assembler) lead(segs []segment) {
	segs = slices.CompactFunc(segs, func(x, y segment) bool { return x.to == y.to })
	if d := a.distance(a.search(segs)); d > 0 {
		a.put(opJump, uint32(d)) // there was nothing to compare
	}
}

// rule emits a verdict, or the test that finds one.
func (a *assembler) rule(r rule) label {
	t, ok := r.(*test)
	if !ok {
		return a.ret(uint32(r.(verdict)))
	}
	no := a.rule(t.no)
	yes := a.rule(t.yes)
	a.lead(t.segments(yes, no))
	if t.mask != allBits {
		a.put(opAnd, t.mask)
	}
	return a.put(opLoad, uint32(offsetArgs+8*t.arg))
}

// dispatch emits the beginning of the filter: the right architecture, then the
// rule of the number.
func (a *assembler) dispatch(auditArch uint32, segs []segment, foreign verdict) {
	a.lead(segs)
	number := a.put(opLoad, offsetNumber)
	a.branch(opEqual, auditArch, number, a.ret(uint32(foreign)))
	a.put(opLoad, offsetArch)
}
