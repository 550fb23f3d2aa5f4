//go:build linux

package forkexec

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Call makes any system call. What it opens is gone with the child.
func (s *Script) Call(step string, trap uintptr, args ...uintptr) { s.do(step, trap, args...) }

// Memory returns the address of b for an argument of [Script.Call], and keeps b
// where it is.
func (s *Script) Memory(b []byte) uintptr {
	s.keep = append(s.keep, b)
	return uintptr(unsafe.Pointer(unsafe.SliceData(b)))
}

// Keep returns a number for a descriptor by which a script knows it in
// [Script.Try]. The caller closes it.
func Keep(fd int) (int, error) {
	kept, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, aside)
	if err != nil {
		return -1, &Error{"dup", err.(syscall.Errno)}
	}
	return kept, nil
}

// aside is above all descriptors that a script opens in [Script.Try].
const aside = 64

// Try runs the script in a child with a memory of its own. Its descriptors are
// those that the script opens, of which the first is 0, and what [Keep]
// returned. After the last step the child ends, so that what it got is gone; a
// script may end in an exec instead, and then status is how that program ended.
// A step that fails is an *[Error]; one that takes longer than the time given is
// an error that wraps [os.ErrDeadlineExceeded], and the child is killed.
func (s *Script) Try(within time.Duration) (status unix.WaitStatus, err error) {
	if s.err != nil {
		return 0, s.err
	}
	report, told, err := reportPipe()
	if err != nil {
		return 0, err
	}
	defer unix.Close(report)
	// The child dies with this thread, and so with this process, whatever ends
	// it. A script that changes its user has to ask for that again.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ops := s.ops
	defer func() { s.ops = ops }()
	s.ops = nil
	s.ParentDeathSignal(syscall.SIGKILL)
	s.do("close_range", unix.SYS_CLOSE_RANGE, 0, aside-1, 0)
	s.CloseOnExecFrom(aside)
	s.ops = append(s.ops, ops...)
	st := s.start(0)
	st.status, st.failed = told, [2]uint32{okByte, 0}
	pid, err := s.fork(st)
	unix.Close(told)
	if err != nil {
		return 0, err
	}
	end := time.Now().Add(within)
	if !readable(report, end) {
		kill(pid)
		return 0, fmt.Errorf("it took more than %v: %w", within, os.ErrDeadlineExceeded)
	}
	word, ok := readReport(report)
	switch {
	case !ok:
		return ended(pid, end)
	case word[0] != okByte:
		err = s.failure(word)
	}
	kill(pid)
	return 0, err
}

// reportPipe makes a pipe whose writing end is out of the way of what a script
// opens.
func reportPipe() (report, told int, err error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return -1, -1, &Error{"pipe", err.(syscall.Errno)}
	}
	told, err = Keep(p[1])
	unix.Close(p[1])
	if err != nil {
		unix.Close(p[0])
		return -1, -1, err
	}
	return p[0], told, nil
}

// readable waits until there is something to read, an end included.
func readable(fd int, end time.Time) bool {
	for {
		left := time.Until(end)
		if left <= 0 {
			return false
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left/time.Millisecond)+1)
		if err == nil && n > 0 {
			return true
		}
		if err != nil && err != unix.EINTR {
			return false
		}
	}
}

func kill(pid int) {
	_ = unix.Kill(pid, unix.SIGKILL) // it is our child until it is waited for
	_, _ = Wait(pid)
}

// ended waits for a child that says nothing: it execed, or was killed.
func ended(pid int, end time.Time) (unix.WaitStatus, error) {
	var ws unix.WaitStatus
	for {
		got, err := unix.Wait4(pid, &ws, unix.WALL|unix.WNOHANG, nil)
		switch {
		case got == pid && ws.Signaled() && ws.Signal() == unix.SIGSYS:
			return ws, &Error{"a filter killed the child", unix.EPERM}
		case got == pid:
			return ws, nil
		case err != nil && err != unix.EINTR:
			return ws, &Error{"wait for child", err.(syscall.Errno)}
		case time.Now().After(end):
			kill(pid)
			return ws, fmt.Errorf("the program did not end: %w", os.ErrDeadlineExceeded)
		}
		time.Sleep(time.Millisecond)
	}
}
