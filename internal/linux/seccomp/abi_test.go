package seccomp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"tranca/internal/require"
)

// Programs of a few instructions that use the system calls of i386.
var (
	// A 64-bit program: the number in eax and three arguments are patched in;
	// it makes the call by int 0x80 and exits, by its own ABI, with the errno.
	int80Code = []byte{
		0xb8, 0, 0, 0, 0, // mov eax, number
		0xbb, 0, 0, 0, 0, // mov ebx, first
		0xb9, 0, 0, 0, 0, // mov ecx, second
		0xba, 0, 0, 0, 0, // mov edx, third
		0xcd, 0x80, //       int 0x80
		0xf7, 0xd8, //       neg eax
		0x89, 0xc7, //       mov edi, eax
		0xb8, 231, 0, 0, 0, // mov eax, exit_group
		0x0f, 0x05, //       syscall
	}
	// A 32-bit program: exit(7), and where that does not end it, ud2.
	i386Code = []byte{
		0xb8, 1, 0, 0, 0, // mov eax, exit
		0xbb, 7, 0, 0, 0, // mov ebx, 7
		0xcd, 0x80, //       int 0x80
		0x0f, 0x0b, //       ud2
	}
)

const loadAddress = 0x400000

// int80 returns a program that makes one i386 call.
func int80(number, first, second, third uint32) []byte {
	code := bytes.Clone(int80Code)
	for i, v := range []uint32{number, first, second, third} {
		binary.LittleEndian.PutUint32(code[5*i+1:], v)
	}
	return elf(false, code)
}

// elf wraps code into the smallest static executable of its class.
func elf(is32 bool, code []byte) []byte {
	var b bytes.Buffer
	put := func(values ...any) {
		for _, v := range values {
			_ = binary.Write(&b, binary.LittleEndian, v) // a Buffer takes all
		}
	}
	header := uint64(64 + 56)
	if is32 {
		header = 52 + 32
	}
	size := header + uint64(len(code))
	put([]byte{0x7f, 'E', 'L', 'F'})
	if is32 {
		put([]byte{1, 1, 1, 0}, uint64(0), uint16(2), uint16(3), uint32(1))
		put(uint32(loadAddress+header), uint32(52), uint32(0), uint32(0))
		put(uint16(52), uint16(32), uint16(1), uint16(0), uint16(0), uint16(0))
		put(uint32(1), uint32(0), uint32(loadAddress), uint32(loadAddress))
		put(uint32(size), uint32(size), uint32(5), uint32(4096))
	} else {
		put([]byte{2, 1, 1, 0}, uint64(0), uint16(2), uint16(62), uint32(1))
		put(loadAddress+header, uint64(64), uint64(0), uint32(0))
		put(uint16(64), uint16(56), uint16(1), uint16(0), uint16(0), uint16(0))
		put(uint32(1), uint32(5), uint64(0), uint64(loadAddress), uint64(loadAddress))
		put(size, size, uint64(4096))
	}
	put(code)
	return b.Bytes()
}

// runELF runs a program under a filter and returns how it ended.
func runELF(t *testing.T, filter string, image []byte) syscall.WaitStatus {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, image, 0o755); err != nil {
		t.Fatal(err)
	}
	err := childCommand(t, filter, "exec", path).Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.Sys().(syscall.WaitStatus)
	}
	t.Fatal(err)
	return 0
}

// requireIA32 asks for a kernel that runs i386 programs.
func requireIA32(t *testing.T) {
	t.Helper()
	there := runtime.GOARCH == "amd64" && runELF(t, unfiltered, elf(true, i386Code)).ExitStatus() == 7
	require.Check(t, "ia32", there, "the kernel does not run i386 programs")
}

// TestI386Program: a 32-bit program cannot even exit (KRN-12).
func TestI386Program(t *testing.T) {
	requireIA32(t)
	status := runELF(t, strict, elf(true, i386Code))
	if !status.Signaled() || status.Signal() != syscall.SIGILL {
		t.Errorf("under the filter: wait status %#x, want SIGILL after a refused exit", uint32(status))
	}
}

// TestInt80: calls of the i386 ABI made by a 64-bit program, with numbers that
// mean something harmless, or allowed, in the native ABI (KRN-12, NET-11).
func TestInt80(t *testing.T) {
	requireIA32(t)
	for name, tc := range map[string]struct {
		number, first, second, third uint32
	}{
		"close":               {number: 6, first: ^uint32(0)},
		"unshare":             {number: 310, first: unix.CLONE_FS},
		"keyctl":              {number: 288, first: 0, second: ^uint32(2)},
		"socketcall, bad":     {number: 102, first: 1, second: bad},
		"socket, packet":      {number: 359, first: unix.AF_PACKET, second: unix.SOCK_RAW},
		"socket, TCP":         {number: 359, first: unix.AF_INET, second: unix.SOCK_STREAM},
		"ptrace":              {number: 26, first: unix.PTRACE_PEEKDATA, second: 1 << 30},
		"personality":         {number: 136, first: 0x0040000},
		"io_uring_setup, bad": {number: 425, first: 4, second: bad},
	} {
		t.Run(name, func(t *testing.T) {
			image := int80(tc.number, tc.first, tc.second, tc.third)
			if got := runELF(t, strict, image).ExitStatus(); got != int(unix.ENOSYS) {
				t.Errorf("under the filter: %d, want ENOSYS", got)
			}
			if got := runELF(t, unfiltered, image).ExitStatus(); got == int(unix.ENOSYS) {
				t.Error("without the filter: ENOSYS too, so the probe shows nothing")
			}
		})
	}
}
