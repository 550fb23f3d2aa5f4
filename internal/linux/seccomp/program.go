package seccomp

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// MaxInstructions is the most that the kernel takes in one filter.
const MaxInstructions = 4096

// Program is a filter that is ready to be installed. It is a value without
// pointers into anything else and may be shared by any number of readers.
type Program []unix.SockFilter

// Bytes returns the program as 8 bytes an instruction: code and both jumps,
// then the operand, in little-endian order whatever the machine.
func (p Program) Bytes() []byte {
	out := make([]byte, 0, len(p)*unix.SizeofSockFilter)
	for _, in := range p {
		out = binary.LittleEndian.AppendUint16(out, in.Code)
		out = append(out, in.Jt, in.Jf)
		out = binary.LittleEndian.AppendUint32(out, in.K)
	}
	return out
}

// FromBytes reads what [Program.Bytes] wrote. It checks what makes a filter
// one that ends: a size between one and [MaxInstructions], jumps that stay
// inside, and a return at the end. The kernel checks the rest. The error wraps
// [ErrInvalid].
func FromBytes(b []byte) (Program, error) {
	n := len(b) / unix.SizeofSockFilter
	if len(b)%unix.SizeofSockFilter != 0 || n < 1 || n > MaxInstructions {
		return nil, fmt.Errorf("%w: seccomp filter of %d bytes, want a multiple of %d up to %d",
			ErrInvalid, len(b), unix.SizeofSockFilter, MaxInstructions*unix.SizeofSockFilter)
	}
	p := make(Program, n)
	for i := range p {
		at := b[i*unix.SizeofSockFilter:]
		p[i] = unix.SockFilter{
			Code: binary.LittleEndian.Uint16(at),
			Jt:   at[2],
			Jf:   at[3],
			K:    binary.LittleEndian.Uint32(at[4:]),
		}
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	return p, nil
}

// check reports a jump that leaves the program, or an end that is no return.
func (p Program) check() error {
	if len(p) == 0 || p[len(p)-1].Code != opReturn {
		return fmt.Errorf("%w: seccomp filter does not end in a return", ErrInvalid)
	}
	for i, in := range p {
		left := len(p) - i - 1
		far := 0
		switch in.Code {
		case opJump:
			far = int(min(in.K, MaxInstructions)) + 1
		case opEqual, opNotLess:
			far = int(max(in.Jt, in.Jf)) + 1
		case opLoad, opAnd, opReturn:
		default:
			return fmt.Errorf("%w: seccomp filter has instruction %#x at %d, which no filter of ours uses",
				ErrInvalid, in.Code, i)
		}
		if far > left {
			return fmt.Errorf("%w: seccomp filter jumps past its end at %d", ErrInvalid, i)
		}
	}
	return nil
}

// Fprog returns the form that the seccomp system call takes. It points into p,
// which must be kept until the call is made, and must not be empty.
func (p Program) Fprog() unix.SockFprog {
	return unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
}
