package attempt

import "golang.org/x/sys/unix"

// amd64Only lists the calls that arm64 never had.
func amd64Only() []numbered {
	return []numbered{
		{"fork", unix.SYS_FORK}, {"vfork", unix.SYS_VFORK}, {"arch_prctl", unix.SYS_ARCH_PRCTL},
		{"iopl", unix.SYS_IOPL}, {"ioperm", unix.SYS_IOPERM}, {"modify_ldt", unix.SYS_MODIFY_LDT},
		{"sysfs", unix.SYS_SYSFS}, {"ustat", unix.SYS_USTAT}, {"uselib", unix.SYS_USELIB},
		{"open", unix.SYS_OPEN}, {"creat", unix.SYS_CREAT}, {"mkdir", unix.SYS_MKDIR},
		{"mknod", unix.SYS_MKNOD}, {"link", unix.SYS_LINK}, {"unlink", unix.SYS_UNLINK},
		{"rename", unix.SYS_RENAME}, {"chmod", unix.SYS_CHMOD}, {"chown", unix.SYS_CHOWN},
		{"pause", unix.SYS_PAUSE}, {"alarm", unix.SYS_ALARM},
	}
}
