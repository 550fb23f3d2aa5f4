package seccomp

import (
	"math"
	"testing"

	"golang.org/x/sys/unix"
)

// number returns a call's number on an architecture.
func number(t testing.TB, a Arch, name string) uint32 {
	t.Helper()
	for _, g := range groups() {
		for _, c := range g.calls {
			if c.name == name && c.number(a) != none {
				return uint32(c.number(a))
			}
		}
	}
	t.Fatalf("%s has no call %q", a, name)
	return 0
}

const (
	upper   = uint64(1) << 32
	sigchld = uint64(unix.SIGCHLD)
	flagged = unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK
)

// argumentCases are verdicts written down by hand, for both architectures. An
// errno of 0 is "allowed"; strict and open are the profile without and with
// unix sockets.
var argumentCases = []struct {
	call         string
	args         [6]uint64
	strict, open unix.Errno
}{
	{"clone", [6]uint64{sigchld}, 0, 0},
	{"clone", [6]uint64{0x3d0f00}, 0, 0}, // a glibc thread
	{"clone", [6]uint64{unix.CLONE_VM | unix.CLONE_VFORK | sigchld}, 0, 0},
	{"clone", [6]uint64{unix.CLONE_PIDFD | sigchld}, 0, 0},
	{"clone", [6]uint64{unix.CLONE_NEWUSER | sigchld}, unix.EPERM, unix.EPERM},
	{"clone", [6]uint64{upper | unix.CLONE_NEWUSER}, unix.EPERM, unix.EPERM},
	{"clone", [6]uint64{unix.CLONE_NEWNS}, unix.EPERM, unix.EPERM},
	{"clone", [6]uint64{unix.CLONE_NEWCGROUP}, unix.EPERM, unix.EPERM},
	{"clone", [6]uint64{unix.CLONE_NEWUTS}, unix.EPERM, unix.EPERM},
	{"clone", [6]uint64{unix.CLONE_NEWIPC}, unix.EPERM, unix.EPERM},
	{"clone", [6]uint64{unix.CLONE_NEWPID}, unix.EPERM, unix.EPERM},
	{"clone", [6]uint64{unix.CLONE_NEWNET}, unix.EPERM, unix.EPERM},
	{"clone", [6]uint64{unix.CLONE_PARENT | sigchld}, unix.EPERM, unix.EPERM},
	{"clone", [6]uint64{sigchld, unix.CLONE_NEWUSER}, 0, 0}, // the stack, not the flags

	{"socket", [6]uint64{unix.AF_INET, unix.SOCK_STREAM}, 0, 0},
	{"socket", [6]uint64{unix.AF_INET6, unix.SOCK_DGRAM | flagged, unix.IPPROTO_UDP}, 0, 0},
	{"socket", [6]uint64{unix.AF_INET, unix.SOCK_STREAM | flagged, unix.IPPROTO_TCP}, 0, 0},
	{"socket", [6]uint64{upper | unix.AF_INET, upper | unix.SOCK_STREAM, upper}, 0, 0},
	{"socket", [6]uint64{unix.AF_INET, unix.SOCK_RAW}, unix.EPERM, unix.EPERM},
	{"socket", [6]uint64{unix.AF_INET, unix.SOCK_RAW | flagged, unix.IPPROTO_ICMP}, unix.EPERM, unix.EPERM},
	{"socket", [6]uint64{unix.AF_INET, upper | unix.SOCK_RAW}, unix.EPERM, unix.EPERM},
	{"socket", [6]uint64{unix.AF_INET, unix.SOCK_PACKET}, unix.EPERM, unix.EPERM},
	{"socket", [6]uint64{unix.AF_INET, unix.SOCK_DCCP}, unix.EPERM, unix.EPERM},
	{"socket", [6]uint64{unix.AF_INET, unix.SOCK_SEQPACKET}, unix.EPERM, unix.EPERM},
	{"socket", [6]uint64{unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP}, unix.EPROTONOSUPPORT, unix.EPROTONOSUPPORT},
	{"socket", [6]uint64{unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_ICMPV6}, unix.EPROTONOSUPPORT, unix.EPROTONOSUPPORT},
	{"socket", [6]uint64{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP}, unix.EPROTONOSUPPORT, unix.EPROTONOSUPPORT},
	{"socket", [6]uint64{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP}, unix.EPROTONOSUPPORT, unix.EPROTONOSUPPORT},
	{"socket", [6]uint64{unix.AF_INET, unix.SOCK_STREAM, upper | unix.IPPROTO_SCTP}, unix.EPROTONOSUPPORT, unix.EPROTONOSUPPORT},
	{"socket", [6]uint64{unix.AF_UNIX, unix.SOCK_STREAM}, unix.EACCES, 0},
	{"socket", [6]uint64{upper | unix.AF_UNIX, unix.SOCK_DGRAM | flagged}, unix.EACCES, 0},
	{"socket", [6]uint64{unix.AF_UNIX, unix.SOCK_RAW}, unix.EACCES, unix.EPERM},
	{"socket", [6]uint64{unix.AF_NETLINK, unix.SOCK_RAW}, unix.EAFNOSUPPORT, unix.EAFNOSUPPORT},
	{"socket", [6]uint64{unix.AF_PACKET, unix.SOCK_RAW}, unix.EAFNOSUPPORT, unix.EAFNOSUPPORT},
	{"socket", [6]uint64{upper | unix.AF_PACKET, unix.SOCK_DGRAM}, unix.EAFNOSUPPORT, unix.EAFNOSUPPORT},
	{"socket", [6]uint64{unix.AF_ALG, unix.SOCK_SEQPACKET}, unix.EAFNOSUPPORT, unix.EAFNOSUPPORT},
	{"socket", [6]uint64{unix.AF_VSOCK, unix.SOCK_STREAM}, unix.EAFNOSUPPORT, unix.EAFNOSUPPORT},
	{"socket", [6]uint64{unix.AF_KEY, unix.SOCK_RAW}, unix.EAFNOSUPPORT, unix.EAFNOSUPPORT},
	{"socket", [6]uint64{unix.AF_BLUETOOTH, unix.SOCK_RAW}, unix.EAFNOSUPPORT, unix.EAFNOSUPPORT},
	{"socket", [6]uint64{math.MaxUint32, unix.SOCK_STREAM}, unix.EAFNOSUPPORT, unix.EAFNOSUPPORT},

	{"socketpair", [6]uint64{unix.AF_UNIX, unix.SOCK_STREAM | flagged}, 0, 0},
	{"socketpair", [6]uint64{unix.AF_UNIX, unix.SOCK_SEQPACKET}, 0, 0},
	{"socketpair", [6]uint64{unix.AF_UNIX, unix.SOCK_DGRAM}, unix.EACCES, 0},
	{"socketpair", [6]uint64{unix.AF_UNIX, upper | unix.SOCK_DGRAM | flagged}, unix.EACCES, 0},
	{"socketpair", [6]uint64{unix.AF_UNIX, unix.SOCK_RAW}, unix.EACCES, unix.EPERM},
	{"socketpair", [6]uint64{unix.AF_TIPC, unix.SOCK_STREAM}, unix.EAFNOSUPPORT, unix.EAFNOSUPPORT},

	{"setsockopt", [6]uint64{3, unix.SOL_SOCKET, unix.SO_REUSEADDR}, 0, 0},
	{"setsockopt", [6]uint64{3, unix.IPPROTO_TCP, unix.TCP_NODELAY}, 0, 0},
	{"setsockopt", [6]uint64{3, unix.IPPROTO_IP, unix.SO_ATTACH_FILTER}, 0, 0}, // another level's 26
	{"setsockopt", [6]uint64{3, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER}, unix.ENOPROTOOPT, unix.ENOPROTOOPT},
	{"setsockopt", [6]uint64{3, unix.SOL_SOCKET, upper | unix.SO_ATTACH_BPF}, unix.ENOPROTOOPT, unix.ENOPROTOOPT},
	{"setsockopt", [6]uint64{3, unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_CBPF}, unix.ENOPROTOOPT, unix.ENOPROTOOPT},
	{"setsockopt", [6]uint64{3, unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_EBPF}, unix.ENOPROTOOPT, unix.ENOPROTOOPT},
	{"setsockopt", [6]uint64{3, unix.IPPROTO_TCP, unix.TCP_ULP}, unix.ENOPROTOOPT, unix.ENOPROTOOPT},

	{"ioctl", [6]uint64{1, unix.TCGETS}, 0, 0},
	{"ioctl", [6]uint64{1, unix.TIOCGWINSZ}, 0, 0},
	{"ioctl", [6]uint64{1, unix.TIOCSCTTY}, 0, 0},
	{"ioctl", [6]uint64{1, unix.TIOCGPTPEER}, 0, 0},
	{"ioctl", [6]uint64{1, unix.TCSETSW2}, 0, 0},
	{"ioctl", [6]uint64{1, 0x5421}, 0, 0}, // FIONBIO
	{"ioctl", [6]uint64{1, 0x5451}, 0, 0}, // FIOCLEX
	{"ioctl", [6]uint64{1, unix.SIOCGIFADDR}, 0, 0},
	{"ioctl", [6]uint64{1, unix.TIOCSTI}, unix.ENOTTY, unix.ENOTTY},
	{"ioctl", [6]uint64{1, upper | unix.TIOCSTI}, unix.ENOTTY, unix.ENOTTY},
	{"ioctl", [6]uint64{1, 0x541c}, unix.ENOTTY, unix.ENOTTY}, // TIOCLINUX
	{"ioctl", [6]uint64{1, unix.TIOCSETD}, unix.ENOTTY, unix.ENOTTY},
	{"ioctl", [6]uint64{1, unix.TIOCCONS}, unix.ENOTTY, unix.ENOTTY},
	{"ioctl", [6]uint64{1, 0xaa00}, unix.ENOTTY, unix.ENOTTY}, // userfaultfd by device
	{"ioctl", [6]uint64{1, unix.SIOCSIFFLAGS}, unix.ENOTTY, unix.ENOTTY},
	{"ioctl", [6]uint64{1, unix.TUNSETIFF}, unix.ENOTTY, unix.ENOTTY},

	{"fcntl", [6]uint64{1, unix.F_DUPFD_CLOEXEC}, 0, 0},
	{"fcntl", [6]uint64{1, unix.F_SETLKW}, 0, 0},
	{"fcntl", [6]uint64{1, unix.F_OFD_SETLK}, 0, 0},
	{"fcntl", [6]uint64{1, unix.F_ADD_SEALS}, 0, 0},
	{"fcntl", [6]uint64{1, unix.F_SETPIPE_SZ}, 0, 0},
	{"fcntl", [6]uint64{1, unix.F_SETLEASE}, unix.EINVAL, unix.EINVAL},
	{"fcntl", [6]uint64{1, upper | unix.F_SETLEASE}, unix.EINVAL, unix.EINVAL},
	{"fcntl", [6]uint64{1, unix.F_NOTIFY}, unix.EINVAL, unix.EINVAL},
	{"fcntl", [6]uint64{1, 1040}, unix.EINVAL, unix.EINVAL}, // F_SETDELEG

	{"prctl", [6]uint64{unix.PR_SET_NAME}, 0, 0},
	{"prctl", [6]uint64{unix.PR_SET_PDEATHSIG}, 0, 0},
	{"prctl", [6]uint64{unix.PR_GET_SECCOMP}, 0, 0},
	{"prctl", [6]uint64{unix.PR_SET_SECCOMP}, unix.EINVAL, unix.EINVAL},
	{"prctl", [6]uint64{upper | unix.PR_SET_SECCOMP}, unix.EINVAL, unix.EINVAL},
	{"prctl", [6]uint64{unix.PR_SET_MM}, unix.EINVAL, unix.EINVAL},
	{"prctl", [6]uint64{unix.PR_SET_PTRACER}, unix.EINVAL, unix.EINVAL},
	{"prctl", [6]uint64{unix.PR_CAP_AMBIENT}, unix.EINVAL, unix.EINVAL},
	{"prctl", [6]uint64{unix.PR_SET_SPECULATION_CTRL}, unix.EINVAL, unix.EINVAL},
	{"prctl", [6]uint64{unix.PR_SCHED_CORE}, unix.EINVAL, unix.EINVAL},

	{"personality", [6]uint64{0}, 0, 0},
	{"personality", [6]uint64{math.MaxUint32}, 0, 0},
	{"personality", [6]uint64{math.MaxUint64}, 0, 0}, // the question, as a negative int
	{"personality", [6]uint64{0x0040000}, unix.EPERM, unix.EPERM},
	{"personality", [6]uint64{upper | 0x0040000}, unix.EPERM, unix.EPERM},
	{"personality", [6]uint64{8}, unix.EPERM, unix.EPERM},

	{"mmap", [6]uint64{0, 4096, 3, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS}, 0, 0},
	{"mmap", [6]uint64{0, 4096, 3, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_HUGETLB}, unix.ENOMEM, unix.ENOMEM},
	{"memfd_create", [6]uint64{0, unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING}, 0, 0},
	{"memfd_create", [6]uint64{0, upper | unix.MFD_HUGETLB}, unix.ENOMEM, unix.ENOMEM},
	{"shmget", [6]uint64{0, 4096, 0o1600}, 0, 0},
	{"shmget", [6]uint64{0, 4096, 0o5600}, unix.ENOMEM, unix.ENOMEM},

	{"mknodat", [6]uint64{0, 0, unix.S_IFIFO | 0o644}, 0, 0},
	{"mknodat", [6]uint64{0, 0, 0o644}, 0, 0},
	{"mknodat", [6]uint64{0, 0, unix.S_IFREG}, 0, 0},
	{"mknodat", [6]uint64{0, 0, unix.S_IFCHR | 0o644}, unix.EPERM, unix.EPERM},
	{"mknodat", [6]uint64{0, 0, unix.S_IFBLK}, unix.EPERM, unix.EPERM},
	{"mknodat", [6]uint64{0, 0, unix.S_IFSOCK}, unix.EPERM, unix.EPERM},
	{"mknodat", [6]uint64{0, 0, 0xffff_0000 | unix.S_IFCHR}, unix.EPERM, unix.EPERM},

	{"mknodat", [6]uint64{0, 0, unix.S_IFREG | 0o4755}, unix.EPERM, unix.EPERM},
	{"mknodat", [6]uint64{0, 0, 0o2755}, unix.EPERM, unix.EPERM},
	{"mknodat", [6]uint64{0, 0, unix.S_IFREG | 0o1777}, 0, 0},
	{"openat", [6]uint64{0, 0, unix.O_RDONLY | unix.O_CLOEXEC, math.MaxUint64}, 0, 0}, // no mode, whatever is there
	{"openat", [6]uint64{0, 0, unix.O_DIRECTORY, 0o4755}, 0, 0},
	{"openat", [6]uint64{0, 0, unix.O_CREAT | unix.O_RDWR, 0o1777}, 0, 0},
	{"openat", [6]uint64{0, 0, unix.O_CREAT, 0o4755}, unix.EPERM, unix.EPERM},
	{"openat", [6]uint64{0, 0, unix.O_CREAT, 0o2755}, unix.EPERM, unix.EPERM},
	{"openat", [6]uint64{0, 0, upper | unix.O_CREAT, upper | 0o6755}, unix.EPERM, unix.EPERM},
	{"openat", [6]uint64{0, 0, unix.O_TMPFILE | unix.O_RDWR, 0o4755}, unix.EPERM, unix.EPERM},
	{"openat", [6]uint64{0, 0, unix.O_TMPFILE | unix.O_RDWR, 0o755}, 0, 0},
	{"fchmod", [6]uint64{3, 0o1777}, 0, 0},
	{"fchmod", [6]uint64{3, 0o4755}, unix.EPERM, unix.EPERM},
	{"fchmod", [6]uint64{3, upper | 0o2000}, unix.EPERM, unix.EPERM},
	{"fchmodat", [6]uint64{3, 0, 0o755}, 0, 0},
	{"fchmodat", [6]uint64{3, 0, 0o6000}, unix.EPERM, unix.EPERM},
	{"fchmodat2", [6]uint64{3, 0, 0o644, unix.AT_EMPTY_PATH}, 0, 0},
	{"fchmodat2", [6]uint64{3, 0, 0o4644, unix.AT_EMPTY_PATH}, unix.EPERM, unix.EPERM},
	{"openat2", [6]uint64{}, unix.ENOSYS, unix.ENOSYS},

	{"setpriority", [6]uint64{0, 0, 19}, 0, 0},
	{"setpriority", [6]uint64{0, 0, math.MaxUint64 - 19}, unix.EPERM, unix.EPERM},
	{"setpriority", [6]uint64{0, 0, math.MaxUint32 - 19}, unix.EPERM, unix.EPERM},
	{"sched_setscheduler", [6]uint64{0, unix.SCHED_BATCH | unix.SCHED_RESET_ON_FORK}, 0, 0},
	{"sched_setscheduler", [6]uint64{0, unix.SCHED_FIFO}, unix.EPERM, unix.EPERM},
	{"sched_setscheduler", [6]uint64{0, upper | unix.SCHED_RR | unix.SCHED_RESET_ON_FORK}, unix.EPERM, unix.EPERM},

	{"execve", [6]uint64{}, 0, 0},
	{"exit_group", [6]uint64{}, 0, 0},
	{"unshare", [6]uint64{}, unix.EPERM, unix.EPERM},
	{"clone3", [6]uint64{}, unix.ENOSYS, unix.ENOSYS},
}

