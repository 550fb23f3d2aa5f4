//go:build unix

package terminal

import (
	"os"

	"golang.org/x/sys/unix"
)

// Background reports whether v is a terminal that this process may not read
// from, because another job has it: a read would stop the process.
func Background(v any) bool {
	if !Is(v) {
		return false
	}
	group, err := unix.IoctlGetInt(int(v.(*os.File).Fd()), unix.TIOCGPGRP)
	return err == nil && group != unix.Getpgrp()
}
