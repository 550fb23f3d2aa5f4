package trial

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// x32Bit marks a call of the x32 ABI.
const x32Bit = 0x40000000

func x32() (Result, error) {
	s := unprivileged()
	s.Call("getpid of x32", unix.SYS_GETPID|x32Bit)
	return attempt(s, wait)
}

func ia32() (Result, error) { return execute(i386Program()) }

// i386Program is a program of 32 bits that ends with i386Ends:
//
//	mov $1, %eax; mov $42, %ebx; int $0x80
func i386Program() []byte {
	const at, header = 0x10000, 52 + 32
	code := []byte{0xb8, 1, 0, 0, 0, 0xbb, i386Ends, 0, 0, 0, 0xcd, 0x80}
	var b bytes.Buffer
	put := func(values ...any) {
		for _, v := range values {
			_ = binary.Write(&b, binary.LittleEndian, v) // to memory
		}
	}
	size := uint32(header + len(code))
	put([]byte{0x7f, 'E', 'L', 'F', 1, 1, 1, 0}, uint64(0), uint16(2), uint16(3), uint32(1))
	put(uint32(at+header), uint32(52), uint32(0), uint32(0))
	put(uint16(52), uint16(32), uint16(1), uint16(0), uint16(0), uint16(0))
	put(uint32(1), uint32(0), uint32(at), uint32(at), size, size, uint32(5), uint32(4096))
	put(code)
	return b.Bytes()
}