func TestArguments(t *testing.T) {
	for _, p := range profiles() {
		if p.Agent {
			continue
		}
		prog, arch := compile(t, p), audit(t, p.Arch)
		for _, tc := range argumentCases {
			errno := tc.strict
			if p.UnixSockets {
				errno = tc.open
			}
			want := allow
			if errno != 0 {
				want = refuse(errno)
			}
			got, _ := interpret(t, prog, entry{number(t, p.Arch, tc.call), arch, tc.args}, nil)
			if got != want {
				t.Errorf("%s: %s%#x: got %#x, want %#x", p, tc.call, tc.args, got, want)
			}
		}
	}
}

// TestOneArchitecture holds what only one architecture has.
func TestOneArchitecture(t *testing.T) {
	for _, tc := range []struct {
		arch  Arch
		call  string
		args  [6]uint64
		errno unix.Errno
	}{
		{AMD64, "arch_prctl", [6]uint64{0x1002}, 0}, // ARCH_SET_FS
		{AMD64, "arch_prctl", [6]uint64{0x1023}, 0}, // ARCH_REQ_XCOMP_PERM
		{AMD64, "arch_prctl", [6]uint64{0x1012}, unix.EINVAL},
		{AMD64, "arch_prctl", [6]uint64{0x5001}, unix.EINVAL},
		{AMD64, "mknod", [6]uint64{0, unix.S_IFIFO}, 0},
		{AMD64, "mknod", [6]uint64{0, unix.S_IFBLK}, unix.EPERM},
		{AMD64, "mknod", [6]uint64{0, unix.S_IFREG | 0o4755}, unix.EPERM},
		{AMD64, "open", [6]uint64{0, unix.O_RDONLY, 0o4755}, 0},
		{AMD64, "open", [6]uint64{0, unix.O_CREAT, 0o644}, 0},
		{AMD64, "open", [6]uint64{0, unix.O_CREAT, 0o4644}, unix.EPERM},
		{AMD64, "open", [6]uint64{0, unix.O_TMPFILE, 0o2644}, unix.EPERM},
		{AMD64, "creat", [6]uint64{0, 0o666}, 0},
		{AMD64, "creat", [6]uint64{0, 0o4666}, unix.EPERM},
		{AMD64, "chmod", [6]uint64{0, 0o1666}, 0},
		{AMD64, "chmod", [6]uint64{0, 0o2666}, unix.EPERM},
		{AMD64, "prctl", [6]uint64{unix.PR_SVE_GET_VL}, unix.EINVAL},
		{ARM64, "prctl", [6]uint64{unix.PR_SVE_GET_VL}, 0},
	} {
		want := allow
		if tc.errno != 0 {
			want = refuse(tc.errno)
		}
		prog := compile(t, Profile{Arch: tc.arch})
		got, _ := interpret(t, prog, entry{number(t, tc.arch, tc.call), audit(t, tc.arch), tc.args}, nil)
		if got != want {
			t.Errorf("%s: %s%#x: got %#x, want %#x", tc.arch, tc.call, tc.args, got, want)
		}
	}
}

