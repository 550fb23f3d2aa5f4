package cli

import (
	"strings"
	"syscall"
)

// kernel returns the kernel's release and the machine that it is for, or
// nothing.
func kernel() (release, arch string) {
	var u syscall.Utsname
	if syscall.Uname(&u) != nil {
		return "", ""
	}
	return utsField(u.Release), utsField(u.Machine)
}

func utsField[T int8 | uint8](field [65]T) string {
	var b strings.Builder
	for _, c := range field {
		if c == 0 {
			break
		}
		b.WriteByte(byte(c))
	}
	return b.String()
}
