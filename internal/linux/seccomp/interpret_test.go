package seccomp

import (
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"
)

// entry is struct seccomp_data: what the kernel shows a filter.
type entry struct {
	nr, arch uint32
	args     [6]uint64
}

func (e entry) bytes() []byte {
	var b []byte
	b = binary.LittleEndian.AppendUint32(b, e.nr)
	b = binary.LittleEndian.AppendUint32(b, e.arch)
	b = binary.LittleEndian.AppendUint64(b, 0x1234_5678_9abc) // instruction pointer
	for _, a := range e.args {
		b = binary.LittleEndian.AppendUint64(b, a)
	}
	return b
}

// coverage counts, for each instruction, how often it ran, and for each
// conditional how often each way was taken.
type coverage struct{ ran, yes, no []int }

func newCoverage(p Program) *coverage {
	return &coverage{make([]int, len(p)), make([]int, len(p)), make([]int, len(p))}
}

func (c *coverage) branch(pc int, taken bool) {
	if taken {
		c.yes[pc]++
	} else {
		c.no[pc]++
	}
}

// interpret runs a program as the kernel would and returns its verdict and the
// number of steps. It knows only what a filter may be made of.
func interpret(t testing.TB, p Program, e entry, cov *coverage) (verdict, int) {
	t.Helper()
	data := e.bytes()
	var acc uint32
	steps := 0
	for pc := 0; pc < len(p); pc++ {
		in := p[pc]
		steps++
		if cov != nil {
			cov.ran[pc]++
		}
		taken := false
		switch in.Code {
		case 0x20: // ld [k]
			acc = binary.LittleEndian.Uint32(data[in.K:])
			continue
		case 0x54: // and k
			acc &= in.K
			continue
		case 0x05: // ja k
			pc += int(in.K)
			continue
		case 0x06: // ret k
			return verdict(in.K), steps
		case 0x15: // jeq k
			taken = acc == in.K
		case 0x35: // jge k
			taken = acc >= in.K
		default:
			t.Fatalf("instruction %d has code %#x", pc, in.Code)
		}
		if cov != nil {
			cov.branch(pc, taken)
		}
		if taken {
			pc += int(in.Jt)
		} else {
			pc += int(in.Jf)
		}
	}
	t.Fatalf("program of %d instructions ran past its end", len(p))
	return 0, 0
}

// evaluate finds the verdict of a rule without any program.
func evaluate(r rule, args [6]uint64) verdict {
	for {
		t, ok := r.(*test)
		if !ok {
			return r.(verdict)
		}
		value := uint32(args[t.arg]) & t.mask
		r = t.no
		for _, s := range t.in {
			if s.lo <= value && value <= s.hi {
				r = t.yes
			}
		}
	}
}

// TestInterpreter holds the interpreter against a program written by hand.
func TestInterpreter(t *testing.T) {
	p := Program{
		{Code: 0x20, K: 0},               // number
		{Code: 0x15, Jt: 1, Jf: 0, K: 7}, // 7: skip the return
		{Code: 0x06, K: 1},               // others: 1
		{Code: 0x20, K: 16},              // lower half of argument 0
		{Code: 0x54, K: 0xf0},            //
		{Code: 0x35, Jt: 0, Jf: 1, K: 0x20},
		{Code: 0x05, K: 1}, // to the last
		{Code: 0x06, K: 2},
		{Code: 0x06, K: 3},
	}
	for _, tc := range []struct {
		e    entry
		want verdict
	}{
		{entry{nr: 6}, 1},
		{entry{nr: 7, args: [6]uint64{0x1f}}, 2},
		{entry{nr: 7, args: [6]uint64{0x2f}}, 3},
		{entry{nr: 7, args: [6]uint64{0xff_0000_001f}}, 2},
		{entry{nr: 7, args: [6]uint64{0xf0}}, 3},
	} {
		if got, _ := interpret(t, p, tc.e, nil); got != tc.want {
			t.Errorf("%+v: got %d, want %d", tc.e, got, tc.want)
		}
	}
	if unix.BPF_JMP|unix.BPF_JGE|unix.BPF_K != 0x35 {
		t.Error("the interpreter's codes are not those of the kernel")
	}
}
