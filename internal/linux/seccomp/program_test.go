package seccomp

import (
	"bytes"
	"errors"
	"slices"
	"testing"
)

func TestBytesRoundTrip(t *testing.T) {
	for _, p := range profiles() {
		prog := compile(t, p)
		back, err := FromBytes(prog.Bytes())
		if err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		if !slices.Equal(back, prog) {
			t.Errorf("%s: the program changed on its way through bytes", p)
		}
	}
}

func TestFromBytesRefuses(t *testing.T) {
	ret := []byte{6, 0, 0, 0, 0, 0, 0xff, 0x7f}
	jump := func(op, jt, jf, k byte) []byte { return []byte{op, 0, jt, jf, k, 0, 0, 0} }
	for name, b := range map[string][]byte{
		"nothing":          nil,
		"half":             ret[:4],
		"one and a half":   append(bytes.Clone(ret), ret[:4]...),
		"too many":         bytes.Repeat(ret, MaxInstructions+1),
		"no return":        jump(0x20, 0, 0, 0),
		"jump past end":    append(jump(0x05, 0, 0, 1), ret...),
		"true past end":    append(jump(0x15, 1, 0, 0), ret...),
		"false past end":   append(jump(0x35, 0, 1, 0), ret...),
		"endless jump":     append([]byte{5, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}, ret...),
		"other code":       append(jump(0x1d, 0, 0, 0), ret...),
		"store to scratch": append(jump(0x02, 0, 0, 0), ret...),
	} {
		if _, err := FromBytes(b); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: got %v, want an error that is ErrInvalid", name, err)
		}
	}
	if _, err := FromBytes(bytes.Repeat(ret, MaxInstructions)); err != nil {
		t.Errorf("as many as are allowed: %v", err)
	}
	if _, err := FromBytes(append(jump(0x15, 0, 0, 0), ret...)); err != nil {
		t.Errorf("a jump to the end: %v", err)
	}
}

// FuzzFromBytes: whatever is accepted comes to an end at a return on any input,
// and is written back as it was.
func FuzzFromBytes(f *testing.F) {
	prog, err := Compile(Profile{Arch: AMD64})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(prog.Bytes(), uint32(1))
	f.Add([]byte{6, 0, 0, 0, 0, 0, 0, 0}, uint32(0))
	f.Fuzz(func(t *testing.T, b []byte, nr uint32) {
		p, err := FromBytes(b)
		if err != nil {
			return
		}
		if !bytes.Equal(p.Bytes(), b) {
			t.Fatal("bytes changed")
		}
		for _, in := range p {
			if in.Code == opLoad && (in.K%4 != 0 || in.K > 60) {
				return // the kernel refuses it
			}
		}
		interpret(t, p, entry{nr: nr}, nil)
	})
}
