package seccomp

import (
	"slices"

	"golang.org/x/sys/unix"
)

// rule is a [verdict], or a [test] that leads to one.
type rule interface{ isRule() }

// verdict is what the kernel is told, a SECCOMP_RET_ value.
type verdict uint32

const (
	allow        verdict = unix.SECCOMP_RET_ALLOW
	notPermitted         = verdict(unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM))
	notThere             = verdict(unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS))
)

// refuse is the verdict that fails a call with the errno.
func refuse(errno unix.Errno) verdict { return verdict(unix.SECCOMP_RET_ERRNO | uint32(errno)) }

// allBits keeps the whole lower half of an argument.
const allBits = ^uint32(0)

// test asks whether the lower half of an argument, with the mask put on it,
// lies in one of the spans.
type test struct {
	arg     int // 0 to 5
	mask    uint32
	in      []span // ascending, not touching, none empty
	yes, no rule
}

// span is the values from lo to hi, both included.
type span struct{ lo, hi uint32 }

func (verdict) isRule() {}
func (*test) isRule()   {}

// only returns the spans that hold exactly the values.
func only(values ...uint32) []span {
	slices.Sort(values)
	var out []span
	for _, v := range values {
		if n := len(out); n > 0 && out[n-1].hi+1 == v {
			out[n-1].hi = v
			continue
		}
		out = append(out, span{v, v})
	}
	return out
}

// allowIf allows an argument whose value is in the spans.
func allowIf(arg int, in []span, otherwise rule) *test {
	return &test{arg: arg, mask: allBits, in: in, yes: allow, no: otherwise}
}

// allowWithout allows an argument that has none of the bits.
func allowWithout(arg int, bits uint32, otherwise rule) *test {
	return &test{arg: arg, mask: bits, in: only(0), yes: allow, no: otherwise}
}

// step is the distance between two values that the mask lets through.
func (t *test) step() uint32 { return t.mask & -t.mask }

// segments cuts the values that the mask lets through into those inside and
// those outside of the spans.
func (t *test) segments(yes, no label) []segment {
	out := []segment{{0, no}}
	for _, s := range t.in {
		if out[len(out)-1].start == s.lo {
			out = out[:len(out)-1]
		}
		out = append(out, segment{s.lo, yes})
		if s.hi < t.mask {
			out = append(out, segment{s.hi + t.step(), no})
		}
	}
	return out
}
