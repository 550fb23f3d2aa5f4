package seccomp

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// bad is a pointer to nothing: a call that is let through answers EFAULT.
const bad = 1

// minus1 is a descriptor or number that is none.
const minus1 = ^uintptr(0)

// probe is one call that the filter refuses, with arguments that do no harm
// where nothing refuses it.
type probe struct {
	row  string // of the catalogue, or a word
	call string
	args [6]uintptr
	want unix.Errno // under the filter
	// root: only a privileged caller gets another answer without the filter.
	root bool
	// blind: this kernel may give the same answer without the filter.
	blind bool
}

func (p probe) name() string { return p.row + " " + p.call }

// probes have one row and call each only once, so that the name finds them.
var probes = []probe{
	{row: "KRN-01", call: "unshare", args: [6]uintptr{unix.CLONE_NEWUSER}, want: unix.EPERM},
	{row: "KRN-01", call: "clone3", want: unix.ENOSYS},
	{row: "KRN-03", call: "setns", args: [6]uintptr{minus1}, want: unix.EPERM},
	{row: "KRN-04", call: "keyctl", args: [6]uintptr{0, minus1 - 2, 0}, want: unix.EPERM},
	{row: "KRN-04", call: "add_key", args: [6]uintptr{bad, bad, bad, 1}, want: unix.EPERM},
	{row: "KRN-04", call: "request_key", args: [6]uintptr{bad, bad}, want: unix.EPERM},
	{row: "KRN-05", call: "bpf", args: [6]uintptr{99}, want: unix.EPERM, root: true},
	{row: "KRN-05", call: "perf_event_open", args: [6]uintptr{bad}, want: unix.EPERM},
	{row: "KRN-05", call: "userfaultfd", args: [6]uintptr{1}, want: unix.EPERM},
	{row: "KRN-06", call: "io_uring_setup", args: [6]uintptr{4, bad}, want: unix.EPERM},
	{row: "KRN-06", call: "io_uring_enter", args: [6]uintptr{minus1}, want: unix.EPERM},
	{row: "KRN-06", call: "io_uring_register", args: [6]uintptr{minus1}, want: unix.EPERM},
	{row: "KRN-07", call: "ptrace", args: [6]uintptr{unix.PTRACE_PEEKDATA, 1 << 30}, want: unix.EPERM},
	{row: "KRN-07", call: "process_vm_readv", args: [6]uintptr{1 << 30, 0, 0, 0, 0, 1}, want: unix.EPERM},
	{row: "KRN-07", call: "process_vm_writev", args: [6]uintptr{1 << 30, 0, 0, 0, 0, 1}, want: unix.EPERM},
	{row: "KRN-07", call: "pidfd_getfd", args: [6]uintptr{minus1}, want: unix.EPERM},
	{row: "KRN-07", call: "kcmp", args: [6]uintptr{1 << 30, 1 << 30}, want: unix.EPERM},
	{row: "KRN-07", call: "process_madvise", args: [6]uintptr{minus1}, want: unix.EPERM},
	{row: "KRN-07", call: "process_mrelease", args: [6]uintptr{minus1}, want: unix.EPERM},
	{row: "KRN-08", call: "init_module", args: [6]uintptr{bad, 1, bad}, want: unix.EPERM, root: true},
	{row: "KRN-08", call: "finit_module", args: [6]uintptr{minus1, bad}, want: unix.EPERM, root: true},
	{row: "KRN-08", call: "delete_module", args: [6]uintptr{bad}, want: unix.EPERM, root: true},
	{row: "KRN-08", call: "kexec_load", args: [6]uintptr{0, 0, 0, minus1}, want: unix.EPERM, root: true},
	{row: "KRN-08", call: "kexec_file_load", args: [6]uintptr{minus1, minus1, 0, 0, minus1}, want: unix.EPERM, root: true},
	{row: "KRN-08", call: "swapon", args: [6]uintptr{bad}, want: unix.EPERM, root: true},
	{row: "KRN-08", call: "swapoff", args: [6]uintptr{bad}, want: unix.EPERM, root: true},
	{row: "KRN-08", call: "reboot", want: unix.EPERM, root: true},
	{row: "KRN-08", call: "settimeofday", args: [6]uintptr{bad}, want: unix.EPERM},
	{row: "KRN-08", call: "clock_settime", args: [6]uintptr{unix.CLOCK_REALTIME, bad}, want: unix.EPERM},
	{row: "KRN-08", call: "adjtimex", args: [6]uintptr{bad}, want: unix.EPERM},
	{row: "KRN-08", call: "clock_adjtime", args: [6]uintptr{unix.CLOCK_REALTIME, bad}, want: unix.EPERM},
	{row: "KRN-08", call: "syslog", args: [6]uintptr{10}, want: unix.EPERM, root: true},
	{row: "KRN-08", call: "acct", args: [6]uintptr{bad}, want: unix.EPERM, root: true},
	{row: "KRN-08", call: "quotactl", args: [6]uintptr{minus1, bad}, want: unix.EPERM},
	{row: "KRN-08", call: "sethostname", args: [6]uintptr{bad, minus1}, want: unix.EPERM, root: true},
	{row: "KRN-09", call: "personality", args: [6]uintptr{0x0040000}, want: unix.EPERM},
	{row: "KRN-09", call: "modify_ldt", want: unix.EPERM},
	{row: "KRN-09", call: "iopl", want: unix.EPERM},
	{row: "KRN-09", call: "ioperm", args: [6]uintptr{minus1, 1}, want: unix.EPERM},
	{row: "KRN-09", call: "arch_prctl", args: [6]uintptr{0x1011}, want: unix.EINVAL},

	{row: "NET-09 packet", call: "socket", args: [6]uintptr{unix.AF_PACKET, unix.SOCK_RAW}, want: unix.EAFNOSUPPORT},
	{row: "NET-09 raw", call: "socket", args: [6]uintptr{unix.AF_INET, unix.SOCK_RAW, 1}, want: unix.EPERM, root: true},
	{row: "NET-09 ping", call: "socket", args: [6]uintptr{unix.AF_INET, unix.SOCK_DGRAM, 1}, want: unix.EPROTONOSUPPORT},
	{row: "NET-11", call: "socket", args: [6]uintptr{unix.AF_ALG, unix.SOCK_SEQPACKET}, want: unix.EAFNOSUPPORT, blind: true},
	{row: "NET-12", call: "socket", args: [6]uintptr{unix.AF_NETLINK, unix.SOCK_RAW}, want: unix.EAFNOSUPPORT},
	{row: "vsock", call: "socket", args: [6]uintptr{unix.AF_VSOCK, unix.SOCK_STREAM}, want: unix.EAFNOSUPPORT, blind: true},
	{row: "unix", call: "socket", args: [6]uintptr{unix.AF_UNIX, unix.SOCK_STREAM}, want: unix.EACCES},
	{row: "unix pair", call: "socketpair", args: [6]uintptr{unix.AF_UNIX, unix.SOCK_DGRAM, 0, bad}, want: unix.EACCES},
	{row: "socket filter", call: "setsockopt", args: [6]uintptr{minus1, 1, 26}, want: unix.ENOPROTOOPT},

	{row: "FS-13", call: "mount", args: [6]uintptr{bad, bad, bad}, want: unix.EPERM},
	{row: "FS-13", call: "umount2", args: [6]uintptr{bad}, want: unix.EPERM, root: true},
	{row: "FS-13", call: "pivot_root", args: [6]uintptr{bad, bad}, want: unix.EPERM, root: true},
	{row: "FS-13", call: "open_tree", args: [6]uintptr{minus1, bad}, want: unix.EPERM},
	{row: "FS-13", call: "move_mount", args: [6]uintptr{minus1, bad, minus1, bad}, want: unix.EPERM, root: true},
	{row: "FS-13", call: "fsopen", args: [6]uintptr{bad}, want: unix.EPERM, root: true},
	{row: "FS-13", call: "fsconfig", args: [6]uintptr{minus1}, want: unix.EPERM},
	{row: "FS-13", call: "fsmount", args: [6]uintptr{minus1}, want: unix.EPERM, root: true},
	{row: "FS-13", call: "fspick", args: [6]uintptr{minus1, bad}, want: unix.EPERM, root: true},
	{row: "FS-13", call: "mount_setattr", args: [6]uintptr{minus1, bad}, want: unix.EPERM},
	{row: "FS-14", call: "chroot", args: [6]uintptr{bad}, want: unix.EPERM},
	{row: "FS-20", call: "open_by_handle_at", args: [6]uintptr{minus1, bad}, want: unix.EPERM, root: true},
	{row: "FS-20", call: "name_to_handle_at", args: [6]uintptr{minus1, bad, bad, bad}, want: unix.EPERM},

	{row: "TEN-06", call: "fcntl", args: [6]uintptr{minus1, unix.F_SETLEASE}, want: unix.EINVAL},
	{row: "input", call: "ioctl", args: [6]uintptr{minus1, unix.TIOCSTI}, want: unix.ENOTTY},
	{row: "CPU-13", call: "setpriority", args: [6]uintptr{minus1, 0, minus1 - 19}, want: unix.EPERM},
	{row: "CPU-13", call: "sched_setscheduler", args: [6]uintptr{minus1, unix.SCHED_FIFO}, want: unix.EPERM},
	{row: "CPU-13", call: "sched_setattr", want: unix.EPERM},
	{row: "MEM-05", call: "mmap", args: [6]uintptr{0, 4096, 1, unix.MAP_HUGETLB | unix.MAP_PRIVATE, minus1}, want: unix.ENOMEM},
	{row: "MEM-05", call: "memfd_create", args: [6]uintptr{bad, unix.MFD_HUGETLB}, want: unix.ENOMEM},
	{row: "MEM-05", call: "shmget", args: [6]uintptr{0, 0, shmHugeTLB | 0o1600}, want: unix.ENOMEM},
	{row: "DSK-10", call: "syncfs", args: [6]uintptr{minus1}, want: unix.EPERM},
	{row: "fanotify", call: "fanotify_init", args: [6]uintptr{minus1}, want: unix.EPERM, root: true},
	{row: "identity", call: "setgid", args: [6]uintptr{minus1}, want: unix.EPERM},
	{row: "identity", call: "setgroups", args: [6]uintptr{1 << 30}, want: unix.EPERM, root: true},
	{row: "identity", call: "capset", want: unix.EPERM},
	{row: "fallback", call: "seccomp", args: [6]uintptr{99}, want: unix.ENOSYS},
	{row: "fallback", call: "landlock_create_ruleset", args: [6]uintptr{0, 0, 1}, want: unix.ENOSYS, blind: true},
	{row: "fallback", call: "io_setup", args: [6]uintptr{0, bad}, want: unix.ENOSYS, blind: true},
	{row: "options", call: "prctl", args: [6]uintptr{unix.PR_SET_KEEPCAPS, 1}, want: unix.EINVAL},
	{row: "FS-19", call: "fchmod", args: [6]uintptr{minus1, 0o4755}, want: unix.EPERM},
	{row: "FS-19", call: "fchmodat", args: [6]uintptr{minus1, bad, 0o2755}, want: unix.EPERM},
	{row: "FS-19", call: "openat", args: [6]uintptr{minus1, bad, unix.O_CREAT, 0o4755}, want: unix.EPERM},
	{row: "FS-19", call: "mknodat", args: [6]uintptr{minus1, bad, unix.S_IFREG | 0o4755}, want: unix.EPERM},
	{row: "FS-19", call: "openat2", args: [6]uintptr{minus1, bad, bad, 24}, want: unix.ENOSYS},
	{row: "device", call: "mknodat", args: [6]uintptr{minus1, bad, unix.S_IFCHR, 0}, want: unix.EPERM},
}

