//go:build linux && amd64

package trial

import (
	"encoding/binary"
	"errors"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"tranca/internal/linux/forkexec"
)

// The calls of /dev/kvm.
const (
	kvmCreateVM   = 0xae01
	kvmCreateVCPU = 0xae41
	kvmSetTSS     = 0xae47
	kvmRun        = 0xae80
	kvmSetMemory  = 0x4020ae46
)

// The guest's own memory: a page at the bottom, and the one at the top of 4 GiB
// from which a processor starts.
const (
	page     = 4096
	entry    = 0xff0
	answerAt = 0x500
	answer   = 42
)

// kvmWait is ample for the guest's loop on a processor that virtualizes, also
// one that is itself virtual, and far too short where its instructions are
// emulated one by one.
const kvmWait = 1500 * time.Millisecond

// guest counts down from four million, then leaves its answer and halts:
//
//	mov $4000000, %ecx; 1: dec %ecx; jnz 1b; movb $42, 0x500; hlt
var guest = [16]byte{
	0x66, 0xb9, 0x00, 0x09, 0x3d, 0x00, 0x66, 0x49, 0x75, 0xfc, 0xc6, 0x06, answerAt & 0xff, answerAt >> 8, answer, 0xf4,
}

// KVM makes a virtual machine and has its processor run some million
// instructions, as this process's own user. That a machine can be made shows
// nothing: there are hosts where no processor stands behind it.
func KVM() (Result, error) {
	memory, err := unix.Mmap(-1, 0, 2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANON)
	if err != nil {
		return Result{}, os.NewSyscallError("mmap", err)
	}
	defer func() { _ = unix.Munmap(memory) }() // nothing else is there to free
	copy(memory[page+entry:], guest[:])
	const device, machine, processor = 0, 1, 2 // the child's descriptors, in this order
	s := forkexec.New(0)
	at := unix.AT_FDCWD
	s.Call("open /dev/kvm", unix.SYS_OPENAT, uintptr(at), s.Memory([]byte("/dev/kvm\x00")), unix.O_RDWR|unix.O_CLOEXEC, 0)
	s.Call("make a virtual machine", unix.SYS_IOCTL, device, kvmCreateVM, 0)
	s.Call("place its task state", unix.SYS_IOCTL, machine, kvmSetTSS, 0xfffbd000)
	s.Call("give it memory", unix.SYS_IOCTL, machine, kvmSetMemory, s.Memory(region(0, 0, memory[:page])))
	s.Call("give it memory", unix.SYS_IOCTL, machine, kvmSetMemory, s.Memory(region(1, 0xfffff000, memory[page:])))
	s.Call("make its processor", unix.SYS_IOCTL, machine, kvmCreateVCPU, 0)
	s.Call("run it", unix.SYS_IOCTL, processor, kvmRun, 0)
	r, err := attempt(s, kvmWait)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return Result{Refused: "it makes machines, but no processor virtualizes behind it: four million instructions took more than " + kvmWait.String()}, nil
	case r.Reached && memory[answerAt] != answer:
		return Result{Refused: "it makes machines, but what ran in one came to another result"}, nil
	}
	return r, err
}

// region is struct kvm_userspace_memory_region.
func region(slot uint32, guestAddress uint64, memory []byte) []byte {
	b := make([]byte, 32)
	binary.LittleEndian.PutUint32(b, slot)
	binary.LittleEndian.PutUint64(b[8:], guestAddress)
	binary.LittleEndian.PutUint64(b[16:], uint64(len(memory)))
	binary.LittleEndian.PutUint64(b[24:], uint64(uintptr(unsafe.Pointer(unsafe.SliceData(memory)))))
	return b
}
