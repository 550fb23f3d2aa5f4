package trial

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"tranca/internal/linux/forkexec"
)

// x32Bit marks a call of the x32 ABI.
const x32Bit = 0x40000000

// X32 makes a call of the x32 ABI.
func X32() (Result, error) {
	s := unprivileged()
	s.Call("getpid of x32", unix.SYS_GETPID|x32Bit)
	return attempt(s, wait)
}

// IA32 runs a program of 32 bits.
func IA32() (Result, error) { return execute(i386Program()) }

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

// i386Ends is how the program of 32 bits ends.
const i386Ends = 42

// execute starts a program from memory and waits for its end.
func execute(program []byte) (Result, error) {
	fd, err := unix.MemfdCreate("trial", unix.MFD_CLOEXEC|unix.MFD_EXEC)
	if err == unix.EINVAL { // a kernel before 6.3 knows no such flag
		fd, err = unix.MemfdCreate("trial", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return Result{}, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "trial")
	defer f.Close()
	if _, err := f.Write(program); err != nil {
		return Result{}, err
	}
	ready, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", fd)) // one that can be written to can't be executed
	if err != nil {
		return Result{}, err
	}
	f.Close()
	defer ready.Close()
	kept, err := forkexec.Keep(int(ready.Fd()))
	if err != nil {
		return Result{}, err
	}
	defer unix.Close(kept)
	s := unprivileged()
	s.ExecFD(kept, []string{"trial"}, nil)
	status, err := s.Try(wait)
	var failed *forkexec.Error
	switch {
	case errors.As(err, &failed) && failed.Step == "exec" && failed.Errno == syscall.EACCES:
		return Result{}, err // by a rule about files without a name
	case errors.As(err, &failed) && failed.Step == "exec":
		return Result{Refused: err.Error()}, nil
	case err != nil:
		return Result{}, err
	case status.Exited() && status.ExitStatus() == i386Ends:
		return Result{Reached: true}, nil
	}
	return Result{Refused: "the program was killed"}, nil
}