// runProbe makes the call on this thread, in a child process.
func runProbe(name string) unix.Errno {
	if run, ok := actions[name]; ok {
		return run()
	}
	if w, ok := ways[name]; ok {
		return w.run()
	}
	for _, p := range probes {
		if nr, ok := nativeNumber(p.call); ok && p.name() == name {
			_, _, errno := unix.RawSyscall6(nr, p.args[0], p.args[1], p.args[2], p.args[3], p.args[4], p.args[5])
			return errno
		}
	}
	return unix.EDOM // no such probe
}

// TestRefused makes each call under the filter of the running kernel, and as a
// control without it.
func TestRefused(t *testing.T) {
	for _, p := range probes {
		if _, ok := nativeNumber(p.call); !ok {
			continue
		}
		t.Run(p.name(), func(t *testing.T) {
			if got := probeErrno(t, strict, p.name()); got != p.want {
				t.Errorf("under the filter: got %s, want %s", unix.ErrnoName(got), unix.ErrnoName(p.want))
			}
			if p.blind || (p.root && os.Geteuid() != 0) {
				return
			}
			if got := probeErrno(t, unfiltered, p.name()); got == p.want {
				t.Errorf("without the filter: got %s too, so the probe shows nothing", unix.ErrnoName(got))
			}
		})
	}
}