// TestAgent: what the agent must be able to do, and what it never needs.
func TestAgent(t *testing.T) {
	for _, arch := range []Arch{AMD64, ARM64} {
		p := Profile{Arch: arch, Agent: true}
		prog := compile(t, p)
		for _, tc := range []struct {
			call string
			arg  uint64
			want verdict
		}{
			{"execve", 0, allow}, {"setresuid", 0, allow}, {"setgroups", 0, allow}, {"capset", 0, allow},
			{"seccomp", 1, allow}, {"prctl", 0, allow}, {"clone3", 0, allow}, {"kill", 0, allow},
			{"openat2", 0, allow}, {"clone", unix.CLONE_VM | unix.CLONE_VFORK | unix.CLONE_PIDFD, allow},
			{"unshare", unix.CLONE_NEWCGROUP, allow}, {"unshare", unix.CLONE_NEWNS, notPermitted},
			{"unshare", unix.CLONE_NEWCGROUP | unix.CLONE_NEWUSER, notPermitted},
			{"unshare", unix.CLONE_FS, allow}, {"unshare", unix.CLONE_FS | unix.CLONE_NEWNS, notPermitted},
			{"inotify_init1", 0, allow}, {"inotify_add_watch", 0, allow}, {"inotify_rm_watch", 0, allow},
			{"socket", unix.AF_INET, notPermitted}, {"socket", unix.AF_NETLINK, refuse(unix.EAFNOSUPPORT)},
			{"socket", unix.AF_PACKET, refuse(unix.EAFNOSUPPORT)}, {"socket", unix.AF_VSOCK, refuse(unix.EAFNOSUPPORT)},
			{"connect", 0, allow}, {"shutdown", 0, allow}, {"setsockopt", 0, allow},
			{"clone", unix.CLONE_NEWUSER, notPermitted}, {"setns", 0, notPermitted},
			{"mount", 0, notPermitted}, {"move_mount", 0, notPermitted}, {"fsopen", 0, notPermitted},
			{"pivot_root", 0, notPermitted}, {"bpf", 0, notPermitted}, {"ptrace", 0, notPermitted},
			{"open_by_handle_at", 0, notPermitted}, {"keyctl", 0, notPermitted}, {"io_uring_setup", 0, notPermitted},
		} {
			e := entry{number(t, arch, tc.call), audit(t, arch), [6]uint64{tc.arg}}
			if got, _ := interpret(t, prog, e, nil); got != tc.want {
				t.Errorf("%s: %s(%#x): got %#x, want %#x", p, tc.call, tc.arg, got, tc.want)
			}
		}
	}
}
