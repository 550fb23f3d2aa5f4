//go:build linux

package trial

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// PerformanceEvents counts nothing, in the child alone and not in the kernel.
func PerformanceEvents() (Result, error) {
	attr := &unix.PerfEventAttr{
		Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_DUMMY,
		Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Bits: unix.PerfBitDisabled | unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv,
	}
	s := unprivileged()
	here, anyCPU, none := 0, -1, -1
	s.Call("perf_event_open", unix.SYS_PERF_EVENT_OPEN,
		s.Memory(unsafe.Slice((*byte)(unsafe.Pointer(attr)), unsafe.Sizeof(*attr))),
		uintptr(here), uintptr(anyCPU), uintptr(none), unix.PERF_FLAG_FD_CLOEXEC)
	return attempt(s, wait)
}
