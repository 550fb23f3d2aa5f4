//go:build linux

package boot

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// infoPID returns the pid that waitid has written: 0 where no child has ended.
// It stands behind three numbers of 4 bytes and, on 64-bit kernels, 4 of
// padding.
func infoPID(info *unix.Siginfo) int {
	return int(*(*int32)(unsafe.Add(unsafe.Pointer(info), 16)))
}
